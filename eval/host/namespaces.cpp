#include "eval/host/namespaces.h"

#include <algorithm>
#include <iterator>

namespace tilepilot::eval {

namespace {

constexpr std::string_view kFunctional[] = {"adaptive_avg_pool1d",
                                            "adaptive_avg_pool2d",
                                            "adaptive_avg_pool3d",
                                            "avg_pool1d",
                                            "avg_pool2d",
                                            "avg_pool3d",
                                            "bilinear",
                                            "celu_",
                                            "channel_shuffle",
                                            "conv1d",
                                            "conv2d",
                                            "conv3d",
                                            "conv_tbc",
                                            "conv_transpose1d",
                                            "conv_transpose2d",
                                            "conv_transpose3d",
                                            "cosine_similarity",
                                            "elu_",
                                            "gelu",
                                            "glu",
                                            "group_norm",
                                            "hardshrink",
                                            "hardtanh_",
                                            "layer_norm",
                                            "leaky_relu_",
                                            "linear",
                                            "native_channel_shuffle",
                                            "one_hot",
                                            "pad",
                                            "pairwise_distance",
                                            "pdist",
                                            "pixel_shuffle",
                                            "pixel_unshuffle",
                                            "prelu",
                                            "relu_",
                                            "rms_norm",
                                            "rrelu_",
                                            "scaled_dot_product_attention",
                                            "selu_",
                                            "sigmoid",
                                            "softplus",
                                            "softshrink",
                                            "tanh",
                                            "threshold_"};

constexpr std::string_view kOnlyFunctional[] = {"adaptive_avg_pool2d",
                                                "adaptive_avg_pool3d",
                                                "adaptive_max_pool2d",
                                                "adaptive_max_pool3d",
                                                "avg_pool2d",
                                                "avg_pool3d",
                                                "binary_cross_entropy",
                                                "elu",
                                                "fractional_max_pool2d",
                                                "fractional_max_pool3d",
                                                "gelu",
                                                "glu",
                                                "hardsigmoid",
                                                "hardswish",
                                                "hardtanh",
                                                "huber_loss",
                                                "l1_loss",
                                                "leaky_relu",
                                                "linear",
                                                "mish",
                                                "mse_loss",
                                                "multi_margin_loss",
                                                "multilabel_margin_loss",
                                                "nll_loss",
                                                "one_hot",
                                                "pad",
                                                "relu6",
                                                "silu",
                                                "scaled_dot_product_attention",
                                                "smooth_l1_loss",
                                                "soft_margin_loss",
                                                "softplus",
                                                "softshrink"};

constexpr std::string_view kOnlyMethods[] = {
    "contiguous", "data",        "dim",      "expand",    "expand_as", "is_contiguous", "item",
    "new_empty",  "new_full",    "new_ones", "new_zeros", "repeat",    "reshape_as",    "size",
    "stride",     "sum_to_size", "to",       "type_as",   "unfold",    "view",          "view_as"};

constexpr std::string_view kForbiddenNames[] = {"load",
                                                "save",
                                                "hub",
                                                "compile",
                                                "jit",
                                                "_dynamo",
                                                "_inductor",
                                                "ops_lib",
                                                "utils",
                                                "multiprocessing",
                                                "distributed",
                                                "from_numpy",
                                                "export",
                                                "profiler",
                                                "package",
                                                "library",
                                                "set_num_threads",
                                                "autograd",
                                                "_C",
                                                "classes",
                                                "monitor",
                                                "futures",
                                                "fx",
                                                "onnx",
                                                "serialization",
                                                "set_num_interop_threads"};

// Operators that open files, write to the process's output, or take sizes and indices on trust.
constexpr std::string_view kForbiddenOperators[] = {"from_file",
                                                    "_print",
                                                    "_reshape_alias",
                                                    "_reshape_alias_copy",
                                                    "_nested_view_from_buffer",
                                                    "_nested_view_from_buffer_copy",
                                                    "_index_put_impl",
                                                    "_index_put_impl_",
                                                    "_unsafe_index",
                                                    "_unsafe_index_put",
                                                    "_unsafe_masked_index",
                                                    "_unsafe_masked_index_put_accumulate",
                                                    "_sparse_coo_tensor_unsafe",
                                                    "_sparse_compressed_tensor_unsafe",
                                                    "_sparse_csr_tensor_unsafe",
                                                    "_sparse_csc_tensor_unsafe",
                                                    "_sparse_bsr_tensor_unsafe",
                                                    "_sparse_bsc_tensor_unsafe"};

template <size_t count>
bool has(const std::string_view (&names)[count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

bool is_functional(std::string_view name) { return has(kFunctional, name); }
bool is_only_functional(std::string_view name) { return has(kOnlyFunctional, name); }
bool is_only_method(std::string_view name) { return has(kOnlyMethods, name); }
bool is_forbidden(std::string_view name) { return has(kForbiddenNames, name) || has(kForbiddenOperators, name); }

}  // namespace tilepilot::eval
