// Watches LibTorch's operators while ModelNew is built: where weights come into being, and, when it is built again,
// puts other numbers in their place there, so that whatever `__init__` computes from weights follows.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "eval/worker/candidate/number_index.h"

namespace tilepilot::eval {

// A moment of a construction, and the elements that an operator has written then.
struct Birth {
  int64_t step = 0;  // how many tensors were written before
  std::string op;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  size_t weight = 0;  // which of the model's weights they are
  // What was written. If defined: where the weight has come into being before, in other memory, and something else is
  // written now, the elements follow from weights.
  at::Tensor numbers;
};

class WriteObserver {
 public:
  virtual ~WriteObserver() = default;
  virtual void written(const char* op, const at::Tensor& tensor) = 0;
};

// While it lives, `observer` is told of the tensors that operators of this thread write. One at a time.
class ConstructionWatch {
 public:
  explicit ConstructionWatch(WriteObserver& observer);
  ~ConstructionWatch();
  ConstructionWatch(const ConstructionWatch&) = delete;

 private:
  uint64_t handle_ = 0;
};

class ConstructionRecord final : public WriteObserver {
 public:
  // Recognises `weights` by their numbers; undefined ones are not looked for.
  explicit ConstructionRecord(const std::vector<at::Tensor>& weights);

  // Where tensors with the numbers of exactly one weight were written.
  const std::vector<Birth>& births() const { return births_; }
  // Where the elements of `tensor` were written last, to become `weight`.
  std::optional<Birth> last_write(const at::Tensor& tensor, size_t weight) const;

 private:
  void written(const char* op, const at::Tensor& tensor) override;

  struct Moment {
    int64_t step;
    std::string op;
    at::ScalarType type;
  };
  const std::vector<at::Tensor>& weights_;
  NumberIndex index_;
  std::vector<Birth> births_;
  std::unordered_map<const void*, Moment> last_;  // by storage
  int64_t step_ = 0;
};

class ConstructionReplay final : public WriteObserver {
 public:
  // At each birth, `values[birth.weight]` takes the place of what was written, unless that follows from others.
  ConstructionReplay(const std::vector<Birth>& births, const std::vector<at::Tensor>& values);

  // Whether the construction went the way of the recorded one.
  bool complete() const { return !astray_ && done_.size() + following_ == births_.size(); }
  // The births that followed from no others.
  const std::vector<Birth>& done() const { return done_; }

 private:
  void written(const char* op, const at::Tensor& tensor) override;

  std::multimap<int64_t, const Birth*> births_;
  const std::vector<at::Tensor>& values_;
  int64_t step_ = 0;
  std::vector<Birth> done_;
  std::unordered_map<size_t, c10::Storage> born_in_;  // by weight; kept, so that no other tensor gets its memory
  size_t following_ = 0;
  bool astray_ = false;
};

}  // namespace tilepilot::eval
