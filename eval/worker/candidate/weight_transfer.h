// Brings the model's weights into a candidate: into the tensors that hold them, and into those that `__init__` computes
// from them, by building ModelNew again with other numbers where its weights are drawn.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "eval/worker/candidate/construction_watch.h"
#include "eval/worker/candidate/weight_match.h"

namespace tilepilot::eval {

// ModelNew as it was built.
struct Construction {
  std::vector<HeldTensor> held;
  std::vector<at::Tensor> unconverted;  // by held: the memory it had before a conversion of element types
};

class WeightTransfer {
 public:
  // Builds ModelNew as the first time.
  using Rebuild = std::function<Result<Construction>()>;

  // Pairs the tensors of `first`, whose construction `record` saw, with `weights`.
  WeightTransfer(Construction first, const ConstructionRecord& record, std::vector<ModelWeight> weights,
                 Rebuild rebuild);

  // Empty, or why the candidate's parameters are not the model's.
  const std::string& mismatch() const { return mismatch_; }
  // Parameters of the model's that the candidate has none for, to explain wrong outputs; may be empty.
  const std::string& lacking() const { return lacking_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // The name of the tensor that holds a weight; null: no tensor does.
  const std::string* holder_of(const std::string& weight) const;

  // From now on load() gives tensors the memory back that they have now, whatever `tensor.data = ...` put in its place.
  void remember_memory();
  // `values`: by weight. `set` numbers them: the same number brings the same values.
  Status load(int set, const std::vector<at::Tensor>& values);

 private:
  void find_followers(WeightMatcher& matcher, const ConstructionRecord& record);
  void remember_first_values();
  void restore_memory();
  // The tensors of a ModelNew whose weights are `values`, by held; nothing if `__init__` goes another way then.
  std::vector<at::Tensor> tensors_with(const std::vector<at::Tensor>& values);

  Construction first_;
  std::vector<ModelWeight> weights_;
  Rebuild rebuild_;
  std::vector<WeightPair> pairs_;
  std::unordered_map<std::string, std::string> holders_;  // by weight
  std::vector<at::Tensor> memory_;                        // by held
  std::vector<Birth> births_;
  std::vector<size_t> followers_;                           // held tensors that are computed from weights
  std::map<int, std::vector<at::Tensor>> follower_values_;  // by set
  bool repeatable_ = true;
  std::string mismatch_, lacking_;
  std::vector<std::string> notes_;
};

}  // namespace tilepilot::eval
