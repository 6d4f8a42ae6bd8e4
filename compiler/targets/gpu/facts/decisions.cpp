#include "compiler/targets/gpu/facts/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace tilepilot::targets::gpu {

std::string name_of_copy(const ir::Buffer& from, const ir::Buffer& to) {
  return fmt::format("copy {} -> {}", from->name, to->name);
}

std::vector<Decision> in_order(std::vector<Decision> decisions) {
  std::stable_sort(decisions.begin(), decisions.end(), [](const Decision& a, const Decision& b) {
    return std::tuple(a.span.file, a.span.begin) < std::tuple(b.span.file, b.span.begin);
  });
  std::vector<Decision> once;
  for (Decision& decision : decisions)
    if (std::find(once.begin(), once.end(), decision) == once.end()) once.push_back(std::move(decision));
  return once;
}

}  // namespace tilepilot::targets::gpu
