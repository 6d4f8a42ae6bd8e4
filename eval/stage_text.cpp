#include "eval/stage_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tilepilot::eval {

using nlohmann::json;

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

json to_json(const std::vector<StageCheck>& stages) {
  json list = json::array();
  for (const StageCheck& stage : stages)
    list.push_back({{"kernel", stage.kernel},
                    {"line", stage.line},
                    {"launch", stage.launch},
                    {"right", stage.right},
                    {"node", stage.node},
                    {"op", stage.op},
                    {"node_line", stage.node_line},
                    {"fraction_wrong", stage.fraction_wrong},
                    {"pattern", stage.pattern}});
  return list;
}

std::vector<StageCheck> stages_from_json(const json& list) {
  std::vector<StageCheck> stages;
  for (const json& node : list)
    stages.push_back({node.at("kernel"), node.at("line"), node.at("launch"), node.at("right"), node.at("node"),
                      node.at("op"), node.at("node_line"), node.at("fraction_wrong"), node.at("pattern")});
  return stages;
}

}  // namespace tilepilot::eval
