// Profiles as JSON: in verdicts, in the store, and for programs that read ours.
#include "eval/profile/profile.h"

#include <nlohmann/json.hpp>

#include "eval/profile/profile_json.h"

namespace tilepilot::eval {

using nlohmann::json;

namespace {

json operators_json(const std::vector<OperatorProfile>& operators) {
  json list = json::array();
  for (const OperatorProfile& each : operators)
    list.push_back({{"name", each.name},
                    {"line", each.line},
                    {"count", each.count},
                    {"time", timing_to_json(each.time)},
                    {"us", each.us},
                    {"share", each.share}});
  return list;
}

std::vector<OperatorProfile> read_operators(const json& list) {
  std::vector<OperatorProfile> operators;
  for (const json& node : list)
    operators.push_back({node.at("name"), node.at("line"), node.at("count"), timing_from_json(node.at("time")),
                         node.at("us"), node.at("share")});
  return operators;
}

json kernel_json(const KernelProfile& kernel) {
  json object = {{"name", kernel.name},
                 {"number", kernel.number},
                 {"line", kernel.line},
                 {"launches", kernel.launches},
                 {"time", timing_to_json(kernel.time)},
                 {"us", kernel.us},
                 {"share", kernel.share},
                 {"work", work_to_json(kernel.work)},
                 {"roofline_us", kernel.roofline_us},
                 {"bound", kernel.bound},
                 {"bytes_per_s", kernel.bytes_per_s()},
                 {"flops_per_s", kernel.flops_per_s()},
                 {"efficiency", kernel.efficiency()},
                 {"instructions", kernel.instructions},
                 {"choices", choices_to_json(kernel.choices)}};
  if (kernel.gpu) object["gpu"] = gpu_to_json(*kernel.gpu);
  if (kernel.cpu) object["cpu"] = cpu_to_json(*kernel.cpu);
  if (!kernel.metrics.empty()) object["metrics"] = kernel.metrics;
  return object;
}

KernelProfile read_kernel(const json& node) {
  KernelProfile kernel;
  node.at("name").get_to(kernel.name);
  node.at("number").get_to(kernel.number);
  node.at("line").get_to(kernel.line);
  node.at("launches").get_to(kernel.launches);
  kernel.time = timing_from_json(node.at("time"));
  node.at("us").get_to(kernel.us);
  node.at("share").get_to(kernel.share);
  kernel.work = work_from_json(node.at("work"));
  node.at("roofline_us").get_to(kernel.roofline_us);
  node.at("bound").get_to(kernel.bound);
  node.at("instructions").get_to(kernel.instructions);
  kernel.choices = choices_from_json(node.at("choices"));
  if (auto gpu = node.find("gpu"); gpu != node.end()) kernel.gpu = gpu_from_json(*gpu);
  if (auto cpu = node.find("cpu"); cpu != node.end()) kernel.cpu = cpu_from_json(*cpu);
  if (auto metrics = node.find("metrics"); metrics != node.end()) metrics->get_to(kernel.metrics);
  return kernel;
}

}  // namespace

json timing_to_json(const Timing& timing) {
  return {{"median_us", timing.median_us},
          {"low_us", timing.low_us},
          {"high_us", timing.high_us},
          {"samples", timing.samples}};
}

Timing timing_from_json(const json& node) {
  return {node.at("median_us"), node.at("low_us"), node.at("high_us"), node.at("samples")};
}

json work_to_json(const KernelWork& work) {
  return {{"least_bytes", work.least_bytes},
          {"requested_bytes", work.requested_bytes},
          {"product_flops", work.product_flops},
          {"other_flops", work.other_flops},
          {"functions", work.functions},
          {"product_type", work.product_type},
          {"exact", work.exact}};
}

KernelWork work_from_json(const json& node) {
  return {node.at("least_bytes"), node.at("requested_bytes"), node.at("product_flops"), node.at("other_flops"),
          node.at("functions"),   node.at("product_type"),    node.at("exact")};
}

json gpu_to_json(const GpuUse& gpu) {
  return {{"registers", gpu.registers},
          {"spilled_bytes", gpu.spilled_bytes},
          {"static_shared", gpu.static_shared},
          {"dynamic_shared", gpu.dynamic_shared},
          {"grid", gpu.grid},
          {"threads", gpu.threads},
          {"cluster", gpu.cluster},
          {"resident_blocks", gpu.resident_blocks},
          {"multiprocessors", gpu.multiprocessors},
          {"occupancy", gpu.occupancy}};
}

GpuUse gpu_from_json(const json& node) {
  GpuUse gpu;
  node.at("registers").get_to(gpu.registers);
  node.at("spilled_bytes").get_to(gpu.spilled_bytes);
  node.at("static_shared").get_to(gpu.static_shared);
  node.at("dynamic_shared").get_to(gpu.dynamic_shared);
  node.at("grid").get_to(gpu.grid);
  node.at("threads").get_to(gpu.threads);
  node.at("cluster").get_to(gpu.cluster);
  node.at("resident_blocks").get_to(gpu.resident_blocks);
  node.at("multiprocessors").get_to(gpu.multiprocessors);
  node.at("occupancy").get_to(gpu.occupancy);
  return gpu;
}

json cpu_to_json(const CpuUse& cpu) {
  return {{"blocks", cpu.blocks}, {"threads", cpu.threads}, {"checked_lines", cpu.checked_lines}};
}
CpuUse cpu_from_json(const json& node) { return {node.at("blocks"), node.at("threads"), node.at("checked_lines")}; }

json choices_to_json(const std::vector<Choice>& choices) {
  json list = json::array();
  for (const Choice& choice : choices)
    list.push_back(
        {{"line", choice.line}, {"what", choice.what}, {"chosen", choice.chosen}, {"obstacles", choice.obstacles}});
  return list;
}

std::vector<Choice> choices_from_json(const json& list) {
  std::vector<Choice> choices;
  for (const json& node : list)
    choices.push_back({node.at("line"), node.at("what"), node.at("chosen"), node.at("obstacles")});
  return choices;
}

json to_json(const Profile& profile) {
  json kernels = json::array();
  for (const KernelProfile& kernel : profile.kernels) kernels.push_back(kernel_json(kernel));
  const ProfiledMachine& machine = profile.machine;
  json object = {{"target", profile.target},
                 {"machine",
                  {{"name", machine.name},
                   {"bytes_per_s", machine.bytes_per_s},
                   {"half_flops", machine.half_flops},
                   {"single_flops", machine.single_flops},
                   {"other_flops", machine.other_flops}}},
                 {"method", profile.method},
                 {"call", timing_to_json(profile.call)},
                 {"kernels", kernels},
                 {"operators", operators_json(profile.operators)},
                 {"host_us", profile.host_us},
                 {"host_share", profile.host_share},
                 {"notes", profile.notes}};
  if (profile.eager)
    object["eager"] = {{"call", timing_to_json(profile.eager->call)},
                       {"operators", operators_json(profile.eager->operators)},
                       {"other_us", profile.eager->other_us}};
  return object;
}

Profile profile_from_json(const json& node) {
  Profile profile;
  node.at("target").get_to(profile.target);
  const json& machine = node.at("machine");
  profile.machine = {machine.at("name"), machine.at("bytes_per_s"), machine.at("half_flops"),
                     machine.at("single_flops"), machine.at("other_flops")};
  node.at("method").get_to(profile.method);
  profile.call = timing_from_json(node.at("call"));
  for (const json& kernel : node.at("kernels")) profile.kernels.push_back(read_kernel(kernel));
  profile.operators = read_operators(node.at("operators"));
  node.at("host_us").get_to(profile.host_us);
  node.at("host_share").get_to(profile.host_share);
  node.at("notes").get_to(profile.notes);
  if (auto eager = node.find("eager"); eager != node.end())
    profile.eager =
        SideProfile{timing_from_json(eager->at("call")), read_operators(eager->at("operators")), eager->at("other_us")};
  return profile;
}

}  // namespace tilepilot::eval
