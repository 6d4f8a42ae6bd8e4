// Inputs that `get_inputs` does not draw, made from those that it does: other signs, other sizes, ties, zeros, other
// masks and indices. A program that is right on these too computes what the model computes, not what the model happens
// to give for one distribution.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string_view>
#include <vector>

#include "eval/worker/truth/stress/value_draws.h"

namespace tilepilot::eval {

enum class StressKind {
  none,       // as given
  signs,      // of floating inputs, random for each element
  negative,   // floating inputs are minus their magnitude, times 2^strength; from kOpposite on every second one plus
  large,      // floating inputs times 2^strength
  constants,  // inputs that `get_inputs` makes the same every time get other values, or change places
  together,   // constants, and other floating inputs times 2^strength
  indices,    // integers drawn anew between the least and the largest seen; random masks
  heavy,      // floating inputs times 2^(3 z), z normal: few elements carry all
  extreme,    // one element in 64 times 2^strength
  single,     // one element, the first, the last or another, is larger by 2^strength
  ends,       // of floating inputs and masks the last slice, or the first, is unlike all others (EndForm)
  small,      // floating inputs times 2^-strength
  faint,      // one row in eight times 2^-strength: next to nothing, and still in order
  zeros,      // floating inputs are zero, or some of their elements and rows
  ties,       // floating inputs rounded to few values
  grid,       // floating inputs rounded to multiples of 2^-strength
  halves,     // floating inputs are multiples of one half, and none is larger than strength, which many are
  sorted,     // floating inputs sorted along their last axis
  alike,      // rows of floating inputs nearly the same
  shifted,    // floating inputs times 2^-strength, and one
  positive,   // floating inputs are their magnitude times 2^strength
  agree,      // half of an input's elements, or rows, are those of the first input of its form; of whole numbers also
              // some of another form's
  nearly,     // the same, and one rounding or a few away
  near,       // rows of floating inputs are near those of a weight, or opposite to them (weight_rows.h)
  special,    // some elements have a value that the model singles out
  repeated,   // integers drawn from few values
  wide,       // integers that arithmetic alone is done with: all of a short type, or far beyond those seen
  numbers,    // tensors as given; numbers among the inputs have other values
  buffers,    // inputs as given; the model's buffers, but for running statistics, have other values
  weights,    // inputs as given; parameters of other signs and sizes
};
std::string_view to_string(StressKind kind);  // "random signs"

// What an `ends` trial is: along which axis the slice lies (counted from the last one, 1; 0: one element of all), on
// which side of zero all others are, and how large the slice is.
struct EndForm {
  int axis = 1;
  bool first = false, others_positive = false;
  int power = 0;
  int strength() const { return 1000 * power + 100 * (first ? 1 : 0) + 10 * (others_positive ? 1 : 0) + axis; }
  static EndForm of(int strength) {
    return {strength % 10, strength / 100 % 10 == 1, strength / 10 % 10 == 1, strength / 1000};
  }
};

// Whether elements that differed still do: which of equals an output chose is open.
bool keeps_apart(StressKind kind);
// Whether many elements become equal.
bool makes_equals(StressKind kind);
// Whether elements may become equal, or few values come up often.
bool may_make_equals(StressKind kind);
// Whether the kind is about sizes, so that weights may be others as well: numbers that it makes round, equal or special
// are so behind given weights alone.
bool is_of_size(StressKind kind);

// From here on a strength of `negative` says that inputs are on either side of zero by turns.
inline constexpr int kOpposite = 100;

// Elements of an input that stay as given: those at `begin`, `begin` + `step`, ... below `end` along an axis.
struct KeptPart {
  int input = 0;
  int axis = -1;  // -1: all elements
  int64_t begin = 0, end = 0, step = 1;
  bool is_whole() const { return axis < 0; }
};

struct StressRecipe {
  StressKind kind = StressKind::none;
  int strength = 0;                 // by kind; of buffers and weights: which (weight_sets.h)
  std::vector<KeptPart> kept = {};  // of the inputs that the kind changes
};

// Whether all of an input stays as given.
bool is_kept(const StressRecipe& recipe, int input);

// Adds what a trial's inputs show to what earlier ones did. Fixed is what stays the same from the second trial on.
void see_inputs(const std::vector<at::Tensor>& inputs, std::vector<InputFacts>& facts);

// Which inputs, by number among the tensors, the kind changes.
std::vector<int> inputs_of_kind(StressKind kind, const std::vector<at::Tensor>& inputs,
                                const std::vector<InputFacts>& facts);

// The kinds that can say something about such inputs, one of each sort first, each with the strengths to try in turn,
// until the model's values are finite.
struct StressPlan {
  StressKind kind;
  std::vector<int> strengths;
};
std::vector<StressPlan> stress_plans(const std::vector<at::Tensor>& inputs, const std::vector<InputFacts>& facts);

// Replaces the leaves that the recipe changes.
void apply_stress(const StressRecipe& recipe, const std::vector<InputFacts>& facts, uint64_t seed,
                  std::vector<c10::IValue>& leaves);

}  // namespace tilepilot::eval
