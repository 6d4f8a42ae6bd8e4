// Layers of torch.nn that hold no weights to train: activations, pools, dropout, losses, padding, changes of shape.
// Most are the function of torch.nn.functional with the constructor's arguments.
#include <ATen/ATen.h>

#include "eval/host/layers/module.h"

namespace tilepilot::eval {

namespace {

using A = const Arguments&;
using at::Tensor;
using c10::IValue;

// Losses keep the weights they were given as buffers.
void keep_weight(NnModule& m, A config) { m.add_buffer("weight", config.maybe_tensor("weight").value_or(Tensor())); }

void keep_both_weights(NnModule& m, A config) {
  keep_weight(m, config);
  m.add_buffer("pos_weight", config.maybe_tensor("pos_weight").value_or(Tensor()));
}

void create_prelu(NnModule& m, A config) { m.add_parameter("weight", {config.integer("num_parameters")}, config); }
void reset_prelu(NnModule& m, A config) { m.weight("weight").fill_(config.scalar("init")); }

IValue flatten(NnModule&, A config, A inputs) {
  return inputs.tensor("input").flatten(config.integer("start_dim"), config.integer("end_dim"));
}

IValue unflatten(NnModule&, A config, A inputs) {
  return inputs.tensor("input").unflatten(config.integer("dim"), config.integers("unflattened_size"));
}

IValue pad_with(const Tensor& input, A config, std::string_view mode) {
  auto value = mode == "constant" ? std::optional<double>(0.0) : std::nullopt;
  return at::pad(input, config.integers("padding"), mode, value);
}

IValue pad_constant(NnModule&, A config, A inputs) {
  return at::pad(inputs.tensor("input"), config.integers("padding"), "constant", config.real("value"));
}

IValue pad_zero(NnModule&, A config, A inputs) { return pad_with(inputs.tensor("input"), config, "constant"); }
IValue pad_reflect(NnModule&, A config, A inputs) { return pad_with(inputs.tensor("input"), config, "reflect"); }
IValue pad_replicate(NnModule&, A config, A inputs) { return pad_with(inputs.tensor("input"), config, "replicate"); }
IValue pad_circular(NnModule&, A config, A inputs) { return pad_with(inputs.tensor("input"), config, "circular"); }

IValue softmax2d(NnModule&, A, A inputs) {
  TORCH_CHECK(inputs.tensor("input").dim() == 3 || inputs.tensor("input").dim() == 4, "Softmax2d takes 3D or 4D input");
  return at::softmax(inputs.tensor("input"), -3);
}

IValue upsample(NnModule& m, A config, A inputs) {
  return run_functional(m, "interpolate",
                        {inputs.tensor("input"), config["size"], config["scale_factor"], config["mode"],
                         config["align_corners"], config["recompute_scale_factor"], false});
}

IValue upsample_nearest(NnModule& m, A config, A inputs) {
  return run_functional(m, "interpolate",
                        {inputs.tensor("input"), config["size"], config["scale_factor"], "nearest", {}, {}, false});
}

IValue upsample_bilinear(NnModule& m, A config, A inputs) {
  return run_functional(m, "interpolate",
                        {inputs.tensor("input"), config["size"], config["scale_factor"], "bilinear", true, {}, false});
}

template <int rank>
IValue max_unpool(NnModule& m, A config, A inputs) {
  return run_functional(m,
                        rank == 1   ? "max_unpool1d"
                        : rank == 2 ? "max_unpool2d"
                                    : "max_unpool3d",
                        {inputs.tensor("input"), inputs.tensor("indices"), config["kernel_size"], config["stride"],
                         config["padding"], inputs["output_size"]});
}

#define TP_FORWARD "forward(Tensor input)"
#define TP_LEGACY "bool? size_average=None, bool? reduce=None, str reduction='mean'"
#define TP_POOL(n) "int[" n "] kernel_size, int[" n "]? stride=None, int[" n "] padding=0"
#define TP_UNPOOL(n) "MaxUnpool" n "d(" TP_POOL(n) ")"
#define TP_UNPOOL_FORWARD "forward(Tensor input, Tensor indices, int[]? output_size=None)"
#define TP_MAX_POOL(n) \
  "MaxPool" n "d(" TP_POOL(n) ", int[" n "] dilation=1, bool return_indices=False, bool ceil_mode=False)"
#define TP_AVG_POOL(n)                                                 \
  "AvgPool" n "d(int[" n "] kernel_size, int[" n "] stride=[], int[" n \
  "] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)"

const LayerRow kStatelessLayers[] = {
    {"ReLU(bool inplace=False)", "relu"},
    {"ReLU6(bool inplace=False)", "relu6"},
    {"GELU(str approximate='none')", "gelu"},
    {"SiLU(bool inplace=False)", "silu"},
    {"Mish(bool inplace=False)", "mish"},
    {"Sigmoid()", "sigmoid"},
    {"Tanh()", "tanh"},
    {"Softmax(int? dim=None)", "softmax"},
    {"LogSoftmax(int? dim=None)", "log_softmax"},
    {"Softmin(int? dim=None)", "softmin"},
    {"Softmax2d()", nullptr, 1, nullptr, nullptr, TP_FORWARD, softmax2d},
    {"LeakyReLU(float negative_slope=0.01, bool inplace=False)", "leaky_relu"},
    {"ELU(float alpha=1.0, bool inplace=False)", "elu"},
    {"SELU(bool inplace=False)", "selu"},
    {"CELU(float alpha=1.0, bool inplace=False)", "celu"},
    {"RReLU(float lower=0.125, float upper=0.3333333333333333, bool inplace=False)", "rrelu"},
    {"GLU(int dim=-1)", "glu"},
    {"Softplus(float beta=1.0, float threshold=20.0)", "softplus"},
    {"Softshrink(float lambd=0.5)", "softshrink"},
    {"Hardshrink(float lambd=0.5)", "hardshrink"},
    {"Tanhshrink()", "tanhshrink"},
    {"Softsign()", "softsign"},
    {"Threshold(float threshold, float value, bool inplace=False)", "threshold"},
    {"Hardtanh(float min_val=-1.0, float max_val=1.0, bool inplace=False)", "hardtanh"},
    {"Hardswish(bool inplace=False)", "hardswish"},
    {"Hardsigmoid(bool inplace=False)", "hardsigmoid"},
    {"LogSigmoid()", "logsigmoid"},
    {"PReLU(int num_parameters=1, float init=0.25, Device? device=None, ScalarType? dtype=None)", "prelu", 1,
     create_prelu, reset_prelu},
    {"Dropout(float p=0.5, bool inplace=False)", "dropout"},
    {"Dropout1d(float p=0.5, bool inplace=False)", "dropout1d"},
    {"Dropout2d(float p=0.5, bool inplace=False)", "dropout2d"},
    {"Dropout3d(float p=0.5, bool inplace=False)", "dropout3d"},
    {"AlphaDropout(float p=0.5, bool inplace=False)", "alpha_dropout"},
    {"FeatureAlphaDropout(float p=0.5, bool inplace=False)", "feature_alpha_dropout"},
    {TP_MAX_POOL("1"), "max_pool1d"},
    {TP_MAX_POOL("2"), "max_pool2d"},
    {TP_MAX_POOL("3"), "max_pool3d"},
    {"AvgPool1d(int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool "
     "count_include_pad=True)",
     "avg_pool1d"},
    {TP_AVG_POOL("2"), "avg_pool2d"},
    {TP_AVG_POOL("3"), "avg_pool3d"},
    {TP_UNPOOL("1"), nullptr, 2, nullptr, nullptr, TP_UNPOOL_FORWARD, max_unpool<1>},
    {TP_UNPOOL("2"), nullptr, 2, nullptr, nullptr, TP_UNPOOL_FORWARD, max_unpool<2>},
    {TP_UNPOOL("3"), nullptr, 2, nullptr, nullptr, TP_UNPOOL_FORWARD, max_unpool<3>},
    {"LPPool1d(float norm_type, int[1] kernel_size, int[1]? stride=None, bool ceil_mode=False)", "lp_pool1d"},
    {"LPPool2d(float norm_type, int[2] kernel_size, int[2]? stride=None, bool ceil_mode=False)", "lp_pool2d"},
    {"LPPool3d(float norm_type, int[3] kernel_size, int[3]? stride=None, bool ceil_mode=False)", "lp_pool3d"},
    {"AdaptiveAvgPool1d(int[1] output_size)", "adaptive_avg_pool1d"},
    {"AdaptiveAvgPool2d(int[2] output_size)", "adaptive_avg_pool2d"},
    {"AdaptiveAvgPool3d(int[3] output_size)", "adaptive_avg_pool3d"},
    {"AdaptiveMaxPool1d(int[1] output_size, bool return_indices=False)", "adaptive_max_pool1d"},
    {"AdaptiveMaxPool2d(int[2] output_size, bool return_indices=False)", "adaptive_max_pool2d"},
    {"AdaptiveMaxPool3d(int[3] output_size, bool return_indices=False)", "adaptive_max_pool3d"},
    {"Flatten(int start_dim=1, int end_dim=-1)", nullptr, 1, nullptr, nullptr, TP_FORWARD, flatten},
    {"Unflatten(int dim, int[] unflattened_size)", nullptr, 1, nullptr, nullptr, TP_FORWARD, unflatten},
    {"PixelShuffle(int upscale_factor)", "pixel_shuffle"},
    {"PixelUnshuffle(int downscale_factor)", "pixel_unshuffle"},
    {"ChannelShuffle(int groups)", "channel_shuffle"},
    {"Fold(int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1)", "fold"},
    {"Unfold(int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1)", "unfold"},
    {"CosineSimilarity(int dim=1, float eps=1e-08)", "cosine_similarity", 2},
    {"PairwiseDistance(float p=2.0, float eps=1e-06, bool keepdim=False)", "pairwise_distance", 2},
    {"ZeroPad1d(int[2] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_zero},
    {"ZeroPad2d(int[4] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_zero},
    {"ZeroPad3d(int[6] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_zero},
    {"ConstantPad1d(int[2] padding, float value)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_constant},
    {"ConstantPad2d(int[4] padding, float value)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_constant},
    {"ConstantPad3d(int[6] padding, float value)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_constant},
    {"ReflectionPad1d(int[2] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_reflect},
    {"ReflectionPad2d(int[4] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_reflect},
    {"ReflectionPad3d(int[6] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_reflect},
    {"ReplicationPad1d(int[2] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_replicate},
    {"ReplicationPad2d(int[4] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_replicate},
    {"ReplicationPad3d(int[6] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_replicate},
    {"CircularPad1d(int[2] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_circular},
    {"CircularPad2d(int[4] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_circular},
    {"CircularPad3d(int[6] padding)", nullptr, 1, nullptr, nullptr, TP_FORWARD, pad_circular},
    {"Upsample(int? size=None, float? scale_factor=None, str mode='nearest', bool? align_corners=None, bool? "
     "recompute_scale_factor=None)",
     nullptr, 1, nullptr, nullptr, TP_FORWARD, upsample},
    {"Upsample(int[] size, float? scale_factor=None, str mode='nearest', bool? align_corners=None, bool? "
     "recompute_scale_factor=None)",
     nullptr, 1, nullptr, nullptr, TP_FORWARD, upsample},
    {"Upsample(int? size=None, *, float[] scale_factor, str mode='nearest', bool? align_corners=None, bool? "
     "recompute_scale_factor=None)",
     nullptr, 1, nullptr, nullptr, TP_FORWARD, upsample},
    {"UpsamplingNearest2d(int[2]? size=None, float? scale_factor=None)", nullptr, 1, nullptr, nullptr, TP_FORWARD,
     upsample_nearest},
    {"UpsamplingNearest2d(*, float[] scale_factor, int[2]? size=None)", nullptr, 1, nullptr, nullptr, TP_FORWARD,
     upsample_nearest},
    {"UpsamplingBilinear2d(int[2]? size=None, float? scale_factor=None)", nullptr, 1, nullptr, nullptr, TP_FORWARD,
     upsample_bilinear},
    {"UpsamplingBilinear2d(*, float[] scale_factor, int[2]? size=None)", nullptr, 1, nullptr, nullptr, TP_FORWARD,
     upsample_bilinear},
    {"MSELoss(" TP_LEGACY ")", "mse_loss", 2},
    {"L1Loss(" TP_LEGACY ")", "l1_loss", 2},
    {"SmoothL1Loss(" TP_LEGACY ", float beta=1.0)", "smooth_l1_loss", 2},
    {"HuberLoss(str reduction='mean', float delta=1.0)", "huber_loss", 2},
    {"CrossEntropyLoss(Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str "
     "reduction='mean', float label_smoothing=0.0)",
     "cross_entropy", 2, keep_weight},
    {"NLLLoss(Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str "
     "reduction='mean')",
     "nll_loss", 2, keep_weight},
    {"KLDivLoss(" TP_LEGACY ", bool log_target=False)", "kl_div", 2},
    {"BCELoss(Tensor? weight=None, " TP_LEGACY ")", "binary_cross_entropy", 2, keep_weight},
    {"BCEWithLogitsLoss(Tensor? weight=None, " TP_LEGACY ", Tensor? pos_weight=None)",
     "binary_cross_entropy_with_logits", 2, keep_both_weights},
    {"SoftMarginLoss(" TP_LEGACY ")", "soft_margin_loss", 2},
    {"MultiMarginLoss(int p=1, float margin=1.0, Tensor? weight=None, " TP_LEGACY ")", "multi_margin_loss", 2,
     keep_weight},
    {"MultiLabelMarginLoss(" TP_LEGACY ")", "multilabel_margin_loss", 2},
    {"MultiLabelSoftMarginLoss(Tensor? weight=None, " TP_LEGACY ")", "multilabel_soft_margin_loss", 2, keep_weight},
    {"CTCLoss(int blank=0, str reduction='mean', bool zero_infinity=False)", "ctc_loss", 4},
    {"HingeEmbeddingLoss(float margin=1.0, " TP_LEGACY ")", "hinge_embedding_loss", 2},
    {"MarginRankingLoss(float margin=0.0, " TP_LEGACY ")", "margin_ranking_loss", 3},
    {"CosineEmbeddingLoss(float margin=0.0, " TP_LEGACY ")", "cosine_embedding_loss", 3},
    {"TripletMarginLoss(float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, " TP_LEGACY ")",
     "triplet_margin_loss", 3},
    {"PoissonNLLLoss(bool log_input=True, bool full=False, bool? size_average=None, float eps=1e-08, bool? "
     "reduce=None, "
     "str reduction='mean')",
     "poisson_nll_loss", 2},
    {"GaussianNLLLoss(*, bool full=False, float eps=1e-06, str reduction='mean')", "gaussian_nll_loss", 3},
};

}  // namespace

LayerTable stateless_layers() { return kStatelessLayers; }

}  // namespace tilepilot::eval
