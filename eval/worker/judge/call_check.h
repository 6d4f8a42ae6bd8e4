// Whether what a call returned is what eager gives for the same inputs. Eager's own answer is compared first; where the
// two differ by more than the rule allows, or when asked, the float64 truth decides.
#pragma once

#include <optional>
#include <string>

#include "eval/worker/judge/candidate_link.h"
#include "eval/worker/judge/eager_calls.h"

namespace tilepilot::eval {

struct CallToCheck {
  const PlannedBatch& planned;
  const EagerBatch& eager;
  size_t call = 0;
  int weights = 0;
  bool against_truth = false;
};

class CallCheck {
 public:
  CallCheck(const ReferenceSide& side, const CallSource& source) : side_(side), source_(source) {}

  // nullopt: right. `answer` came by `link`.
  std::optional<Verdict> check(const CallToCheck& call, const CandidateLink& link, const Message& answer) const;
  // Whether all outputs are right, whatever else the call did.
  bool gives_the_same(const CallToCheck& call, const CandidateLink& link, const Message& answer) const;
  // What is wrong with the outputs of somebody who is no candidate: tensors in the model's order. Empty: nothing.
  std::string fault_of(const CallToCheck& call, const std::vector<at::Tensor>& outputs) const;

 private:
  // What an answer holds.
  struct Returned {
    const Message& answer;
    std::vector<at::Tensor> tensors;
    std::vector<std::vector<int64_t>> strides;
  };
  static Result<Returned> open(const CandidateLink& link, const Message& answer);
  Verdict not_opened(const CallToCheck& call, const Diagnostic& error, const Message& answer) const;
  std::optional<Verdict> check_outputs(const CallToCheck& call, const Returned& returned) const;
  bool is_old_answer(const CallToCheck& call, size_t output, const CandidateOutput& actual,
                     const Expected& expected) const;
  std::optional<Verdict> check_inputs(const CallToCheck& call, const Returned& returned) const;

  const ReferenceSide& side_;
  const CallSource& source_;
};

// Two calls share the memory of their outputs: that of the first has changed, or will, or its answer was given again.
inline constexpr const char* kReusesMemory =
    "two calls returned the same memory: the program returns memory it uses again, or an answer that it kept";

// Of an input, by number, that the model overwrites.
inline constexpr const char* kLeftAlone = "input {} stays as it was, where the model overwrites it";

// A verdict of a guard.
Verdict rejection(std::string guard, std::string detail);

}  // namespace tilepilot::eval
