#include "eval/worker/judge/timing/profiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "eval/worker/judge/eager_calls.h"
#include "eval/worker/judge/timing/timing_lock.h"
#include "eval/worker/profile/part_recorder.h"

namespace tilepilot::eval {
namespace {

// How long it may take: seconds of calls on each side, the most calls, and the seconds after which what there is must
// do.
struct ProfileEffort {
  double seconds;
  int calls;
  double patience;
};
constexpr ProfileEffort kQuickEffort{0.03, 10, 0.15}, kFullEffort{0.1, 20, 0.5};
constexpr int64_t kProfiledBytes = int64_t{64} << 20;  // of inputs and outputs of a batch

class ProfilePass {
 public:
  ProfilePass(const ProfileSides& sides, Verdict& verdict)
      : sides_(sides), effort_(sides.profiling == Profiling::full ? kFullEffort : kQuickEffort), verdict_(verdict) {}

  Status run() {
    const NoShare alone(sides_.options.share);
    const TimingLock lock(sides_.options.timing_lock, [] {});
    verdict_.seconds["waiting"] += lock.waited_s();
    CallSource& source = sides_.source;
    EagerCalls eager(sides_.side);
    std::optional<PartRecorder> recorder;
    auto* known = sides_.options.eager_profile;
    if (!known || !*known) recorder.emplace(sides_.side.device());
    if (!sides_.load_weights()) return failed();
    const double begin = monotonic_seconds();
    const int wanted = 1 + wanted_calls();
    // The first call of each side does not count.
    for (int done = 0; done < wanted && (done < 2 || monotonic_seconds() - begin < effort_.patience);) {
      if (done > 0 && reloads() && !sides_.load_weights()) return failed();
      if (reloads()) eager.use_weights(eager.weights());
      const PlannedBatch planned = TRY(plan(source, wanted - done));
      TRY(run_candidate(source, planned));
      if (recorder) TRY(eager.run_profiled(planned.batch, source, *recorder));
      done += static_cast<int>(planned.batch.calls.size());
    }
    tell(recorder ? std::optional(recorder->record()) : std::nullopt);
    if (sides_.profiling != Profiling::full || sides_.side.device().is_cpu()) return {};
    return time_by_device(source, recorder ? std::optional(recorder->record()) : std::nullopt);
  }

 private:
  bool reloads() const { return !sides_.side.judged_state().empty(); }
  Error failed() const {
    return make_error(DiagnosticKind::worker_unavailable, {}, sides_.channel.link().failure().detail);
  }

  int wanted_calls() const {
    const double call = 1e-6 * std::max(verdict_.candidate->median_us, verdict_.eager->median_us);
    return std::clamp(static_cast<int>(std::min(1e6, effort_.seconds / std::max(call, 1e-7))), 1, effort_.calls);
  }

  Result<PlannedBatch> plan(CallSource& source, int left) const {
    const int64_t fit = std::max<int64_t>(1, kProfiledBytes / std::max<int64_t>(source.bytes(), 1));
    PlannedBatch planned = TRY(source.next(reloads() ? 1 : static_cast<size_t>(std::min<int64_t>(left, fit)), 0));
    planned.batch.profile = true;
    planned.batch.waits = false;
    return planned;
  }

  Status run_candidate(const CallSource& source, const PlannedBatch& planned) {
    CallChannel& channel = sides_.channel;
    channel.link().set_limit(sides_.options.judge.time_limit_s);
    const std::vector<CallChannel::Base> bases = fresh_bases(planned, source);
    if (!channel.prepare(planned.batch, bases)) return failed();
    const auto ran = channel.go();
    if (!ran || !channel.rest()) return failed();
    record_ = calls_record_from_json(ran->profile);
    return {};
  }

  // Once more, with the same calls as far as parts go. Where that fails the profile stays as it is.
  Status time_by_device(CallSource& source, const std::optional<CallsRecord>& eager) {
    if (reloads() && !sides_.load_weights()) return failed();
    PlannedBatch planned = TRY(plan(source, wanted_calls()));
    planned.batch.by_device = true;
    TRY(run_candidate(source, planned));
    tell(eager);
    return {};
  }

  // On a GPU, times of calls are those of the rounds, which nobody watched.
  void tell(const std::optional<CallsRecord>& eager) {
    const bool on_cpu = sides_.side.device().is_cpu();
    const JudgeOptions& judge = sides_.options.judge;
    const auto unwatched = [&](const std::optional<Timing>& timing) { return on_cpu ? std::nullopt : timing; };
    const ProfiledMachine machine =
        on_cpu ? profiled_processor(judge.threads, judge.cache) : profiled_gpu(sides_.side.gpu()->name());
    Profile profile = profile_of(record_, machine, judge.target, unwatched(verdict_.candidate));
    if (eager) profile.eager = side_profile_of(*eager, unwatched(verdict_.eager));
    if (auto* known = sides_.options.eager_profile) {
      if (eager) *known = profile.eager;
      profile.eager = *known;
    }
    verdict_.profile = std::make_shared<const Profile>(std::move(profile));
  }

  const ProfileSides& sides_;
  const ProfileEffort effort_;
  Verdict& verdict_;
  CallsRecord record_;
};

}  // namespace

void profile_verified(const ProfileSides& sides, Verdict& verdict) {
  const auto note = [&](std::string_view why) { verdict.notes.push_back(fmt::format("not profiled: {}", why)); };
  try {
    if (!sides.channel.link().is_open()) return note("the program's process had ended");
    if (auto profiled = ProfilePass(sides, verdict).run(); !profiled.ok())
      note((verdict.profile ? "by CUPTI: " : "") + profiled.error().message);
  } catch (const nlohmann::json::exception&) {
    note("its process sent no valid record of its calls");
  } catch (const std::exception& error) { note(error.what()); }
}

}  // namespace tilepilot::eval
