// torch.nn.functional where it differs from the ATen operator of the same name; the rest needs no row.
#include <ATen/ATen.h>

#include <cmath>

#include "eval/host/arguments.h"

namespace tilepilot::eval {

using at::Tensor;
using c10::IValue;

namespace {

using A = const Arguments&;

IValue with_indices(A a, const std::tuple<Tensor, Tensor>& pair) {
  if (a.flag("return_indices")) return c10::ivalue::Tuple::create(std::get<0>(pair), std::get<1>(pair));
  return std::get<0>(pair);
}

// The dimension that softmax takes when none is given.
int64_t softmax_dimension(A a) {
  if (auto dim = a.maybe_integer("dim")) return *dim;
  int64_t rank = a.tensor("input").dim();
  return rank == 0 || rank == 1 || rank == 3 ? 0 : 1;
}

IValue softmax(A a) { return at::softmax(a.tensor("input"), softmax_dimension(a), a.dtype("dtype")); }
IValue log_softmax(A a) { return at::log_softmax(a.tensor("input"), softmax_dimension(a), a.dtype("dtype")); }
IValue softmin(A a) { return at::softmax(at::neg(a.tensor("input")), softmax_dimension(a), a.dtype("dtype")); }

IValue gumbel_softmax(A a) {
  Tensor logits = a.tensor("logits");
  int64_t dim = a.integer("dim");
  Tensor gumbels = -at::empty_like(logits, at::MemoryFormat::Contiguous).exponential_().log();
  Tensor soft = ((logits + gumbels) / a.real("tau")).softmax(dim);
  if (!a.flag("hard")) return soft;
  Tensor index = std::get<1>(soft.max(dim, true));
  Tensor hard = at::zeros_like(logits, at::MemoryFormat::Contiguous).scatter_(dim, index, 1.0);
  return hard - soft + soft;
}

IValue max_pool1d(A a) {
  auto kernel = a.integers("kernel_size"), stride = a.integers("stride"), padding = a.integers("padding"),
       dilation = a.integers("dilation");
  if (!a.flag("return_indices")) {
    return at::max_pool1d(a.tensor("input"), kernel, stride, padding, dilation, a.flag("ceil_mode"));
  }
  return with_indices(
      a, at::max_pool1d_with_indices(a.tensor("input"), kernel, stride, padding, dilation, a.flag("ceil_mode")));
}

IValue max_pool2d(A a) {
  auto kernel = a.integers("kernel_size"), stride = a.integers("stride"), padding = a.integers("padding"),
       dilation = a.integers("dilation");
  if (!a.flag("return_indices")) {
    return at::max_pool2d(a.tensor("input"), kernel, stride, padding, dilation, a.flag("ceil_mode"));
  }
  return with_indices(
      a, at::max_pool2d_with_indices(a.tensor("input"), kernel, stride, padding, dilation, a.flag("ceil_mode")));
}

IValue max_pool3d(A a) {
  auto kernel = a.integers("kernel_size"), stride = a.integers("stride"), padding = a.integers("padding"),
       dilation = a.integers("dilation");
  if (!a.flag("return_indices")) {
    return at::max_pool3d(a.tensor("input"), kernel, stride, padding, dilation, a.flag("ceil_mode"));
  }
  return with_indices(
      a, at::max_pool3d_with_indices(a.tensor("input"), kernel, stride, padding, dilation, a.flag("ceil_mode")));
}

IValue lp_pool(A a) {
  double order = a.real("norm_type");
  auto kernel = a.integers("kernel_size"), stride = a.integers("stride");
  const bool ceil = a.flag("ceil_mode");
  Tensor powered = a.tensor("input").pow(order);
  Tensor pooled = kernel.size() == 1   ? at::avg_pool1d(powered, kernel, stride, 0, ceil)
                  : kernel.size() == 2 ? at::avg_pool2d(powered, kernel, stride, 0, ceil)
                                       : at::avg_pool3d(powered, kernel, stride, 0, ceil);
  int64_t count = 1;
  for (int64_t extent : kernel) count *= extent;
  return at::relu(at::sign(pooled) * at::relu(at::abs(pooled))).mul(count).pow(1.0 / order);
}

// The inverse of a pool with indices; 1-D as 2-D of one column.
IValue max_unpool(A a) {
  auto kernel = a.integers("kernel_size"), stride = a.integers("stride"), padding = a.integers("padding"),
       sizes = a.integers("output_size");
  const auto rank = static_cast<int64_t>(kernel.size());
  Tensor input = a.tensor("input"), indices = a.tensor("indices");
  if (stride.empty()) stride = kernel;
  if (sizes.size() == kernel.size() + 2) sizes.erase(sizes.begin(), sizes.begin() + 2);  // those of a whole tensor
  for (int64_t i = 0; sizes.size() < kernel.size(); ++i) {
    const auto k = static_cast<size_t>(i);
    sizes.push_back((input.size(input.dim() - rank + i) - 1) * stride[k] + kernel[k] - 2 * padding[k]);
  }
  TORCH_CHECK(sizes.size() == kernel.size(), "output_size should have ", rank, " or ", rank + 2, " elements");
  if (rank == 3) return at::max_unpool3d(input, indices, sizes, stride, padding);
  if (rank == 2) return at::max_unpool2d(input, indices, sizes);
  return at::max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), {sizes[0], 1}).squeeze(-1);
}

// Dropout of whole channels; `batched_rank` is the rank with a batch dimension.
IValue channel_dropout(A a, int64_t batched_rank) {
  Tensor input = a.tensor("input");
  double p = a.real("p");
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  bool batched = batched_rank == 0 || input.dim() == batched_rank;
  bool in_place = a.flag("inplace");
  if (!batched) input = in_place ? input.unsqueeze_(0) : input.unsqueeze(0);
  Tensor result =
      in_place ? at::feature_dropout_(input, p, a.flag("training")) : at::feature_dropout(input, p, a.flag("training"));
  if (!batched) result = in_place ? result.squeeze_(0) : result.squeeze(0);
  return result;
}

IValue dropout(A a) {
  double p = a.real("p");
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (a.flag("inplace")) {
    Tensor input = a.tensor("input");
    return at::dropout_(input, p, a.flag("training"));
  }
  return at::dropout(a.tensor("input"), p, a.flag("training"));
}

IValue embedding(A a) {
  Tensor weight = a.tensor("weight"), input = a.tensor("input");
  int64_t padding = a.maybe_integer("padding_idx").value_or(-1);
  if (a.given("padding_idx")) {
    TORCH_CHECK(padding < weight.size(0) && padding >= -weight.size(0), "Padding_idx must be within num_embeddings");
    if (padding < 0) padding += weight.size(0);
  }
  if (auto max_norm = a.maybe_real("max_norm")) {
    input = input.contiguous();
    at::embedding_renorm_(weight, input, *max_norm, a.real("norm_type"));
  }
  return at::embedding(weight, input, padding, a.flag("scale_grad_by_freq"), a.flag("sparse"));
}

IValue embedding_bag(A a) {
  Tensor weight = a.tensor("weight"), input = a.tensor("input");
  auto offsets = a.maybe_tensor("offsets"), weights = a.maybe_tensor("per_sample_weights");
  if (input.dim() == 2) {
    TORCH_CHECK(!offsets, "if input is 2D, then offsets has to be None");
    offsets = at::arange(0, input.numel(), input.size(1), input.options());
    input = input.reshape({-1});
    if (weights) weights = weights->reshape({-1});
  }
  TORCH_CHECK(offsets, "offsets has to be a 1D Tensor but got None");
  const std::string mode = a.text("mode");
  TORCH_CHECK(mode == "sum" || mode == "mean" || mode == "max", "mode has to be one of sum, mean or max");
  TORCH_CHECK(!weights || mode == "sum", "per_sample_weights is only supported for mode='sum'");
  if (auto max_norm = a.maybe_real("max_norm")) at::embedding_renorm_(weight, input, *max_norm, a.real("norm_type"));
  return std::get<0>(at::embedding_bag(weight, input, *offsets, a.flag("scale_grad_by_freq"),
                                       mode == "sum"    ? 0
                                       : mode == "mean" ? 1
                                                        : 2,
                                       a.flag("sparse"), weights, a.flag("include_last_offset"),
                                       a.maybe_integer("padding_idx")));
}

IValue batch_norm(A a) {
  Tensor input = a.tensor("input");
  if (a.flag("training")) {
    TORCH_CHECK(input.dim() >= 2, "expected 2D or more, got ", input.dim(), "D input");
    TORCH_CHECK(input.numel() / input.size(1) > 1,
                "Expected more than 1 value per channel when training, got input size ", input.sizes());
  }
  return at::batch_norm(input, a.maybe_tensor("weight"), a.maybe_tensor("bias"), a.maybe_tensor("running_mean"),
                        a.maybe_tensor("running_var"), a.flag("training"), a.real("momentum"), a.real("eps"), true);
}

IValue instance_norm(A a) {
  return at::instance_norm(a.tensor("input"), a.maybe_tensor("weight"), a.maybe_tensor("bias"),
                           a.maybe_tensor("running_mean"), a.maybe_tensor("running_var"), a.flag("use_input_stats"),
                           a.real("momentum"), a.real("eps"), true);
}

IValue local_response_norm(A a) {
  Tensor input = a.tensor("input");
  int64_t size = a.integer("size");
  TORCH_CHECK(input.dim() >= 3, "Expected 3D or higher dimensionality input (got ", input.dim(), " dimensions)");
  if (input.numel() == 0) return input;
  Tensor div = input.mul(input);
  if (input.dim() == 3) {
    div = at::pad(div.unsqueeze(1), {0, 0, size / 2, (size - 1) / 2});
    div = at::avg_pool2d(div, {size, 1}, {1, 1}).squeeze(1);
  } else {
    div = div.view({input.size(0), 1, input.size(1), input.size(2), -1});
    div = at::pad(div, {0, 0, 0, 0, size / 2, (size - 1) / 2});
    div = at::avg_pool3d(div, {size, 1, 1}, {1, 1, 1}).squeeze(1).view(input.sizes());
  }
  return input / div.mul(a.real("alpha")).add(a.real("k")).pow(a.real("beta"));
}

IValue normalize(A a) {
  Tensor input = a.tensor("input");
  Tensor norm = at::linalg_vector_norm(input, a.scalar("p"), a.integers("dim"), true);
  return input / norm.clamp_min(a.scalar("eps")).expand_as(input);
}

// What interpolate computes with: sizes or factors, one of them.
struct Resize {
  std::optional<std::vector<int64_t>> sizes;
  std::optional<std::vector<double>> factors;
};

Resize resize_of(A a, int64_t rank) {
  TORCH_CHECK(a.given("size") != a.given("scale_factor"), "give one of size and scale_factor to interpolate");
  Resize resize;
  auto spatial = static_cast<size_t>(rank);
  if (a.given("size")) {
    resize.sizes = a["size"].isInt() ? std::vector<int64_t>(spatial, a.integer("size")) : a.integers("size");
    TORCH_CHECK(resize.sizes->size() == spatial, "interpolate needs one size a spatial dimension");
    return resize;
  }
  resize.factors =
      a["scale_factor"].isDoubleList() ? a.reals("scale_factor") : std::vector<double>(spatial, a.real("scale_factor"));
  TORCH_CHECK(resize.factors->size() == spatial, "interpolate needs one scale factor a spatial dimension");
  if (a.text("mode") == "area" || a.maybe_flag("recompute_scale_factor").value_or(false)) {
    resize.sizes.emplace();
    for (size_t i = 0; i < spatial; ++i) {
      auto extent = static_cast<double>(a.tensor("input").size(static_cast<int64_t>(i) + 2));
      resize.sizes->push_back(static_cast<int64_t>(extent * (*resize.factors)[i]));
    }
    resize.factors.reset();
  }
  return resize;
}

IValue interpolate(A a) {
  Tensor input = a.tensor("input");
  int64_t rank = input.dim() - 2;
  Resize resize = resize_of(a, rank);
  at::OptionalIntArrayRef sizes;
  if (resize.sizes) sizes = *resize.sizes;
  std::optional<at::ArrayRef<double>> factors;
  if (resize.factors) factors = *resize.factors;
  std::string mode = a.text("mode");
  bool corners = a.maybe_flag("align_corners").value_or(false), antialias = a.flag("antialias");
  if (mode == "nearest" && rank == 1) return at::upsample_nearest1d(input, sizes, factors);
  if (mode == "nearest" && rank == 2) return at::upsample_nearest2d(input, sizes, factors);
  if (mode == "nearest" && rank == 3) return at::upsample_nearest3d(input, sizes, factors);
  if (mode == "nearest-exact" && rank == 1) return at::_upsample_nearest_exact1d(input, sizes, factors);
  if (mode == "nearest-exact" && rank == 2) return at::_upsample_nearest_exact2d(input, sizes, factors);
  if (mode == "nearest-exact" && rank == 3) return at::_upsample_nearest_exact3d(input, sizes, factors);
  if (mode == "area" && rank == 1) return at::adaptive_avg_pool1d(input, *resize.sizes);
  if (mode == "area" && rank == 2) return at::adaptive_avg_pool2d(input, *resize.sizes);
  if (mode == "area" && rank == 3) return at::adaptive_avg_pool3d(input, *resize.sizes);
  if (mode == "linear" && rank == 1) return at::upsample_linear1d(input, sizes, corners, factors);
  if (mode == "bilinear" && rank == 2) {
    return antialias ? at::_upsample_bilinear2d_aa(input, sizes, corners, factors)
                     : at::upsample_bilinear2d(input, sizes, corners, factors);
  }
  if (mode == "bicubic" && rank == 2) {
    return antialias ? at::_upsample_bicubic2d_aa(input, sizes, corners, factors)
                     : at::upsample_bicubic2d(input, sizes, corners, factors);
  }
  if (mode == "trilinear" && rank == 3) return at::upsample_trilinear3d(input, sizes, corners, factors);
  TORCH_CHECK(false, "interpolate: mode ", mode, " does not fit an input of ", input.dim(), " dimensions");
}

IValue grid_sample(A a) {
  std::string mode = a.text("mode"), padding = a.text("padding_mode");
  int64_t mode_code = mode == "bilinear" ? 0 : mode == "nearest" ? 1 : 2;
  int64_t padding_code = padding == "zeros" ? 0 : padding == "border" ? 1 : 2;
  return at::grid_sampler(a.tensor("input"), a.tensor("grid"), mode_code, padding_code,
                          a.maybe_flag("align_corners").value_or(false));
}

IValue softsign(A a) {
  Tensor input = a.tensor("input");
  return input / (input.abs() + 1);
}

IValue tanhshrink(A a) { return a.tensor("input") - a.tensor("input").tanh(); }

const FunctionRow kFunctions[] = {
    {"relu(Tensor input, bool inplace=False)", nullptr, "relu"},
    {"relu6(Tensor input, bool inplace=False)", nullptr, "relu6"},
    {"hardtanh(Tensor input, float min_val=-1.0, float max_val=1.0, bool inplace=False)", nullptr, "hardtanh"},
    {"elu(Tensor input, float alpha=1.0, bool inplace=False)", nullptr, "elu"},
    {"selu(Tensor input, bool inplace=False)", nullptr, "selu"},
    {"celu(Tensor input, float alpha=1.0, bool inplace=False)", nullptr, "celu"},
    {"leaky_relu(Tensor input, float negative_slope=0.01, bool inplace=False)", nullptr, "leaky_relu"},
    {"rrelu(Tensor input, float lower=0.125, float upper=0.3333333333333333, bool training=False, bool inplace=False)",
     nullptr, "rrelu"},
    {"threshold(Tensor input, float threshold, float value, bool inplace=False)", nullptr, "threshold"},
    {"hardsigmoid(Tensor input, bool inplace=False)", nullptr, "hardsigmoid"},
    {"hardswish(Tensor input, bool inplace=False)", nullptr, "hardswish"},
    {"silu(Tensor input, bool inplace=False)", nullptr, "silu"},
    {"mish(Tensor input, bool inplace=False)", nullptr, "mish"},
    {"logsigmoid(Tensor input)", nullptr, "log_sigmoid"},
    {"softsign(Tensor input)", softsign},
    {"tanhshrink(Tensor input)", tanhshrink},
    {"softmax(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None)", softmax},
    {"log_softmax(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None)", log_softmax},
    {"softmin(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None)", softmin},
    {"gumbel_softmax(Tensor logits, float tau=1.0, bool hard=False, float eps=1e-10, int dim=-1)", gumbel_softmax},
    {"max_pool1d(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[1] dilation=1, bool "
     "ceil_mode=False, bool return_indices=False)",
     max_pool1d},
    {"max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, bool "
     "ceil_mode=False, bool return_indices=False)",
     max_pool2d},
    {"max_pool3d(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, int[3] dilation=1, bool "
     "ceil_mode=False, bool return_indices=False)",
     max_pool3d},
    {"lp_pool1d(Tensor input, float norm_type, int[1] kernel_size, int[1]? stride=None, bool ceil_mode=False)",
     lp_pool},
    {"lp_pool2d(Tensor input, float norm_type, int[2] kernel_size, int[2]? stride=None, bool ceil_mode=False)",
     lp_pool},
    {"lp_pool3d(Tensor input, float norm_type, int[3] kernel_size, int[3]? stride=None, bool ceil_mode=False)",
     lp_pool},
    {"max_unpool1d(Tensor input, Tensor indices, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, int[]? "
     "output_size=None)",
     max_unpool},
    {"max_unpool2d(Tensor input, Tensor indices, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[]? "
     "output_size=None)",
     max_unpool},
    {"max_unpool3d(Tensor input, Tensor indices, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, int[]? "
     "output_size=None)",
     max_unpool},
    {"adaptive_max_pool1d(Tensor input, int[1] output_size, bool return_indices=False)",
     [](A a) { return with_indices(a, at::adaptive_max_pool1d(a.tensor("input"), a.integers("output_size"))); }},
    {"adaptive_max_pool2d(Tensor input, int[2] output_size, bool return_indices=False)",
     [](A a) { return with_indices(a, at::adaptive_max_pool2d(a.tensor("input"), a.integers("output_size"))); }},
    {"adaptive_max_pool3d(Tensor input, int[3] output_size, bool return_indices=False)",
     [](A a) { return with_indices(a, at::adaptive_max_pool3d(a.tensor("input"), a.integers("output_size"))); }},
    {"dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False)", dropout},
    {"dropout1d(Tensor input, float p=0.5, bool training=True, bool inplace=False)",
     [](A a) { return channel_dropout(a, 3); }},
    {"dropout2d(Tensor input, float p=0.5, bool training=True, bool inplace=False)",
     [](A a) { return channel_dropout(a, 0); }},
    {"dropout3d(Tensor input, float p=0.5, bool training=True, bool inplace=False)",
     [](A a) { return channel_dropout(a, 5); }},
    {"alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False)", nullptr, "alpha_dropout"},
    {"feature_alpha_dropout(Tensor input, float p=0.5, bool training=False, bool inplace=False)", nullptr,
     "feature_alpha_dropout"},
    {"embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, bool "
     "scale_grad_by_freq=False, bool sparse=False)",
     embedding},
    {"embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, float norm_type=2.0, bool "
     "scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? per_sample_weights=None, bool "
     "include_last_offset=False, int? padding_idx=None)",
     embedding_bag},
    {"batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool "
     "training=False, float momentum=0.1, float eps=1e-05)",
     batch_norm},
    {"instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, Tensor? "
     "bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05)",
     instance_norm},
    {"local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0)",
     local_response_norm},
    {"normalize(Tensor input, float p=2.0, int[1] dim=1, float eps=1e-12)", normalize},
    {"interpolate(Tensor input, int? size=None, float? scale_factor=None, str mode='nearest', bool? "
     "align_corners=None, "
     "bool? recompute_scale_factor=None, bool antialias=False)",
     interpolate},
    {"interpolate(Tensor input, int[] size, float? scale_factor=None, str mode='nearest', bool? align_corners=None, "
     "bool? recompute_scale_factor=None, bool antialias=False)",
     interpolate},
    {"interpolate(Tensor input, int? size=None, *, float[] scale_factor, str mode='nearest', bool? align_corners=None, "
     "bool? recompute_scale_factor=None, bool antialias=False)",
     interpolate},
    {"grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None)",
     grid_sample},
    {"affine_grid(Tensor theta, int[] size, bool? align_corners=None)",
     [](A a) -> IValue {
       return at::affine_grid_generator(a.tensor("theta"), a.integers("size"),
                                        a.maybe_flag("align_corners").value_or(false));
     }},
    {"unfold(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1)", nullptr,
     "im2col"},
    {"fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1)",
     nullptr, "col2im"},
};

}  // namespace

FunctionTable functional_table() { return kFunctions; }

}  // namespace tilepilot::eval
