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
  if (auto given = config.maybe_tensor("_weight")) {
    m.register_parameter(stage::Name("weight"), m.state().wrap_parameter(*given, true));
    return;
  }
  m.add_parameter("weight", {config.integer("num_embeddings"), config.integer("embedding_dim")}, config);
}

void reset_embedding_bag(NnModule& m, A config) {
  if (config.given("_weight")) return;
  m.weight("weight").normal_();
  if (auto padding = config.maybe_integer("padding_idx")) m.weight("weight").select(0, *padding).fill_(0);
}

IValue embedding_bag(NnModule& m, A config, A inputs) {
  return run_functional(m, "embedding_bag",
                        {inputs.tensor("input"), m.weight("weight"), inputs["offsets"], config["max_norm"],
                         config["norm_type"], config["scale_grad_by_freq"], config["mode"], config["sparse"],
                         inputs["per_sample_weights"], config["include_last_offset"], config["padding_idx"]});
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
