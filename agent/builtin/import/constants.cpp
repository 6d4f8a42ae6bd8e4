#include "agent/builtin/import/constants.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tilepilot::agent::builtin {

namespace {

constexpr int64_t kLargest = 64;  // elements worth writing out

// IEEE 754 binary16, and the upper half of a binary32.
struct Half {
  uint16_t bits;
  operator double() const {
    const int exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
    const double size = exponent == 0x1F ? (fraction ? NAN : INFINITY)
                        : exponent == 0  ? std::ldexp(fraction, -24)
                                         : std::ldexp(fraction + 0x400, exponent - 25);
    return bits & 0x8000 ? -size : size;
  }
};
struct BFloat16 {
  uint16_t bits;
  operator double() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

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
    if (type == "I16") return elements<int16_t>(entry);
    if (type == "I8") return elements<int8_t>(entry);
    if (type == "U8" || type == "BOOL") return elements<uint8_t>(entry);
    if (type == "F16") return elements<Half>(entry);
    if (type == "BF16") return elements<BFloat16>(entry);
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
