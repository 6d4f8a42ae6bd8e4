// Where what a call returns and changes is a number, neither infinite nor NaN.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace tilepilot::eval {

struct Trial;

class NumberPlaces {
 public:
  // Of a trial whose truth may not have been made: then of eager's numbers alone.
  explicit NumberPlaces(const Trial& trial);

  bool are_all() const;
  // Whether there are numbers where `given` has them. What is minus infinity may be elsewhere, in not many more
  // elements: masks that are drawn hide other places each time. Inputs and buffers that a model changes under a
  // condition may be others here than there: then all of them are to be numbers.
  bool are_like(const NumberPlaces& given) const;
  bool is_like(const NumberPlaces& given, size_t output) const;
  bool changes_are_like(const NumberPlaces& given) const;
  size_t outputs() const { return outputs_.size(); }

 private:
  // Of eager's tensor and the truth's: undefined where all elements are numbers.
  struct Places {
    at::Tensor eager, truth;
    bool others_are_minus_infinity = false;  // of eager's elements
  };
  static bool same(const Places& one, const Places& other, bool with_truth);

  bool has_truth_ = false;
  std::vector<Places> outputs_, changes_;
};

}  // namespace tilepilot::eval
