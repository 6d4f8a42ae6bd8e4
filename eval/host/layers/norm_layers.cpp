// Normalisation layers of torch.nn.
#include <ATen/ATen.h>

#include "eval/host/layers/module.h"

namespace tilepilot::eval {

namespace {

using A = const Arguments&;
using c10::IValue;

void fill_ones_and_zeros(NnModule& m) {
  if (auto weight = m.tensor("weight")) weight->fill_(1.0);
  if (auto bias = m.tensor("bias")) bias->zero_();
}

void create_running_statistics(NnModule& m, A config) {
  bool affine = config.flag("affine");
  std::vector<int64_t> shape{config.integer("num_features")};
  m.add_parameter("weight", shape, config, affine);
  m.add_parameter("bias", shape, config, affine && config.flag("bias"));
  bool track = config.flag("track_running_stats");
  auto options =
      at::device(m.state().device()).dtype(config.dtype("dtype").value_or(c10::get_default_dtype_as_scalartype()));
  m.add_buffer("running_mean", track ? at::zeros(shape, options) : at::Tensor());
  m.add_buffer("running_var", track ? at::ones(shape, options) : at::Tensor());
  m.add_buffer("num_batches_tracked", track ? at::zeros({}, options.dtype(at::kLong)) : at::Tensor());
}

void reset_running_statistics(NnModule& m, A) {
  if (auto mean = m.tensor("running_mean")) mean->zero_();
  if (auto var = m.tensor("running_var")) var->fill_(1);
  if (auto count = m.tensor("num_batches_tracked")) count->zero_();
  fill_ones_and_zeros(m);
}

template <int low, int high>
IValue batch_norm(NnModule& m, A config, A inputs) {
  at::Tensor input = inputs.tensor("input");
  TORCH_CHECK(input.dim() >= low && input.dim() <= high, "expected ", low, "D input (got ", input.dim(), "D input)");
  bool training = m.training();
  auto mean = m.tensor("running_mean"), var = m.tensor("running_var"), count = m.tensor("num_batches_tracked");
  double momentum = config.maybe_real("momentum").value_or(0.0);
  if (training && count) {
    count->add_(1);
    if (!config.given("momentum")) momentum = 1.0 / static_cast<double>(count->item<int64_t>());
  }
  bool use_batch = training || (!mean && !var);
  TORCH_CHECK(!use_batch || input.numel() / input.size(1) > 1,
              "Expected more than 1 value per channel when training, got input size ", input.sizes());
  return at::batch_norm(input, m.tensor("weight"), m.tensor("bias"), mean, var, use_batch, momentum, config.real("eps"),
                        true);
}

template <int low>
IValue instance_norm(NnModule& m, A config, A inputs) {
  at::Tensor input = inputs.tensor("input");
  TORCH_CHECK(input.dim() == low || input.dim() == low - 1, "expected ", low - 1, "D or ", low, "D input (got ",
              input.dim(), "D input)");
  bool batched = input.dim() == low;
  if (!batched) input = input.unsqueeze(0);
  auto mean = m.tensor("running_mean"), var = m.tensor("running_var");
  at::Tensor result = at::instance_norm(input, m.tensor("weight"), m.tensor("bias"), mean, var, m.training() || !mean,
                                        config.maybe_real("momentum").value_or(0.0), config.real("eps"), true);
  return batched ? result : result.squeeze(0);
}

void create_group_norm(NnModule& m, A config) {
  TORCH_CHECK(config.integer("num_channels") % config.integer("num_groups") == 0,
              "num_channels must be divisible by num_groups");
  bool affine = config.flag("affine");
  m.add_parameter("weight", {config.integer("num_channels")}, config, affine);
  m.add_parameter("bias", {config.integer("num_channels")}, config, affine && config.flag("bias"));
}

void create_layer_norm(NnModule& m, A config) {
  bool affine = config.flag("elementwise_affine");
  m.add_parameter("weight", config.integers("normalized_shape"), config, affine);
  m.add_parameter("bias", config.integers("normalized_shape"), config, affine && config.flag("bias"));
}

void create_rms_norm(NnModule& m, A config) {
  m.add_parameter("weight", config.integers("normalized_shape"), config, config.flag("elementwise_affine"));
}

void reset_affine(NnModule& m, A) { fill_ones_and_zeros(m); }

#define TP_FACTORY ", Device? device=None, ScalarType? dtype=None"
#define TP_BATCH_NORM                                                                \
  "(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=True, bool " \
  "track_running_stats=True" TP_FACTORY ", *, bool bias=True)"
#define TP_INSTANCE_NORM                                                              \
  "(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=False, bool " \
  "track_running_stats=False" TP_FACTORY ", *, bool bias=True)"

const LayerRow kNormLayers[] = {
    {"BatchNorm1d" TP_BATCH_NORM, nullptr, 1, create_running_statistics, reset_running_statistics,
     "forward(Tensor input)", batch_norm<2, 3>},
    {"BatchNorm2d" TP_BATCH_NORM, nullptr, 1, create_running_statistics, reset_running_statistics,
     "forward(Tensor input)", batch_norm<4, 4>},
    {"BatchNorm3d" TP_BATCH_NORM, nullptr, 1, create_running_statistics, reset_running_statistics,
     "forward(Tensor input)", batch_norm<5, 5>},
    {"InstanceNorm1d" TP_INSTANCE_NORM, nullptr, 1, create_running_statistics, reset_running_statistics,
     "forward(Tensor input)", instance_norm<3>},
    {"InstanceNorm2d" TP_INSTANCE_NORM, nullptr, 1, create_running_statistics, reset_running_statistics,
     "forward(Tensor input)", instance_norm<4>},
    {"InstanceNorm3d" TP_INSTANCE_NORM, nullptr, 1, create_running_statistics, reset_running_statistics,
     "forward(Tensor input)", instance_norm<5>},
    {"GroupNorm(int num_groups, int num_channels, float eps=1e-05, bool affine=True" TP_FACTORY ", *, bool bias=True)",
     "group_norm", 1, create_group_norm, reset_affine},
    {"LayerNorm(int[1] normalized_shape, float eps=1e-05, bool elementwise_affine=True, bool bias=True" TP_FACTORY ")",
     "layer_norm", 1, create_layer_norm, reset_affine},
    {"RMSNorm(int[1] normalized_shape, float? eps=None, bool elementwise_affine=True" TP_FACTORY ")", "rms_norm", 1,
     create_rms_norm, reset_affine},
    {"LocalResponseNorm(int size, float alpha=0.0001, float beta=0.75, float k=1.0)", "local_response_norm"},
};

}  // namespace

LayerTable norm_layers() { return kNormLayers; }

}  // namespace tilepilot::eval
