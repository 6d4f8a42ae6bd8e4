// How far what several calls leave in the model's buffers may be from what eager's calls leave, which err themselves.
#pragma once

#include <map>

#include "eval/worker/truth/reference_side.h"

namespace tilepilot::eval {

class StateNoise {
 public:
  // Found in a trial with these weights; of none, if there is no such trial.
  StateNoise(const ReferenceSide& side, int weights);

  // After so many calls that began with the weights, and have made `model` of the value: what one call errs by, times
  // as often as the calls have changed the value by what one of them changes. A mean that forgets earlier calls forgets
  // their errors; a sum has all of them. Undefined: not known.
  at::Tensor after(size_t calls, size_t value, const at::Tensor& model) const;

 private:
  struct Change {
    at::Tensor start;
    double of_one_call = 0;  // rms
    at::Tensor noise;
  };
  std::map<size_t, Change> changes_;  // by value of the graph
};

}  // namespace tilepilot::eval
