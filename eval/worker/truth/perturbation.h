// Changed weights: other values a model could have, and values moved by less than a rounding. All are on the device
// that the given ones are on.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "eval/torch/replay.h"

namespace tilepilot::eval {

// Values of the graph that stay as they are: with other ones the model makes no numbers.
using Unmoved = std::set<size_t>;

// A copy in which every floating parameter, and BatchNorm's running statistics, have other values: close enough that
// the model still behaves, far enough that a constant folded from the old ones is wrong.
State perturbed_weights(const Graph& graph, const State& state, uint64_t seed, const Unmoved& unmoved);

// A copy with values of the same kind but none of the old ones: floating parameters are permuted and rescaled element
// by element, constant ones drawn anew, those far from 1, or tiny, of its order; running statistics change, and
// variances stay positive.
State redrawn_weights(const Graph& graph, const State& state, uint64_t seed, const Unmoved& unmoved);

// Of a batch norm, by its name.
inline bool is_variance(std::string_view name) { return name.ends_with("running_var"); }

// What stretched_weights() does: factors from 2^low to 2^high, evenly in the exponent, of random sign if `signs`; one
// row in eight (along the first axis, of tensors with several) becomes zero, and running variances become small, one of
// them zero; so many times its rms is added to a tensor.
struct Stretch {
  double low = 0, high = 0;
  bool signs = false, empty_rows = false;
  double offset = 0;
};
State stretched_weights(const Graph& graph, const State& state, uint64_t seed, Stretch stretch, const Unmoved& unmoved);

// How far buffers are moved.
enum class BufferMove { far, near, floats, stretched, gates };
// A copy in which every buffer that is no running statistic has other values: floating numbers change by a tenth, zeros
// and identity matrices become small numbers, masks of one value random ones. Whole numbers (`floats`: none of them)
// are drawn anew in their range (all numbers from 0 on, in order, are positions, and stay); the same one everywhere
// grows by less than 1000, a counter by less than a million, both by less than 8 if `near`. If `stretched`, floating
// numbers have random signs and a quarter to four times their size, and nothing else moves; if `gates`, nothing but
// floating numbers and masks that are the same everywhere. Masks with a structure and infinities stay.
State moved_buffers(const Graph& graph, const State& state, uint64_t seed, BufferMove move, const Unmoved& unmoved);
// Those that may be moved, by value of the graph.
std::vector<size_t> movable_buffers(const Graph& graph, const State& state);
// Whether there are any.
bool has_movable_buffers(const Graph& graph, const State& state);
bool has_gates(const Graph& graph, const State& state);
// Whether its values stay because they are a mask with a structure: few changes along its rows.
bool is_structured_mask(const at::Tensor& tensor);
// Whether they do because they are 0, 1, 2, ...
bool are_positions(const at::Tensor& tensor);
// Values of parameters and running statistics that the functions above change.
std::vector<size_t> movable_weights(const Graph& graph, const State& state);

// `tensor` (float64) with each element moved by up to half of `epsilon`, relative.
at::Tensor nudged(const at::Tensor& tensor, double epsilon, uint64_t seed);
// Which elements are multiples of 1/64: sums and products of round numbers, in which nothing was rounded.
at::Tensor is_round(const at::Tensor& tensor);
// The same, where equal elements move alike.
at::Tensor nudged_by_value(const at::Tensor& tensor, double epsilon, uint64_t seed);

// Moves what a node computed as programs that round after each step do (Monte Carlo arithmetic: Parker, "Monte Carlo
// Arithmetic: exploiting randomness in floating-point arithmetic", 1997): by up to half of `epsilon`, relative, and for
// sums by `units` of `epsilon` and of the rms of the element's row, where other nodes use it. To functions that
// programs compute from exponentials, sums and differences of numbers around 1 (tanh, elu, softplus, ...) up to two
// roundings of 1 are added: close to zero a library's function may be better than any of these.
struct NodeNudge {
  double epsilon = 0;
  uint64_t seed = 0;
  bool is_used = true;
  double units = 0;
  bool keeps_round = false;  // elements that are round numbers stay
};
void nudge_results(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
                   NodeNudge nudge);
// Of a normalisation (batch, instance, layer, group; by the statistics of its operand): what it gives where the sum
// behind each mean is as far off as sums of its length are. Where the elements are nearly the same, that is many times
// the roundings of the result. A running mean among the operands follows.
void nudge_means(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
                 double epsilon, uint64_t seed);
// Of a product (`cumprod`, `prod`): what it gives where each product on the way is rounded as numbers of float32 are
// that have no more digits to spare (subnormal ones), and a later, large factor makes the loss visible.
void nudge_products(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
                    uint64_t seed);
// Of a power: what it gives as an exponential of the exponent times a logarithm, each rounded, as programs compute it
// but for small whole or half exponents.
void nudge_powers(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
                  NodeNudge nudge);

// Chains of additions and subtractions: `x - a - b` is a sum of three terms, which another program adds in another
// order (`x - (a + b)`), and then numbers as large as the largest term are rounded, though in the model's order they
// may have cancelled before. One object follows one run of the graph.
class AddedTerms {
 public:
  explicit AddedTerms(const Graph& graph);
  // Moves what an addition made of sums by up to half of `epsilon` of the largest term behind each element, less what
  // the node's own operands account for: these were moved themselves.
  void nudge(const GraphNode& node, const std::vector<c10::IValue>& operands, std::vector<c10::IValue>& results,
             NodeNudge nudge);

 private:
  std::vector<int> takers_;            // by value of the graph: how many additions have yet to take it
  std::map<int, at::Tensor> largest_;  // by value that an addition made: the largest term behind each element
};

}  // namespace tilepilot::eval
