// Where the inputs of calls come from that no trial prescribes. Bases are fresh secret draws of `get_inputs`; as a draw
// often costs more than a call, most calls get a secret change of a base (input_change.h). A few calls are traps: they
// agree with what an earlier call held in all elements but those of a random stretch.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <vector>

#include "eval/worker/call_batch.h"
#include "eval/worker/truth/reference_side.h"

namespace tilepilot::eval {

struct PlannedBatch {
  Batch batch;
  std::vector<int64_t> fresh;  // bases that candidates do not have: drawn for it, or too large to keep
  std::vector<bool> traps;     // by call
};

class CallSource {
 public:
  // `given`: a trial on inputs as `get_inputs` draws them.
  CallSource(const ReferenceSide& side, const Trial& given);

  // At most so many calls, `lead` of them before the others; fewer where each needs a draw of its own.
  Result<PlannedBatch> next(size_t calls, size_t lead);
  // Gives the memory of draws back: calls to come get fresh ones.
  void forget_draws();
  const std::vector<c10::IValue>& leaves(int64_t base) const { return bases_.at(base); }
  // The inputs of a call as forward takes them.
  std::vector<c10::IValue> leaves_of(const Batch& batch, const Call& call) const;
  // Every call has the same inputs: there is nothing to draw and nothing to change.
  bool repeats() const { return !varies_ && !can_change_; }
  // Of the inputs and outputs of one call.
  int64_t bytes() const { return bytes_ + output_bytes_; }
  // Inputs that the model changes.
  const std::vector<size_t>& mutated() const { return mutated_; }
  uint64_t random() { return random_(); }

 private:
  Status draw(int64_t base);
  void find_changes(const Trial& given);
  size_t most_bases() const;
  bool is_large() const;
  // Adds calls on bases that may be changed.
  void add_changed_calls(size_t calls, PlannedBatch& planned);

  const ReferenceSide& side_;
  std::mt19937_64 random_;
  std::map<int64_t, std::vector<c10::IValue>> bases_;
  std::map<int64_t, bool> used_;     // whether a call had the base as it was drawn
  std::optional<Call> last_call_;    // on bases as they are now
  std::vector<ChangeRule> changes_;  // by tensor
  bool can_change_ = false, varies_ = true;
  bool has_constants_ = false;  // that change all the same
  double draw_seconds_ = 0;
  std::vector<size_t> mutated_;
  int64_t bytes_ = 0, output_bytes_ = 0, next_base_ = 0;
  size_t batches_ = 0;
};

// `leaves` with `tensors` in place of its tensors.
std::vector<c10::IValue> with_tensors(const std::vector<c10::IValue>& leaves, const std::vector<at::Tensor>& tensors);

}  // namespace tilepilot::eval
