// Times candidates and eager side by side: in each round all of them run the same batch of fresh inputs in turn, each
// in its own process, while the others sleep. The number of rounds is fixed before the first counts. What every round's
// calls returned is kept until the judge, afterwards, picks some and compares them.
#pragma once

#include <functional>

#include "eval/worker/judge/call_channel.h"
#include "eval/worker/judge/call_check.h"
#include "eval/worker/judge/examination.h"

namespace tilepilot::eval {

struct Contestant {
  CallChannel& channel;
  std::function<bool(int set)> load_weights;  // false: it failed, and whoever asked knows why
  Verdict& verdict;                           // gets the times; when the candidate fails, `failure` says how
  std::optional<Verdict> failure = std::nullopt;
  size_t place = 0;  // among the requests of a comparison
};

// Something else that is asked of the only contestant, at a random place between rounds. False: it failed.
struct Interlude {
  std::function<bool()> run;
  int weights = -1;  // the set that is loaded afterwards; -1: as before
};

struct SideBySideOptions {
  const ExaminationOptions& examination;
  bool time = true;  // else there are interludes only
};

// False: an interlude failed, or all contestants have, or eager: then every contestant's `failure` is set.
bool run_side_by_side(const ReferenceSide& side, CallSource& source, EagerCalls& eager,
                      std::vector<Contestant>& contestants, std::vector<Interlude> interludes,
                      const SideBySideOptions& options);

}  // namespace tilepilot::eval
