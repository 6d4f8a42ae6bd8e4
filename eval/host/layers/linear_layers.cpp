// Linear maps and embeddings of torch.nn.
#include <ATen/ATen.h>

#include <cmath>

#include "eval/host/layers/initializers.h"
#include "eval/host/layers/module.h"

namespace tilepilot::eval {

namespace {

using A = const Arguments&;
using c10::IValue;

void create_linear(NnModule& m, A config) {
  m.add_parameter("weight", {config.integer("out_features"), config.integer("in_features")}, config);
  m.add_parameter("bias", {config.integer("out_features")}, config, config.flag("bias"));
}

void reset_linear(NnModule& m, A) {
  init_kaiming_default(m.weight("weight"));
  auto bias = m.tensor("bias");
  if (!bias) return;
  int64_t fan_in = fans(m.weight("weight")).first;
  double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  bias->uniform_(-bound, bound);
}

void create_bilinear(NnModule& m, A config) {
  m.add_parameter("weight",
                  {config.integer("out_features"), config.integer("in1_features"), config.integer("in2_features")},
                  config);
  m.add_parameter("bias", {config.integer("out_features")}, config, config.flag("bias"));
}

void reset_bilinear(NnModule& m, A) {
  double bound = 1 / std::sqrt(static_cast<double>(m.weight("weight").size(1)));
  m.weight("weight").uniform_(-bound, bound);
  if (auto bias = m.tensor("bias")) bias->uniform_(-bound, bound);
}

void create_embedding(NnModule& m, A config) {
  if (auto given = config.maybe_tensor("_weight")) {
    m.register_parameter(stage::Name("weight"), m.state().wrap_parameter(*given, !config.flag("_freeze")));
    return;
  }
  m.add_parameter("weight", {config.integer("num_embeddings"), config.integer("embedding_dim")}, config);
}

void reset_embedding(NnModule& m, A config) {
  if (config.given("_weight")) return;
  m.weight("weight").normal_();
  if (auto padding = config.maybe_integer("padding_idx")) m.weight("weight").select(0, *padding).fill_(0);
}

void create_embedding_bag(NnModule& m, A config) {
  m.add_parameter("weight", {config.integer("num_embeddings"), config.integer("embedding_dim")}, config);
}

void reset_embedding_bag(NnModule& m, A config) {
  m.weight("weight").normal_();
  if (auto padding = config.maybe_integer("padding_idx")) m.weight("weight").select(0, *padding).fill_(0);
}

IValue embedding_bag(NnModule& m, A config, A inputs) {
  at::Tensor input = inputs.tensor("input");
  auto offsets = inputs.maybe_tensor("offsets"), weights = inputs.maybe_tensor("per_sample_weights");
  if (input.dim() == 2) {
    TORCH_CHECK(!offsets, "if input is 2D, then offsets has to be None");
    offsets = at::arange(0, input.numel(), input.size(1), input.options());
    input = input.reshape({-1});
    if (weights) weights = weights->reshape({-1});
  }
  TORCH_CHECK(offsets, "offsets has to be a 1D Tensor but got None");
  std::string mode = config.text("mode");
  int64_t code = mode == "sum" ? 0 : mode == "mean" ? 1 : 2;
  return std::get<0>(at::embedding_bag(m.weight("weight"), input, *offsets, config.flag("scale_grad_by_freq"), code,
                                       config.flag("sparse"), weights, config.flag("include_last_offset"),
                                       config.maybe_integer("padding_idx")));
}

IValue identity(NnModule&, A, A inputs) { return inputs.tensor("input"); }

#define TP_FACTORY ", Device? device=None, ScalarType? dtype=None"

const LayerRow kLinearLayers[] = {
    {"Linear(int in_features, int out_features, bool bias=True" TP_FACTORY ")", "linear", 1, create_linear,
     reset_linear},
    {"Bilinear(int in1_features, int in2_features, int out_features, bool bias=True" TP_FACTORY ")", "bilinear", 2,
     create_bilinear, reset_bilinear},
    {"Embedding(int num_embeddings, int embedding_dim, int? padding_idx=None, float? max_norm=None, float "
     "norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False, Tensor? _weight=None, bool "
     "_freeze=False" TP_FACTORY ")",
     "embedding", 1, create_embedding, reset_embedding},
    {"EmbeddingBag(int num_embeddings, int embedding_dim, float? max_norm=None, float norm_type=2.0, bool "
     "scale_grad_by_freq=False, str mode='mean', bool sparse=False, Tensor? _weight=None, bool "
     "include_last_offset=False, int? padding_idx=None" TP_FACTORY ")",
     nullptr, 1, create_embedding_bag, reset_embedding_bag,
     "forward(Tensor input, Tensor? offsets=None, Tensor? per_sample_weights=None)", embedding_bag},
    {"Identity()", nullptr, 1, nullptr, nullptr, "forward(Tensor input)", identity},
};

}  // namespace

LayerTable linear_layers() { return kLinearLayers; }

}  // namespace tilepilot::eval
