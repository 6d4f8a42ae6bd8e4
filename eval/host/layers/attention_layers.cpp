// nn.MultiheadAttention.
#include <ATen/ATen.h>

#include <cmath>

#include "eval/host/layers/initializers.h"
#include "eval/host/layers/module.h"

namespace tilepilot::eval {

namespace {

using A = const Arguments&;
using at::Tensor;
using c10::IValue;
using MaybeTensor = std::optional<Tensor>;

bool one_width(A config) {
  int64_t width = config.integer("embed_dim");
  return config.maybe_integer("kdim").value_or(width) == width && config.maybe_integer("vdim").value_or(width) == width;
}

void create(NnModule& m, A config) {
  int64_t width = config.integer("embed_dim");
  TORCH_CHECK(width > 0 && config.integer("num_heads") > 0 && width % config.integer("num_heads") == 0,
              "embed_dim must be divisible by num_heads");
  bool packed = one_width(config), bias = config.flag("bias"), extra = config.flag("add_bias_kv");
  if (!packed) {
    m.add_parameter("q_proj_weight", {width, width}, config);
    m.add_parameter("k_proj_weight", {width, config.maybe_integer("kdim").value_or(width)}, config);
    m.add_parameter("v_proj_weight", {width, config.maybe_integer("vdim").value_or(width)}, config);
    m.add_parameter("in_proj_weight", {}, config, false);
  } else {
    m.add_parameter("in_proj_weight", {3 * width, width}, config);
    for (const char* name : {"q_proj_weight", "k_proj_weight", "v_proj_weight"}) {
      m.add_parameter(name, {}, config, false);
    }
  }
  m.add_parameter("in_proj_bias", {3 * width}, config, bias);
  auto out = std::make_shared<NnModule>(m.state(), m.state().classes["Linear"], m.state().layers.at("Linear"));
  stage::CallArgs arguments;
  arguments.positional = {stage::Value(width), stage::Value(width), stage::Value(bias)};
  TORCH_CHECK(configure_layer(*out, arguments).ok(), "the output projection cannot be made");
  out->add_parameter("weight", {width, width}, config);
  out->add_parameter("bias", {width}, config, bias);
  m.register_module(stage::Name("out_proj"), out);
  m.add_parameter("bias_k", {1, 1, width}, config, extra);
  m.add_parameter("bias_v", {1, 1, width}, config, extra);
}

NnModule& output_projection(NnModule& m) { return *as_module(m.modules()[0].value); }

void xavier_normal(const Tensor& tensor) {
  auto [fan_in, fan_out] = fans(tensor);
  tensor.normal_(0.0, std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)));
}

// The output projection initialises itself as a Linear first; its bias is then cleared.
void reset(NnModule& m, A config) {
  NnModule& out = output_projection(m);
  init_kaiming_default(out.weight("weight"));
  auto out_bias = out.tensor("bias");
  double bound = 1 / std::sqrt(static_cast<double>(config.integer("embed_dim")));
  if (out_bias) out_bias->uniform_(-bound, bound);
  for (const char* name : {"in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"}) {
    if (auto weight = m.tensor(name)) init_xavier_uniform(*weight, 1.0);
  }
  if (auto bias = m.tensor("in_proj_bias")) {
    bias->fill_(0.0);
    out_bias->fill_(0.0);
  }
  if (auto bias = m.tensor("bias_k")) xavier_normal(*bias);
  if (auto bias = m.tensor("bias_v")) xavier_normal(*bias);
}

struct Projected {
  Tensor q, k, v;
};

// One product for several projections of the same input.
std::vector<Tensor> project_together(const Tensor& input, const Tensor& weight, const MaybeTensor& bias,
                                     int64_t count) {
  Tensor together = at::linear(input, weight, bias).unflatten(-1, {count, input.size(-1)});
  return together.unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous().unbind(0);
}

MaybeTensor part(const MaybeTensor& bias, int64_t from, int64_t to) {
  return bias ? MaybeTensor(bias->slice(0, from, to)) : std::nullopt;
}

Projected project(NnModule& m, const Tensor& query, const Tensor& key, const Tensor& value) {
  auto bias = m.tensor("in_proj_bias"), packed = m.tensor("in_proj_weight");
  int64_t width = query.size(-1);
  MaybeTensor bias_q = part(bias, 0, width), bias_k = part(bias, width, 2 * width),
              bias_v = part(bias, 2 * width, 3 * width);
  if (!packed) {
    return {at::linear(query, m.weight("q_proj_weight"), bias_q), at::linear(key, m.weight("k_proj_weight"), bias_k),
            at::linear(value, m.weight("v_proj_weight"), bias_v)};
  }
  if (key.is_same(value) && query.is_same(key)) {
    auto all = project_together(query, *packed, bias, 3);
    return {all[0], all[1], all[2]};
  }
  if (key.is_same(value)) {
    auto both = project_together(key, packed->slice(0, width, 3 * width), part(bias, width, 3 * width), 2);
    return {at::linear(query, packed->slice(0, 0, width), bias_q), both[0], both[1]};
  }
  return {at::linear(query, packed->slice(0, 0, width), bias_q),
          at::linear(key, packed->slice(0, width, 2 * width), bias_k),
          at::linear(value, packed->slice(0, 2 * width, 3 * width), bias_v)};
}

// A boolean mask as what is added to the scores.
MaybeTensor additive(const MaybeTensor& mask, at::ScalarType type) {
  if (!mask || mask->scalar_type() != at::kBool) return mask;
  return at::zeros_like(*mask, at::dtype(type)).masked_fill_(*mask, -INFINITY);
}

struct Sizes {
  int64_t target, source, batch, heads, head;
};

Tensor split_heads(const Tensor& tensor, const Sizes& s) {
  return tensor.reshape({tensor.size(0), s.batch * s.heads, s.head}).transpose(0, 1);
}

MaybeTensor combined_mask(A inputs, const Sizes& s, at::ScalarType type) {
  MaybeTensor mask = additive(inputs.maybe_tensor("attn_mask"), type);
  if (mask && mask->dim() == 2) mask = mask->unsqueeze(0);
  MaybeTensor padding = additive(inputs.maybe_tensor("key_padding_mask"), type);
  if (!padding) return mask;
  Tensor spread = padding->view({s.batch, 1, 1, s.source}).expand({-1, s.heads, -1, -1});
  spread = spread.reshape({s.batch * s.heads, 1, s.source});
  return mask ? *mask + spread : spread;
}

IValue attend_with_weights(NnModule& m, A config, A inputs, const Projected& p, const MaybeTensor& mask,
                           const Sizes& s) {
  Tensor scaled = p.q * std::sqrt(1.0 / static_cast<double>(p.q.size(2)));
  Tensor weights = mask ? at::baddbmm(*mask, scaled, p.k.transpose(-2, -1)) : at::bmm(scaled, p.k.transpose(-2, -1));
  weights = at::softmax(weights, -1);
  double dropout = m.training() ? config.real("dropout") : 0.0;
  if (dropout > 0) weights = at::dropout(weights, dropout, true);
  NnModule& out = output_projection(m);
  Tensor result = at::bmm(weights, p.v).transpose(0, 1).reshape({s.target * s.batch, s.heads * s.head});
  result = at::linear(result, out.weight("weight"), out.tensor("bias"));
  weights = weights.view({s.batch, s.heads, s.target, s.source});
  if (inputs.flag("average_attn_weights")) weights = weights.mean(1);
  return c10::ivalue::Tuple::create(result.view({s.target, s.batch, result.size(1)}), weights);
}

Tensor attend(NnModule& m, A config, A inputs, const Projected& p, const MaybeTensor& mask, const Sizes& s) {
  MaybeTensor shaped;
  if (mask) shaped = mask->size(0) == 1 ? mask->unsqueeze(0) : mask->view({s.batch, s.heads, -1, s.source});
  bool causal = inputs.flag("is_causal") && !inputs.given("key_padding_mask");
  if (causal) shaped.reset();
  Tensor result = at::scaled_dot_product_attention(
      p.q.view({s.batch, s.heads, s.target, s.head}), p.k.view({s.batch, s.heads, s.source, s.head}),
      p.v.view({s.batch, s.heads, s.source, s.head}), shaped, m.training() ? config.real("dropout") : 0.0, causal);
  NnModule& out = output_projection(m);
  result = result.permute({2, 0, 1, 3}).reshape({s.batch * s.target, s.heads * s.head});
  result = at::linear(result, out.weight("weight"), out.tensor("bias"));
  return result.view({s.target, s.batch, result.size(1)});
}

IValue forward(NnModule& m, A config, A inputs) {
  Tensor query = inputs.tensor("query"), key = inputs.tensor("key"), value = inputs.tensor("value");
  TORCH_CHECK(!config.flag("add_bias_kv") && !config.flag("add_zero_attn"),
              "MultiheadAttention with add_bias_kv or add_zero_attn is not supported");
  bool batched = query.dim() == 3, flipped = batched && config.flag("batch_first");
  auto arranged = [&](const Tensor& tensor) {
    return !batched ? tensor.unsqueeze(1) : flipped ? tensor.transpose(1, 0) : tensor;
  };
  bool same_kv = key.is_same(value), same_q = query.is_same(key);
  value = arranged(value);
  key = same_kv ? value : arranged(key);
  query = same_q ? key : arranged(query);
  Sizes s{query.size(0), key.size(0), query.size(1), config.integer("num_heads"), 0};
  s.head = config.integer("embed_dim") / s.heads;
  Projected p = project(m, query, key, value);
  p = {split_heads(p.q, s), split_heads(p.k, s), split_heads(p.v, s)};
  MaybeTensor mask = combined_mask(inputs, s, query.scalar_type());
  auto finished = [&](const Tensor& result) {
    return !batched ? result.squeeze(1) : flipped ? result.transpose(1, 0) : result;
  };
  if (!inputs.flag("need_weights")) {
    return c10::ivalue::Tuple::create(IValue(finished(attend(m, config, inputs, p, mask, s))), IValue());
  }
  auto both = attend_with_weights(m, config, inputs, p, mask, s).toTupleRef().elements().vec();
  Tensor weights = both[1].toTensor();
  return c10::ivalue::Tuple::create(finished(both[0].toTensor()), batched ? weights : weights.squeeze(0));
}

const LayerRow kAttentionLayers[] = {
    {"MultiheadAttention(int embed_dim, int num_heads, float dropout=0.0, bool bias=True, bool add_bias_kv=False, bool "
     "add_zero_attn=False, int? kdim=None, int? vdim=None, bool batch_first=False, Device? device=None, ScalarType? "
     "dtype=None)",
     nullptr, 3, create, reset,
     "forward(Tensor query, Tensor key, Tensor value, Tensor? key_padding_mask=None, bool need_weights=True, Tensor? "
     "attn_mask=None, bool average_attn_weights=True, bool is_causal=False)",
     forward},
};

}  // namespace

LayerTable attention_layers() { return kAttentionLayers; }

}  // namespace tilepilot::eval
