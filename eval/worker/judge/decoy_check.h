// Whether a program's generated kernels matter: what the outputs are without them, and whether they do more than copy.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "eval/worker/judge/call_channel.h"
#include "eval/worker/judge/call_source.h"
#include "eval/worker/judge/eager_calls.h"
#include "eval/worker/judge/trial_check.h"

namespace tilepilot::eval {

// How a trial's call is made.
struct Manner {
  bool looks = false;      // at what launches do
  bool backwards = false;  // blocks run from the last to the first
  Ghost ghost = Ghost::none;
};

class DecoyCheck {
 public:
  struct Sides {
    const ReferenceSide& side;
    CandidateLink& link;
    CallChannel& channel;
  };
  // Makes a trial's call; nullopt: it failed, as the link knows.
  using MakeCall = std::function<std::optional<Message>(const Trial&, Manner)>;
  // False: the program failed.
  using LoadWeights = std::function<bool(int set)>;
  // `loaded`: the set before all of this.
  DecoyCheck(const Sides& sides, MakeCall make_call, LoadWeights load_weights, int loaded)
      : sides_(sides),
        make_call_(std::move(make_call)),
        load_weights_(std::move(load_weights)),
        before_(loaded),
        loaded_(loaded) {}

  // Both: nullopt if the kernels matter, or the failure. Launches that do not run must change the outputs, with each
  // thing that the kernels' results may then hold. Where only other weights, or values that the model singles out, show
  // that, a note says so. @pre ghost is not `none`
  std::optional<Verdict> without_kernels(Ghost ghost, CallSource& source, EagerCalls& eager,
                                         const CandidateFacts& facts, std::vector<std::string>& notes);
  // Kernels that copy, or that add zeros, stand beside operators that do the whole job. @pre the task is not degenerate
  std::optional<Verdict> of_work();

 private:
  using Failure = std::optional<Verdict>;
  Failure unless_it_raised() const;
  bool load(int set);
  Failure restored(Failure failure);
  // A call with its kernels is right, whatever their outputs held before.
  Failure on_filled_memory(CallSource& source, EagerCalls& eager);
  // With which trials the outputs differ without kernels; empty: with none.
  Failure find_where_it_matters(Ghost ghost, const CandidateFacts& facts, std::string& where);
  // Ends the search: the kernels did work, or the program failed.
  std::optional<Failure> look(const Trial& trial);
  std::optional<Failure> look_under(std::initializer_list<StressKind> kinds);

  Sides sides_;
  MakeCall make_call_;
  LoadWeights load_weights_;
  const int before_;
  int loaded_;
};

}  // namespace tilepilot::eval
