// Functions of the namespace torch that are not ATen operators of the same name, or whose Python parameters differ.
#include <ATen/ATen.h>

#include "eval/host/arguments.h"

namespace tilepilot::eval {

namespace {

using A = const Arguments&;
using at::Tensor;
using c10::IValue;

IValue vector_norm(A a) {
  std::vector<int64_t> dims = a.integers("dim");
  c10::OptionalArrayRef<int64_t> dim;
  if (a.given("dim")) dim = dims;
  at::Scalar order = 2;
  if (a["p"].isString()) {
    TORCH_CHECK(a.text("p") == "fro", "norm of order '", a.text("p"), "' is not supported");
  } else if (a.given("p")) {
    order = a.scalar("p");
  }
  return at::linalg_vector_norm(a.tensor("input"), order, dim, a.flag("keepdim"), a.dtype("dtype"));
}

IValue cdist(A a) {
  std::string mode = a.text("compute_mode");
  std::optional<int64_t> code;
  if (mode == "use_mm_for_euclid_dist") code = 1;
  if (mode == "donot_use_mm_for_euclid_dist") code = 2;
  return at::cdist(a.tensor("x1"), a.tensor("x2"), a.real("p"), code);
}

// unique gives as many results as are asked for.
IValue unique(A a) {
  bool inverse = a.flag("return_inverse"), counts = a.flag("return_counts");
  auto [values, positions, amounts] =
      a.given("dim") ? at::unique_dim(a.tensor("input"), a.integer("dim"), a.flag("sorted"), inverse, counts)
                     : at::_unique2(a.tensor("input"), a.flag("sorted"), inverse, counts);
  if (inverse && counts) return c10::ivalue::Tuple::create(values, positions, amounts);
  if (inverse || counts) return c10::ivalue::Tuple::create(values, inverse ? positions : amounts);
  return values;
}

// As a matrix of indices, or as one vector an axis.
IValue nonzero(A a) {
  at::Tensor tensor = a.tensor("input");
  if (!a.flag("as_tuple")) return at::nonzero(tensor);
  std::vector<IValue> indices;
  for (at::Tensor& each : at::nonzero_numpy(tensor)) indices.emplace_back(std::move(each));
  return c10::ivalue::Tuple::create(std::move(indices));
}

const FunctionRow kTorchFunctions[] = {
    {"nonzero(Tensor input, *, bool as_tuple=False)", nonzero},
    {"norm(Tensor input, Scalar p, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", vector_norm},
    {"norm(Tensor input, str? p='fro', int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)", vector_norm},
    {"split(Tensor tensor, int split_size_or_sections, int dim=0)",
     [](A a) -> IValue { return a.tensor("tensor").split(a.integer("split_size_or_sections"), a.integer("dim")); }},
    {"split(Tensor tensor, int[] split_size_or_sections, int dim=0)",
     [](A a) -> IValue {
       return a.tensor("tensor").split_with_sizes(a.integers("split_size_or_sections"), a.integer("dim"));
     }},
    {"cdist(Tensor x1, Tensor x2, float p=2.0, str compute_mode='use_mm_for_euclid_dist_if_necessary')", cdist},
    {"unique(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None)",
     unique},
    {"numel(Tensor input)", [](A a) -> IValue { return a.tensor("input").numel(); }},
    {"is_floating_point(Tensor input)", [](A a) -> IValue { return a.tensor("input").is_floating_point(); }},
    {"is_complex(Tensor input)", [](A a) -> IValue { return a.tensor("input").is_complex(); }},
    {"relu(Tensor input)", nullptr, "relu"},
};

}  // namespace

FunctionTable torch_function_table() { return kTorchFunctions; }

}  // namespace tilepilot::eval
