// Whether what a call of a trial returned and left behind is right: outputs, inputs, buffers, weights and the memory
// that they lie in. Errors, notes and the guards that looked are added to the verdict.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/worker/judge/candidate_link.h"
#include "eval/worker/truth/compare/output_structure.h"
#include "eval/worker/truth/reference_side.h"

namespace tilepilot::eval {

struct TrialFailure {
  Outcome outcome;
  std::string detail;
  std::string guard = {};  // of `rejected`
};

// What the judge knows of a candidate besides its answer.
struct CandidateFacts {
  const std::string& lacking;  // parameters of the model's that it has none for
  uint64_t memory;             // the seed of what memory held that nobody wrote
};

class TrialCheck {
 public:
  TrialCheck(const ReferenceSide& side, const CandidateLink& link, const CandidateFacts& facts, Verdict& verdict)
      : side_(side), link_(link), facts_(facts), verdict_(verdict) {}

  // nullopt: right. `answer` is to trial `number`, and came by the link.
  std::optional<TrialFailure> check(int number, const Trial& trial, const Message& answer);
  // What is wrong in the answer to a stress trial; empty: nothing. Looked at are values (outputs, inputs,
  // buffers) and whose memory outputs share.
  std::string wrong_under(const StressTrial& stress, const Message& answer);

 private:
  using Failure = std::optional<TrialFailure>;
  struct Place {
    size_t expected, actual;  // which output of the model, which tensor of the candidate
  };
  struct Returned {
    const std::vector<at::Tensor>& tensors;
    const std::vector<std::vector<int64_t>>& strides;
  };

  // What an answer brought, taken apart.
  struct Parts {
    StructureMatch match;
    std::vector<at::Tensor> tensors;
    std::vector<std::string> state, state_aliases;  // names, and whose memory each of them shares
    size_t outputs = 0;
    std::vector<at::Tensor> buffers() const {
      return {tensors.end() - static_cast<int64_t>(state.size()), tensors.end()};
    }
  };
  Failure take_apart(const Trial& trial, const Message& answer, Parts& parts) const;
  Failure check_output(const Place& place, const Returned& returned);
  void hint_at_precision(const Comparison& comparison, const at::Tensor& actual, const Expected& expected);
  Failure check_inputs(const nlohmann::json& body, const std::vector<at::Tensor>& tensors, size_t outputs) const;
  Failure check_weights(const std::vector<std::string>& changed) const;
  Failure check_state(const Parts& parts);
  Failure check_aliases(const nlohmann::json& aliases, const std::vector<size_t>& tensors);

  const ReferenceSide& side_;
  const CandidateLink& link_;
  const CandidateFacts facts_;
  Verdict& verdict_;
  int number_ = 0;  // of the trial; kStress
  static constexpr int kStress = -1;
  bool compares_integers_ = true, compares_changes_ = true;
  const Trial* trial_ = nullptr;
  std::map<std::string, std::string> low_precision_;  // kernels with buffers of 16 bit: of which type
};

// The strides of tensors by their description in an answer.
std::vector<std::vector<int64_t>> strides_of(const nlohmann::json& description);

}  // namespace tilepilot::eval
