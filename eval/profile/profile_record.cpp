#include "eval/profile/profile_record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "eval/profile/profile_json.h"
#include "eval/samples.h"

namespace tilepilot::eval {

using nlohmann::json;

namespace {

constexpr size_t kMostRecordedParts = 4096, kMostRecordedCalls = 4096;
constexpr size_t kMostRecordedSeconds = 1 << 18;  // of one part

bool is_half_type(const std::string& type) { return type == "float16" || type == "bfloat16"; }
bool is_byte_type(const std::string& type) { return type.starts_with("float8") || type == "int8" || type == "uint8"; }

bool is_possible(const PartRecord& part) {
  const KernelWork& work = part.work;
  const auto is_amount = [](double x) { return std::isfinite(x) && x >= 0; };
  return part.kernel >= -1 && part.line >= 0 && !part.seconds.empty() && part.seconds.size() <= kMostRecordedSeconds &&
         std::all_of(part.seconds.begin(), part.seconds.end(), is_amount) && is_amount(work.least_bytes) &&
         is_amount(work.requested_bytes) && is_amount(work.product_flops) && is_amount(work.other_flops) &&
         is_amount(work.functions);
}

double sum_of(const std::vector<double>& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

// A part's share of a call, where `calls` were watched and each takes `call_us`.
struct PartTimes {
  Timing time;
  double count = 0, us = 0;
};
PartTimes times_of(const PartRecord& part, size_t calls) {
  const auto count = static_cast<double>(std::max<size_t>(calls, 1));
  return {timing_of(part.seconds), static_cast<double>(part.seconds.size()) / count,
          sum_of(part.seconds) * 1e6 / count};
}

KernelProfile kernel_profile(const PartRecord& part, size_t calls, const ProfiledMachine& machine) {
  const PartTimes times = times_of(part, calls);
  KernelProfile kernel;
  kernel.name = part.name;
  kernel.number = part.kernel;
  kernel.line = part.line;
  kernel.launches = times.count;
  kernel.time = times.time;
  kernel.us = times.us;
  kernel.work = part.work;
  const LaunchRoofline least = launch_roofline(part.work, machine);
  kernel.roofline_us = least.us;
  kernel.bound = least.bound;
  kernel.gpu = part.gpu;
  kernel.cpu = part.cpu;
  kernel.instructions = part.instructions;
  kernel.choices = part.choices;
  return kernel;
}

OperatorProfile operator_profile(const PartRecord& part, size_t calls) {
  const PartTimes times = times_of(part, calls);
  return {part.name, part.line, times.count, times.time, times.us, 0};
}

const auto is_dearer = [](const auto& a, const auto& b) { return a.us > b.us; };

}  // namespace

void CallsRecord::without_times() {
  method = "none";
  std::fill(calls.begin(), calls.end(), 0);
  for (PartRecord& part : parts) std::fill(part.seconds.begin(), part.seconds.end(), 0);
}

json to_json(const CallsRecord& record) {
  json parts = json::array();
  for (const PartRecord& part : record.parts) {
    json object = {{"name", part.name}, {"kernel", part.kernel}, {"line", part.line}, {"seconds", part.seconds}};
    if (part.kernel >= 0)
      object.update({{"work", work_to_json(part.work)},
                     {"instructions", part.instructions},
                     {"choices", choices_to_json(part.choices)}});
    if (part.gpu) object["gpu"] = gpu_to_json(*part.gpu);
    if (part.cpu) object["cpu"] = cpu_to_json(*part.cpu);
    parts.push_back(std::move(object));
  }
  return {{"method", record.method}, {"calls", record.calls}, {"parts", parts}};
}

CallsRecord calls_record_from_json(const json& node) {
  CallsRecord record;
  node.at("method").get_to(record.method);
  for (const double seconds : node.at("calls").get<std::vector<double>>())
    if (std::isfinite(seconds) && seconds > 0 && record.calls.size() < kMostRecordedCalls)
      record.calls.push_back(seconds);
  for (const json& each : node.at("parts")) {
    PartRecord part{each.at("name"), each.at("kernel"), each.at("line"), each.at("seconds")};
    if (part.kernel >= 0) {
      part.work = work_from_json(each.at("work"));
      each.at("instructions").get_to(part.instructions);
      part.choices = choices_from_json(each.at("choices"));
    }
    if (auto gpu = each.find("gpu"); gpu != each.end()) part.gpu = gpu_from_json(*gpu);
    if (auto cpu = each.find("cpu"); cpu != each.end()) part.cpu = cpu_from_json(*cpu);
    if (is_possible(part) && record.parts.size() < kMostRecordedParts) record.parts.push_back(std::move(part));
  }
  return record;
}

void take_device_times(CallsRecord& record, const std::vector<std::string>& functions,
                       const std::vector<DeviceTime>& times, size_t calls) {
  for (size_t i = 0; i < std::min(functions.size(), record.parts.size()); ++i) {
    const std::string& function = functions[i];
    if (function.empty() || std::count(functions.begin(), functions.end(), function) != 1) continue;
    std::vector<double> seconds;
    for (const DeviceTime& time : times)
      if (time.name == function) seconds.push_back(time.seconds);
    std::vector<double>& known = record.parts[i].seconds;
    if (seconds.empty() || seconds.size() * record.calls.size() != known.size() * calls) continue;
    // As many as before, so that a call has as many as it had.
    for (size_t k = 0; k < known.size(); ++k) known[k] = seconds[k % seconds.size()];
    record.method = "CUPTI";
  }
}

LaunchRoofline launch_roofline(const KernelWork& work, const ProfiledMachine& machine) {
  if (machine.bytes_per_s <= 0) return {};
  const bool half = is_half_type(work.product_type), byte = is_byte_type(work.product_type);
  const double products = (half || byte ? machine.half_flops : machine.single_flops) * (byte ? 2 : 1);
  const double memory = work.least_bytes / machine.bytes_per_s;
  const double compute = work.product_flops / products + (work.flops() - work.product_flops) / machine.other_flops;
  return {std::max(memory, compute) * 1e6, memory >= compute ? "memory" : "compute"};
}

ProfiledMachine profiled_processor(int threads, const std::filesystem::path& cache) {
  const MachineRates rates = rates_of_processor(threads, cache);
  return {rates.name, rates.bytes_per_s, rates.product_flops, rates.vector_flops, rates.vector_flops};
}

ProfiledMachine profiled_gpu(const std::string& name) {
  const auto half = rates_of_device(name, "fp16"), single = rates_of_device(name, "fp32");
  if (!half || !single) return {name};
  return {name, half->bytes_per_s, half->product_flops, single->product_flops, single->other_flops};
}

Profile profile_of(const CallsRecord& record, const ProfiledMachine& machine, const std::string& target,
                   const std::optional<Timing>& call) {
  Profile profile;
  profile.target = target;
  profile.machine = machine;
  profile.method = record.method;
  profile.call = call ? *call : timing_of(record.calls);
  double inside = 0;
  for (const PartRecord& part : record.parts) {
    inside += times_of(part, record.calls.size()).us;
    if (part.kernel >= 0)
      profile.kernels.push_back(kernel_profile(part, record.calls.size(), machine));
    else
      profile.operators.push_back(operator_profile(part, record.calls.size()));
  }
  // Of calls that were watched themselves the mean is what the parts add up to.
  const double watched =
      record.calls.empty() ? 0 : sum_of(record.calls) * 1e6 / static_cast<double>(record.calls.size());
  const double whole = std::max(call ? call->median_us : watched, inside);
  profile.host_us = whole - inside;
  const auto share = [&](double us) { return whole > 0 ? us / whole : 0; };
  profile.host_share = share(profile.host_us);
  for (KernelProfile& kernel : profile.kernels) kernel.share = share(kernel.us);
  for (OperatorProfile& each : profile.operators) each.share = share(each.us);
  if (std::any_of(profile.kernels.begin(), profile.kernels.end(),
                  [](const auto& kernel) { return kernel.gpu.has_value(); }))
    profile.notes.push_back(
        "bank conflicts and sectors are not counted here; `tilepilot profile FILE --call ... --target emulate:sm_90a` "
        "counts them");
  std::stable_sort(profile.kernels.begin(), profile.kernels.end(), is_dearer);
  std::stable_sort(profile.operators.begin(), profile.operators.end(), is_dearer);
  return profile;
}

SideProfile side_profile_of(const CallsRecord& record, const std::optional<Timing>& call) {
  Profile profile = profile_of(record, {}, "", call);
  return {profile.call, std::move(profile.operators), profile.host_us};
}

}  // namespace tilepilot::eval
