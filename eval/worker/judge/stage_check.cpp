#include "eval/worker/judge/stage_check.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/candidate/launches/recorded_launches.h"
#include "eval/worker/truth/stage_match.h"

namespace tilepilot::eval {
namespace {

constexpr double kSecondsOfStages = 2;

constexpr const char* kTooMuch = "they write too much to be compared";

// Whether an honest process, which stops before, could have sent it.
bool is_within_limits(const nlohmann::json& launches, const std::vector<at::Tensor>& tensors) {
  constexpr size_t kMostTensors = 4096;
  return launches.size() <= RecordedLaunches::kMostLaunches && tensors.size() <= kMostTensors &&
         bytes_of(tensors) <= RecordedLaunches::kMostBytes;
}

// What launches wrote, as the candidate's process tells it.
Result<std::vector<WrittenByLaunch>> launches_in(const Message& answer, const CandidateLink& link) {
  std::vector<at::Tensor> tensors;
  if (answer.body.contains("tensors")) tensors = TRY(link.tensors_of(answer));
  if (!is_within_limits(answer.body.at("launches"), tensors))
    return make_error(DiagnosticKind::worker_unavailable, {}, kTooMuch);
  std::vector<WrittenByLaunch> launches;
  auto next = tensors.begin();
  for (const auto& each : answer.body.at("launches")) {
    WrittenByLaunch launch{each.at("kernel"), std::max(0, each.at("line").get<int>()), {}};
    const auto count = each.at("tensors").get<size_t>();
    if (count > static_cast<size_t>(tensors.end() - next))
      return make_error(DiagnosticKind::worker_unavailable, {}, "what launches wrote did not arrive whole");
    launch.tensors.assign(next, next + static_cast<std::ptrdiff_t>(count));
    next += static_cast<std::ptrdiff_t>(count);
    launches.push_back(std::move(launch));
  }
  return launches;
}

// The model's values of the trial's call, in the run's element type. Throws once the deadline is over.
Status add_values(const ReferenceSide& side, const Trial& trial, StageMatch& match, double deadline) {
  const at::NoGradGuard no_grad;
  const State state = copy_state(side.weights(trial.weights), false, side.device());
  const auto leaves = copy_leaves(trial.leaves, side.device());
  for (const at::Tensor& tensor : tensors_of(leaves)) match.add_value(StageMatch::kGiven, tensor);
  for (const at::Tensor& tensor : state)
    if (tensor.defined()) match.add_value(StageMatch::kGiven, tensor);
  const std::vector<GraphNode>& nodes = side.reference().forward.nodes;
  const auto look = [&](const GraphNode& node, const auto&, std::vector<c10::IValue>& results) {
    if (monotonic_seconds() > deadline) throw std::runtime_error("that takes too long");
    const auto number = static_cast<int>(&node - nodes.data());
    for (const c10::IValue& result : results)
      if (result.isTensor()) match.add_value(number, result.toTensor());
  };
  at::manual_seed(trial.forward_seed);
  TRY(side.eager().run(leaves, state, look));
  return {};
}

// Notes on launches that left elements of what they write as memory held them: a later kernel that reads them makes
// other things of them, so that outputs do not show it.
std::vector<std::string> notes_on_unwritten(const std::vector<WrittenByLaunch>& launches, uint64_t memory) {
  constexpr size_t kMostNotes = 2;
  std::vector<std::string> notes;
  for (const WrittenByLaunch& launch : launches) {
    for (const at::Tensor& tensor : launch.tensors) {
      const int64_t unwritten = unwritten_elements(tensor, memory);
      if (unwritten == 0) continue;
      notes.push_back(
          fmt::format("kernel `{}`{} leaves {} of the {} elements of a tensor that it writes, of shape [{}], "
                      "as memory held them that nobody wrote",
                      launch.kernel, launch.line > 0 ? fmt::format(" (line {})", launch.line) : "", unwritten,
                      tensor.numel(), fmt::join(tensor.sizes(), ", ")));
      if (notes.size() == kMostNotes) return notes;
    }
  }
  return notes;
}

Result<std::vector<StageCheck>> checks_of(const StageSides& sides, std::vector<std::string>& notes) {
  const Trial& trial = sides.trial;
  CandidateLink& link = sides.channel.link();
  const double deadline = monotonic_seconds() + kSecondsOfStages;
  link.set_limit(kSecondsOfStages);
  const auto ended = [&] { return make_error(DiagnosticKind::worker_unavailable, {}, link.failure().detail); };
  if (!link.is_open() || !sides.load_weights()) return ended();
  Batch batch = sides.batch;
  batch.records = true;
  if (!sides.channel.prepare(batch, {{batch.calls.at(0).base, trial.inputs}}, trial.numbers) || !sides.channel.go())
    return ended();
  const auto answer = link.ask({{"op", "launches"}});
  if (!answer) return ended();
  if (!answer->body.at("complete").get<bool>()) return make_error(DiagnosticKind::worker_unavailable, {}, kTooMuch);
  const std::vector<WrittenByLaunch> launches = TRY(launches_in(*answer, link));
  notes = notes_on_unwritten(launches, batch.memory);
  StageMatch match(launches);
  if (!sides.channel.rest()) return ended();
  TRY(add_values(sides.side, trial, match, deadline));
  return match.checks(sides.side.reference().forward);
}

}  // namespace

void add_stages(const StageSides& sides, Verdict& verdict) {
  // Values that other inputs or earlier calls decide are not made again here.
  if (sides.trial.numbers != 0 || sides.trial.before) return;
  const auto note = [&](std::string_view why) {
    verdict.notes.push_back(fmt::format("its kernels were not held against the model's values: {}", why));
  };
  try {
    std::vector<std::string> notes;
    auto checks = checks_of(sides, notes);
    verdict.notes.insert(verdict.notes.end(), notes.begin(), notes.end());
    if (!checks.ok()) return note(checks.error().message);
    verdict.stages = *std::move(checks);
  } catch (const std::exception& error) { note(error.what()); }
}

}  // namespace tilepilot::eval
