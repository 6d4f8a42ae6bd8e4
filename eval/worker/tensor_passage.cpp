#include "eval/worker/tensor_passage.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "eval/torch/element_type.h"

namespace tilepilot::eval {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMaxRank = 64;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

size_t aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

Error no_memory(size_t size) {
  return make_error(DiagnosticKind::out_of_memory, {}, fmt::format("{} bytes for tensors could not be had", size));
}

Error not_whole() { return make_error(DiagnosticKind::worker_unavailable, {}, "tensors did not arrive whole"); }

struct Mapping {
  char* data = nullptr;
  size_t size = 0;
  ~Mapping() {
    if (data) munmap(data, size);
  }
};

std::shared_ptr<Mapping> map(int file, size_t size, int sharing) {
  auto mapping = std::make_shared<Mapping>();
  if (size == 0) return mapping;
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, sharing, file, 0);
  if (data == MAP_FAILED) return nullptr;
  mapping->data = static_cast<char*>(data);
  mapping->size = size;
  return mapping;
}

std::optional<at::Tensor> unpack_one(const nlohmann::json& node, const std::shared_ptr<Mapping>& mapping) {
  auto type = parse_element_type(node.at("dtype").get<std::string>());
  auto shape = node.at("shape").get<std::vector<int64_t>>();
  auto strides = node.at("strides").get<std::vector<int64_t>>();
  auto offset = node.at("offset").get<size_t>();
  const auto is_integer = [](const nlohmann::json& number) { return number.is_number_integer(); };
  if (!std::all_of(node.at("shape").begin(), node.at("shape").end(), is_integer) ||
      !std::all_of(node.at("strides").begin(), node.at("strides").end(), is_integer))
    return std::nullopt;
  if (!type || shape.size() != strides.size() || shape.size() > kMaxRank || offset % kAlignment != 0)
    return std::nullopt;
  // Of the extents that are not 0 too: LibTorch multiplies them.
  int64_t bytes = static_cast<int64_t>(c10::elementSize(*type)), spanned = bytes;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(spanned, std::max<int64_t>(extent, 1), &spanned)) return std::nullopt;
    bytes *= extent;
  }
  if (bytes == 0) return at::empty(shape, *type);
  if (offset > mapping->size || static_cast<size_t>(bytes) > mapping->size - offset) return std::nullopt;
  auto tensor = at::from_blob(
      mapping->data + offset, shape, [mapping](void*) {}, at::TensorOptions(*type));
  return tensor;
}

}  // namespace

Result<PackedTensors> pack_tensors(const std::vector<at::Tensor>& tensors) {
  nlohmann::json description = nlohmann::json::array();
  size_t size = 0;
  for (auto& tensor : tensors) {
    description.push_back({{"dtype", element_type_name(tensor.scalar_type())},
                           {"shape", tensor.sizes().vec()},
                           {"strides", tensor.strides().vec()},
                           {"offset", size}});
    size = aligned(size + static_cast<size_t>(tensor.numel()) * tensor.element_size());
  }
  Descriptor file(memfd_create("tilepilot-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.number() < 0 || ftruncate(file.number(), static_cast<off_t>(size)) != 0) return no_memory(size);
  {
    at::NoGradGuard no_grad;
    auto mapping = map(file.number(), size, MAP_SHARED);
    if (!mapping) return no_memory(size);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].numel() == 0) continue;
      auto offset = description[i].at("offset").get<size_t>();
      at::from_blob(mapping->data + offset, tensors[i].sizes(), at::TensorOptions(tensors[i].scalar_type()))
          .copy_(tensors[i]);
    }
  }
  if (fcntl(file.number(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) return no_memory(size);
  return PackedTensors{std::move(description), std::move(file)};
}

Result<std::vector<at::Tensor>> unpack_tensors(const nlohmann::json& description, const Descriptor& file) {
  struct stat info {};
  const int seals = fcntl(file.number(), F_GET_SEALS);  // -1: not a memory file
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(file.number(), &info) != 0) return not_whole();
  auto size = static_cast<size_t>(info.st_size);
  auto mapping = map(file.number(), size, MAP_PRIVATE);
  if (!mapping) return no_memory(size);
  std::vector<at::Tensor> tensors;
  try {
    for (auto& node : description) {
      auto tensor = unpack_one(node, mapping);
      if (!tensor) return not_whole();
      tensors.push_back(*tensor);
    }
  } catch (const std::exception&) { return not_whole(); }  // of JSON of another shape, or of LibTorch
  return tensors;
}

}  // namespace tilepilot::eval
