#include "agent/eager_times.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/runtime/machine.h"
#include "compiler/runtime/sha256.h"
#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

// What the times depend on.
std::string key_of(const EagerQuestion& question) {
  const eval::Reference& reference = question.reference;
  runtime::Sha256 key;
  for (const std::string& part : {reference.model_source, reference.dtype, reference.scale, reference.torch_version,
                                  question.target, runtime::processor_identity(), runtime::host_name()})
    key.add_field(part);
  key.add_field(fmt::format("{} {} {} {}", reference.seed, reference.training, question.judge.threads,
                            reference.forward.nodes.size()));
  return key.hex();
}

// Times of a busy machine hold for the requests of one session only.
bool is_worth_keeping(const eval::EagerTimes& times, const std::filesystem::path& file) {
  constexpr std::chrono::minutes kSession{10};
  std::error_code code;
  const auto written = std::filesystem::last_write_time(file, code);
  return times.waited < eval::EagerTimes::kBusy ||
         (!code && std::filesystem::file_time_type::clock::now() - written < kSession);
}

bool is_complete(const eval::EagerTimes& times, const eval::Reference& reference) {
  return times.node_us.size() == reference.forward.nodes.size() && times.call.median_us > 0;
}

std::optional<eval::EagerTimes> kept_times(const std::filesystem::path& file, const eval::Reference& reference) {
  std::string text;
  if (!read_file(file, text)) return std::nullopt;
  try {
    auto times = eval::eager_times_from_json(json::parse(text));
    const bool holds = is_complete(times, reference) && is_worth_keeping(times, file);
    return holds ? std::optional(std::move(times)) : std::nullopt;
  } catch (const json::exception&) { return std::nullopt; }  // measured again
}

// Where it cannot be written, the next request measures again.
void keep_times(const std::filesystem::path& file, const eval::EagerTimes& times) {
  std::error_code code;
  std::filesystem::create_directories(file.parent_path(), code);
  write_file(file, to_json(times).dump() + "\n");
}

}  // namespace

std::optional<eval::EagerTimes> eager_times(const EagerQuestion& question,
                                            const std::function<Result<eval::EagerTimes>()>& measure,
                                            const std::function<void(const std::string&)>& progress) {
  const double modelled = question.preflight.eager_s;
  const auto unknown = [&](std::string_view why) -> std::optional<eval::EagerTimes> {
    progress(fmt::format("eager's operators are not measured: {}", why));
    return std::nullopt;
  };
  if (modelled > kLongestEagerCall) return unknown(fmt::format("a call takes about {:.1f} s", modelled));
  const std::filesystem::path folder = question.judge.cache;
  const auto file = folder / "eager" / (key_of(question) + ".json");
  if (!folder.empty())
    if (auto kept = kept_times(file, question.reference)) return kept;
  auto times = measure();
  if (!times.ok()) return unknown(times.error().message);
  if (!is_complete(*times, question.reference)) return unknown("the worker's answer is not about this model");
  if (!folder.empty()) keep_times(file, *times);
  return *std::move(times);
}

}  // namespace tilepilot::agent
