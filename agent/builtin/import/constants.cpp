#include "agent/builtin/import/constants.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tilepilot::agent::builtin {

namespace {

constexpr int64_t kLargest = 64;  // elements worth writing out

// safetensors: the header's length in 8 bytes, a JSON header, the data.
class TensorFile {
 public:
  explicit TensorFile(const std::filesystem::path& path) : file_(path, std::ios::binary) {
    uint64_t length = 0;
    if (!file_.read(reinterpret_cast<char*>(&length), sizeof length) || length > (uint64_t{1} << 32)) return;
    std::string header(length, ' ');
    if (!file_.read(header.data(), static_cast<std::streamsize>(length))) return;
    header_ = nlohmann::json::parse(header, nullptr, false);
    data_ = sizeof length + length;
  }

  std::vector<double> read(const std::string& key) {
    if (!header_.is_object() || !header_.contains(key)) return {};
    const nlohmann::json& entry = header_[key];
    std::string type = entry.value("dtype", "");
    if (type == "F32") return elements<float>(entry);
    if (type == "F64") return elements<double>(entry);
    if (type == "I64") return elements<int64_t>(entry);
    if (type == "I32") return elements<int32_t>(entry);
    return {};
  }

 private:
  std::ifstream file_;
  nlohmann::json header_;
  uint64_t data_ = 0;

  template <class T>
  std::vector<double> elements(const nlohmann::json& entry) {
    auto offsets = entry.value("data_offsets", std::vector<uint64_t>());
    if (offsets.size() != 2 || offsets[1] < offsets[0]) return {};
    std::vector<T> raw((offsets[1] - offsets[0]) / sizeof(T));
    file_.seekg(static_cast<std::streamoff>(data_ + offsets[0]));
    if (!file_.read(reinterpret_cast<char*>(raw.data()), static_cast<std::streamsize>(raw.size() * sizeof(T))))
      return {};
    return {raw.begin(), raw.end()};
  }
};

}  // namespace

std::map<int, std::vector<double>> read_constants(const eval::Reference& reference) {
  std::map<int, std::vector<double>> result;
  auto& values = reference.forward.values;
  std::optional<TensorFile> file;
  for (size_t id = 0; id < values.size(); ++id) {
    if (values[id].kind != eval::GraphValue::Kind::constant || values[id].numel() > kLargest) continue;
    if (!file) file.emplace(reference.weights);
    std::vector<double> numbers = file->read(values[id].name);
    if (static_cast<int64_t>(numbers.size()) == values[id].numel()) result[static_cast<int>(id)] = std::move(numbers);
  }
  return result;
}

}  // namespace tilepilot::agent::builtin
