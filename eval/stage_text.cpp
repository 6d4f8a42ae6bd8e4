#include "eval/stage_text.h"

#include <fmt/format.h>

namespace tilepilot::eval {
namespace {

std::string kernel_of_stage(const StageCheck& stage) {
  return fmt::format("kernel `{}`{}", stage.kernel, stage.line > 0 ? fmt::format(" (line {})", stage.line) : "");
}

std::string node_of_stage(const StageCheck& stage) {
  return fmt::format("`{}` (node {}{})", stage.op, stage.node,
                     stage.node_line > 0 ? fmt::format(", line {} of the model", stage.node_line) : "");
}

std::string text_of_stage(const StageCheck& stage) {
  if (stage.right) return fmt::format("{} writes what {} gives", kernel_of_stage(stage), node_of_stage(stage));
  if (stage.node == 0)
    return fmt::format("{} writes no value of the model, element for element", kernel_of_stage(stage));
  return fmt::format("{} comes nearest to {}: {:.3g} % of its elements are wrong{}{}", kernel_of_stage(stage),
                     node_of_stage(stage), stage.fraction_wrong * 100, stage.pattern.empty() ? "" : ", ",
                     stage.pattern);
}

}  // namespace

std::string stages_text(const std::vector<StageCheck>& stages) {
  std::string text;
  for (const StageCheck& stage : stages) text += (text.empty() ? "" : "; ") + text_of_stage(stage);
  if (stages.size() == 1 && stages[0].right)
    text += ", and is the last one: what the model computes after that is missing, or done wrong outside of kernels";
  return text;
}

}  // namespace tilepilot::eval
