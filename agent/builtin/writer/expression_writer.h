// Scalar expressions of a kernel as text: members of a group become nested operators, leaves become indexed loads.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "agent/builtin/import/primitives.h"

namespace tilepilot::agent::builtin {

class ExpressionWriter {
 public:
  // `load` gives the text of a leaf's element; with `index`, that text replaces the index of its last axis.
  using Load = std::function<std::string(int leaf, const std::string& index)>;
  ExpressionWriter(const PrimitiveGraph& graph, Load load) : graph_(graph), load_(std::move(load)) {}

  // From here on `id` is written as `text`.
  void name(int id, std::string text) { names_[id] = std::move(text); }
  void forget(int id) { names_.erase(id); }
  bool has_name(int id) const { return names_.count(id) > 0; }
  // A number that has a name in the kernel, such as the length of a row.
  void name_number(double value, std::string text) { numbers_[value] = std::move(text); }
  void set_leaf_test(std::function<bool(int)> is_leaf) { is_leaf_ = std::move(is_leaf); }

  // Parenthesised if it binds more loosely than `precedence`.
  std::string write(int id, int precedence = 0) const;
  // Values used more than once below the roots, operands first: worth a name of their own.
  std::vector<int> repeated(const std::vector<int>& roots) const;

 private:
  const PrimitiveGraph& graph_;
  Load load_;
  std::function<bool(int)> is_leaf_;
  std::map<int, std::string> names_;
  std::map<double, std::string> numbers_;

  std::string write_map(const Primitive& p, int precedence) const;
  const Primitive& behind_views(int id) const;
  std::string write_number(const Primitive& p) const;
  void count_uses(int id, std::map<int, int>& uses) const;
};

// "0.5", "1e-05", "T.infinity(\"float32\")"; whole numbers of integer types without a point.
std::string number_text(double value, const std::string& dtype);

// What kernels compute in: half types are widened.
std::string compute_dtype(const std::string& dtype);

}  // namespace tilepilot::agent::builtin
