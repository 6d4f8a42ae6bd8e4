// Which tensor of a candidate holds which of the model's weights. Names, numbers that both constructors draw, forms and
// order are evidence, in this order; where two readings of one kind of evidence differ, there is no pair.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/host/tensors/held_tensors.h"
#include "eval/worker/candidate/number_index.h"

namespace tilepilot::eval {

struct ModelWeight {
  std::string name;
  at::Tensor tensor;
  bool is_buffer = false;
  std::string storage;        // weights with the same one are the same tensor
  bool is_used = true;        // by `forward`
  bool is_attribute = false;  // a buffer that the model keeps in a plain attribute
};

// Of weights whose numbers can be recognised: not constants, not integers, the first of those that are one tensor; the
// others are undefined.
std::vector<at::Tensor> recognisable_numbers(const std::vector<ModelWeight>& weights);

enum class Evidence { name, numbers, constant, form, order, last_name };

struct WeightPair {
  size_t held, weight;
  Evidence evidence;
};

class WeightMatcher {
 public:
  WeightMatcher(const std::vector<HeldTensor>& held, const std::vector<ModelWeight>& weights);

  // All parameters of both sides by name, with the model's shapes; and the buffers that have the model's names. False:
  // no, and nothing was paired.
  bool match_all_names();
  // Tensors that hold the numbers of one weight: both constructors drew them from the same seed. Constants, which tell
  // nothing, are left out.
  void match_numbers();
  // Parameters and buffers that are left: by name, constants by form and order, by form if no other has it, by order
  // among equal forms unless the last parts of names say otherwise, by the last part of the name.
  void match_rest();

  // A tensor that was paired holds more than that weight. Both stay accounted for.
  void unpair(size_t held);
  // From now on no tensor, or no weight, to be paired: it is accounted for otherwise.
  void take_held(size_t index);
  void take_weight(size_t index);
  bool is_taken(size_t held) const { return held_taken_[held]; }

  const std::vector<WeightPair>& pairs() const { return pairs_; }
  // What both sides have left: empty if every parameter of the candidate is accounted for.
  std::string mismatch() const;
  // The model's parameters that `forward` uses and that are left.
  std::string lacking() const;
  // How the pairs were found, if not by name: a line for each kind of evidence.
  std::vector<std::string> notes() const;

 private:
  using Indices = std::vector<size_t>;
  void pair(size_t held, size_t weight, Evidence evidence);
  Indices held_left(bool only_registered) const;
  Indices weights_left() const;
  Indices with_numbers_of(size_t held) const;
  void match_names();
  void match_ambiguous_numbers(const std::vector<std::pair<size_t, Indices>>& ambiguous);
  template <class HeldKey, class WeightKey>
  void match_groups(const Indices& held, HeldKey held_key, WeightKey weight_key, std::optional<Evidence> evidence);
  bool names_contradict(const Indices& held, const Indices& weights) const;
  void match_last_names();

  const std::vector<HeldTensor>& held_;
  const std::vector<ModelWeight>& weights_;
  NumberIndex numbers_;  // recognisable ones
  std::vector<bool> held_taken_, weight_taken_;
  std::vector<std::optional<double>> held_constants_, weight_constants_;  // the one value of all elements
  std::vector<WeightPair> pairs_;
};

}  // namespace tilepilot::eval
