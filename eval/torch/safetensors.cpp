#include "eval/torch/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

namespace tilepilot::eval {
namespace {

class Mapping {
 public:
  Mapping(char* data, size_t size) : data_(data), size_(size) {}
  ~Mapping() {
    if (size_ > 0) munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_;
  size_t size_;
};

Error invalid(const std::filesystem::path& path, std::string_view what) {
  return make_error(DiagnosticKind::reference_invalid, {},
                    fmt::format("the weights file `{}` is damaged: {}", path.string(), what), "export the model again");
}

Result<std::shared_ptr<Mapping>> map_file(const std::filesystem::path& path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (file < 0 || fstat(file, &info) != 0) {
    if (file >= 0) close(file);
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("`{}` cannot be read", path.string()));
  }
  auto size = static_cast<size_t>(info.st_size);
  void* data = size > 0 ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : nullptr;
  close(file);
  if (size == 0 || data == MAP_FAILED) return invalid(path, "it cannot be mapped");
  return std::make_shared<Mapping>(static_cast<char*>(data), size);
}

std::optional<at::ScalarType> file_type(const std::string& name) {
  static const std::map<std::string, at::ScalarType> types = {
      {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf}, {"BF16", at::kBFloat16}, {"I64", at::kLong},
      {"I32", at::kInt},    {"I16", at::kShort}, {"I8", at::kChar},  {"U8", at::kByte},       {"BOOL", at::kBool}};
  auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

struct Entry {
  at::ScalarType type;
  std::vector<int64_t> shape;
  size_t begin, size;
};

// The entry, if its numbers agree with each other and lie inside `available` bytes.
std::optional<Entry> read_entry(const nlohmann::json& node, size_t available) {
  auto type = file_type(node.at("dtype").get<std::string>());
  if (!type) return std::nullopt;
  Entry entry{*type, node.at("shape").get<std::vector<int64_t>>(), node.at("data_offsets").at(0).get<size_t>(), 0};
  auto end = node.at("data_offsets").at(1).get<size_t>();
  if (entry.begin > end || end > available) return std::nullopt;
  entry.size = end - entry.begin;
  size_t expected = c10::elementSize(*type);
  for (int64_t extent : entry.shape) {
    if (extent < 0 || __builtin_mul_overflow(expected, static_cast<size_t>(extent), &expected)) return std::nullopt;
  }
  if (expected != entry.size) return std::nullopt;
  return entry;
}

at::Tensor make_tensor(const Entry& entry, const std::shared_ptr<Mapping>& mapping, char* data) {
  if (entry.size == 0) return at::empty(entry.shape, entry.type);
  return at::from_blob(
      data + entry.begin, entry.shape, [mapping](void*) {}, at::TensorOptions(entry.type));
}

}  // namespace

Result<TensorMap> load_safetensors(const std::filesystem::path& path) {
  auto mapping = TRY(map_file(path));
  uint64_t header_size = 0;
  if (mapping->size() < sizeof(header_size)) return invalid(path, "it is too short");
  std::memcpy(&header_size, mapping->data(), sizeof(header_size));
  size_t rest = mapping->size() - sizeof(header_size);
  if (header_size > rest) return invalid(path, "its header is longer than the file");
  char* header = mapping->data() + sizeof(header_size);
  TensorMap tensors;
  try {
    const auto entries = nlohmann::json::parse(header, header + header_size);
    for (auto& [name, node] : entries.items()) {
      if (name == "__metadata__") continue;
      auto entry = read_entry(node, rest - header_size);
      if (!entry) return invalid(path, fmt::format("the entry `{}` is not valid", name));
      tensors[name] = make_tensor(*entry, mapping, header + header_size);
    }
  } catch (const nlohmann::json::exception& error) { return invalid(path, error.what()); }
  return tensors;
}

}  // namespace tilepilot::eval
