#include "compiler/targets/cuda/instructions.h"

#include <algorithm>
#include <cctype>

namespace tilepilot::targets::cuda {
namespace {

struct InstructionName {
  std::string_view call, instruction;
};
constexpr InstructionName kInstructionNames[] = {
    {"wgmma_m", "wgmma"},       {"mma_m", "mma"},         {"tma_load_multicast", "TMA multicast"},
    {"tma_load", "TMA"},        {"tma_store", "TMA"},     {"tma_add", "TMA"},
    {"bulk_load", "TMA"},       {"bulk_store", "TMA"},    {"bulk_copy", "TMA"},
    {"async_copy", "cp.async"}, {"ldmatrix", "ldmatrix"}, {"stmatrix", "stmatrix"},
};
constexpr std::string_view kInOrder[] = {"wgmma", "mma", "TMA", "TMA multicast", "cp.async", "ldmatrix", "stmatrix"};

bool is_name_part(char letter) { return letter == '_' || std::isalnum(static_cast<unsigned char>(letter)) != 0; }

// "tma_load_2d" begins with "tma_load", "wgmma_m64" does not begin with "mma_m" within another name.
bool calls(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1))
    if (at == 0 || !is_name_part(text[at - 1])) return true;
  return false;
}

// From the function's name to the next function's beginning.
std::string_view text_of_function(std::string_view source, std::string_view function) {
  constexpr std::string_view kBegin = "extern \"C\" __global__";
  for (size_t at = source.find(kBegin); at != std::string_view::npos; at = source.find(kBegin, at + 1)) {
    const std::string_view text = source.substr(at, source.find(kBegin, at + 1) - at);
    const size_t name = text.substr(0, text.find('{')).find(" " + std::string(function) + "(");
    if (name != std::string_view::npos) return text;
  }
  return {};
}

}  // namespace

std::vector<std::string> instructions_of(std::string_view source, std::string_view function) {
  const std::string_view text = text_of_function(source, function);
  std::vector<std::string> found;
  for (const std::string_view instruction : kInOrder)
    if (std::any_of(std::begin(kInstructionNames), std::end(kInstructionNames), [&](const InstructionName& each) {
          return each.instruction == instruction && calls(text, each.call);
        }))
      found.emplace_back(instruction);
  return found;
}

}  // namespace tilepilot::targets::cuda
