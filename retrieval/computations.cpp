#include "retrieval/computations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>

#include "retrieval/index/embedding.h"

namespace tilepilot::retrieval {
namespace {

class Operators {
 public:
  explicit Operators(const Structure& structure) {
    for (const std::string& op : structure.ops) ++counts_[plain_operator(op)];
  }
  int count(std::initializer_list<std::string_view> names) const {
    int sum = 0;
    for (const std::string_view name : names)
      if (const auto found = counts_.find(name); found != counts_.end()) sum += found->second;
    return sum;
  }
  bool has(std::initializer_list<std::string_view> names) const { return count(names) > 0; }
  bool has_family(std::string_view family) const {
    return std::any_of(counts_.begin(), counts_.end(),
                       [&](const auto& each) { return operator_family(each.first) == family; });
  }

 private:
  std::map<std::string, int, std::less<>> counts_;
};

bool has_softmax(const Operators& ops) {
  return ops.has({"softmax", "log_softmax", "logsumexp", "cross_entropy_loss", "scaled_dot_product_attention"}) ||
         (ops.has({"exp"}) && ops.has({"sum"}) && ops.has({"div", "log", "reciprocal"}));
}

bool has_cross_entropy(const Operators& ops) {
  return ops.has({"cross_entropy_loss", "nll_loss", "nll_loss_nd"}) ||
         (ops.has({"log_softmax", "logsumexp"}) && ops.has({"gather", "index", "take_along_dim", "mean", "sum"}));
}

bool has_normalisation(const Operators& ops) {
  return ops.has({"layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm"}) ||
         (ops.has({"rsqrt", "sqrt"}) && ops.has({"mean", "var", "sum"}) && ops.has({"mul", "div"}));
}

bool has_attention(const Operators& ops) {
  return ops.has({"scaled_dot_product_attention"}) ||
         (has_softmax(ops) && ops.count({"matmul", "bmm", "baddbmm", "einsum"}) >= 2);
}

bool has_gate(const Operators& ops) {
  const bool halves = ops.has({"chunk", "split", "split_with_sizes", "slice"}) || ops.count({"linear", "mm"}) >= 2;
  return ops.has({"silu", "sigmoid", "gelu", "tanh"}) && ops.has({"mul"}) && halves;
}

bool has_epilogue(const Operators& ops) { return ops.has_family("product") && ops.has_family("activation"); }

struct Computation {
  std::string_view name;
  bool (*is_in)(const Operators&);
};
constexpr std::array kComputations = {
    Computation{"attention", has_attention},   Computation{"cross-entropy", has_cross_entropy},
    Computation{"softmax", has_softmax},       Computation{"normalisation", has_normalisation},
    Computation{"gated activation", has_gate}, Computation{"product and activation", has_epilogue},
};

constexpr const char* kSteps = "repeated steps";
constexpr int kStepsLength = 16;  // operators on a path
constexpr int kStepsPeriod = 4;   // times that each of them comes up, on average

// Recurrences and iterations are exported written out: a long path of few operators, again and again. What libraries do
// by themselves ends it, so that layers are no steps.
bool has_steps(const Structure& structure) {
  struct Path {
    int length = 0;
    std::set<std::string_view> names;
  };
  std::vector<std::string> plain;
  for (const std::string& op : structure.ops) plain.push_back(plain_operator(op));
  std::vector<Path> paths(plain.size());
  auto links = structure.links;
  std::sort(links.begin(), links.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  auto link = links.begin();
  for (size_t at = 0; at < plain.size(); ++at) {
    for (; link != links.end() && link->second <= static_cast<int>(at); ++link)
      if (link->second == static_cast<int>(at) && link->first >= 0 && link->first < link->second)
        if (const Path& from = paths[static_cast<size_t>(link->first)]; from.length > paths[at].length)
          paths[at] = from;
    Path& path = paths[at];
    const std::string_view family = operator_family(plain[at]);
    if (family == kViewFamily) continue;
    if (family == "product" || family == "convolution" || family == "norm" || family == "softmax") {
      path = {};
      continue;
    }
    ++path.length;
    path.names.insert(plain[at]);
    const auto kinds = static_cast<int>(path.names.size());
    if (kinds > 1 && path.length >= std::max(kStepsLength, kStepsPeriod * kinds)) return true;
  }
  return false;
}

// "pow, mean, add, 2 mul": each once, without views.
std::string operators_text(const Structure& structure) {
  constexpr size_t kMostNames = 8;
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& op : structure.ops) {
    const std::string name = plain_operator(op);
    if (operator_family(name) == kViewFamily) continue;
    const auto known = std::find_if(counts.begin(), counts.end(), [&](auto& each) { return each.first == name; });
    if (known == counts.end())
      counts.emplace_back(name, 1);
    else
      ++known->second;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(counts.size(), kMostNames); ++i)
    names.push_back(counts[i].second == 1 ? counts[i].first : fmt::format("{} {}", counts[i].second, counts[i].first));
  return fmt::format("{}{}", fmt::join(names, ", "), counts.size() > kMostNames ? ", ..." : "");
}

std::string shapes_text(const Entry& entry) {
  constexpr size_t kMostShapes = 3;
  std::vector<std::string> shapes;
  for (size_t i = 0; i < std::min(entry.inputs.size(), kMostShapes); ++i)
    shapes.push_back(fmt::format("{} {}", fmt::join(entry.inputs[i].extents, "x"), entry.inputs[i].dtype));
  return fmt::format("{}{}", fmt::join(shapes, " and "), entry.inputs.size() > kMostShapes ? " and others" : "");
}

}  // namespace

std::set<std::string> computations_of(const Structure& structure) {
  const Operators ops(structure);
  std::set<std::string> names;
  for (const Computation& each : kComputations)
    if (each.is_in(ops)) names.emplace(each.name);
  if (has_steps(structure)) names.emplace(kSteps);
  return names;
}

std::string title_of(const Entry& entry) {
  const auto computations = computations_of(entry.structure);
  const std::string operators = operators_text(entry.structure), shapes = shapes_text(entry);
  std::string title = fmt::format("{}", fmt::join(computations, ", "));
  if (!operators.empty()) title += title.empty() ? operators : fmt::format(" ({})", operators);
  if (!shapes.empty()) title += ", " + shapes;
  return fmt::format("{}{}{}", title, title.empty() ? "" : ", ", entry.target);
}

}  // namespace tilepilot::retrieval
