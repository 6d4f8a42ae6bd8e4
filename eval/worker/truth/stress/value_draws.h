// Other values of a tensor's kind: what an input or a buffer could hold as well.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "eval/graph/singled_out.h"

namespace tilepilot::eval {

// What the given trials show of an input.
struct InputFacts {
  bool fixed = false;    // the same values in every trial
  bool sorted = true;    // integers: never descending, as offsets are
  bool distinct = true;  // integers: no value twice, as in a permutation
  double low = 0, high = 0;
  at::Tensor zeros = {};  // floating numbers: which are zero in every trial, if a part is, as in a triangular matrix
  // The values, where each trial has the same few: floating ones as in masks of zeros and ones, integers if there are
  // others between them, as of labels -1 and 1.
  std::vector<double> few = {};
  bool one_hot = false;    // floating ones: zeros, and a one in each row
  bool ascending = false;  // floating numbers: along the last axis, as the bounds of bins are
  bool symmetric = false;  // floating numbers: in the last two axes
  std::string digest;      // of the first trial
  bool seen_twice = false;
  SingledOut singled_out = {};  // by the model

  // Floating numbers that stand for a choice.
  bool is_mask() const { return few == std::vector<double>{0, 1}; }
};

// Adds what an input of a trial shows.
void see_values(const at::Tensor& input, bool first, InputFacts& facts);

// A generator of its own on a device.
at::Generator generator_on(c10::Device device, uint64_t seed);

// The same numbers for a seed, on the device of the tensor: others take a processor longer than most models.
class Draws {
 public:
  Draws(const at::Tensor& like, uint64_t seed);

  at::Tensor uniform();  // in [0, 1), float32
  at::Tensor normal();
  at::Tensor integers(int64_t low, int64_t high);  // both included
  at::Tensor permuted();                           // the tensor's own elements
  // `count` different numbers from 0 to below `end`.
  at::Tensor some_of(int64_t end, int64_t count);

 private:
  at::Tensor place(at::ScalarType type) const;

  const at::Tensor& like_;
  at::Generator generator_;
};

// A number for each row (along the last axis), to be compared with each element of it; 1 where there are no rows.
at::Tensor uniform_by_row(const at::Tensor& tensor, Draws& draws);
// Which of numbers that were drawn evenly are no more than `share`: of one number alone by chance, of several the least
// at any rate, so that what a kind of stress is there for is there in every draw.
at::Tensor some_of_each_draw(const at::Tensor& drawn, double share);
bool is_integer(const at::Tensor& tensor);  // bool is none
// Whether it holds few different values, many times each: labels, masks.
bool are_choices(const at::Tensor& tensor);
// Along the last axis.
at::Tensor sorted_values(const at::Tensor& tensor);
// Masks of zeros and ones are drawn anew, those with infinities permuted; else each element changes by up to a half,
// and its sign if `signs`.
at::Tensor other_floats(const at::Tensor& tensor, bool signs, Draws& draws);
// In the range that the facts tell, or from the few values that they tell: permutations stay such, offsets keep order
// and ends. One number alone becomes another below twice it, or below itself.
at::Tensor other_integers(const at::Tensor& tensor, const InputFacts& facts, bool smaller, Draws& draws);
// Whether integers are offsets, all different, that a model may be given with repetitions as well: as empty parts.
bool are_offsets(const at::Tensor& tensor, const InputFacts& facts);
// Ascending or symmetric again, as the input is in every trial.
at::Tensor in_form(const at::Tensor& tensor, const InputFacts& facts);
// Of the few values; of one-hot rows others.
at::Tensor other_choices(const at::Tensor& tensor, const InputFacts& facts, Draws& draws);
// Whether integers may be any of their type, as far as the model tells.
bool may_be_wide(const at::Tensor& tensor, const InputFacts& facts);
// Of 8 and 16 bits all that there are; of more, up to 64 times those seen.
at::Tensor wide_integers(const at::Tensor& tensor, const InputFacts& facts, Draws& draws);
// Others, of which one in four is the one before; the ends stay.
at::Tensor repeated_offsets(const at::Tensor& tensor, Draws& draws);

}  // namespace tilepilot::eval
