#include "retrieval/index/embedding.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "retrieval/index/stable_hash.h"

namespace tilepilot::retrieval {
namespace {

// Operators that stand for one kind of work. Whatever is not listed is a family of its own.
const std::unordered_map<std::string_view, std::string_view>& families() {
  static const std::unordered_map<std::string_view, std::string_view> table = {
      {"linear", "product"},
      {"addmm", "product"},
      {"mm", "product"},
      {"matmul", "product"},
      {"bmm", "product"},
      {"baddbmm", "product"},
      {"einsum", "product"},
      {"mv", "product"},
      {"conv1d", "convolution"},
      {"conv2d", "convolution"},
      {"conv3d", "convolution"},
      {"convolution", "convolution"},
      {"sum", "reduction"},
      {"mean", "reduction"},
      {"amax", "reduction"},
      {"amin", "reduction"},
      {"max", "reduction"},
      {"min", "reduction"},
      {"var", "reduction"},
      {"norm", "reduction"},
      {"logsumexp", "reduction"},
      {"linalg_vector_norm", "reduction"},
      {"softmax", "softmax"},
      {"log_softmax", "softmax"},
      {"cross_entropy_loss", "softmax"},
      {"layer_norm", "norm"},
      {"group_norm", "norm"},
      {"batch_norm", "norm"},
      {"rms_norm", "norm"},
      {"instance_norm", "norm"},
      {"relu", "activation"},
      {"gelu", "activation"},
      {"silu", "activation"},
      {"sigmoid", "activation"},
      {"tanh", "activation"},
      {"leaky_relu", "activation"},
      {"mish", "activation"},
      {"hardswish", "activation"},
      {"add", "arithmetic"},
      {"sub", "arithmetic"},
      {"mul", "arithmetic"},
      {"div", "arithmetic"},
      {"pow", "arithmetic"},
      {"neg", "arithmetic"},
      {"rsqrt", "arithmetic"},
      {"sqrt", "arithmetic"},
      {"exp", "arithmetic"},
      {"log", "arithmetic"},
      {"square", "arithmetic"},
      {"view", "view"},
      {"reshape", "view"},
      {"transpose", "view"},
      {"permute", "view"},
      {"t", "view"},
      {"unsqueeze", "view"},
      {"squeeze", "view"},
      {"flatten", "view"},
      {"max_pool2d", "pooling"},
      {"avg_pool2d", "pooling"},
      {"adaptive_avg_pool2d", "pooling"},
      {"scaled_dot_product_attention", "attention"},
      {"conv_transpose1d", "convolution"},
      {"conv_transpose2d", "convolution"},
      {"conv_transpose3d", "convolution"},
      {"max_pool1d", "pooling"},
      {"max_pool3d", "pooling"},
      {"avg_pool1d", "pooling"},
      {"avg_pool3d", "pooling"},
      {"adaptive_avg_pool1d", "pooling"},
      {"adaptive_avg_pool3d", "pooling"},
      {"adaptive_max_pool1d", "pooling"},
      {"adaptive_max_pool2d", "pooling"},
      {"adaptive_max_pool3d", "pooling"},
      {"elu", "activation"},
      {"selu", "activation"},
      {"celu", "activation"},
      {"softplus", "activation"},
      {"softsign", "activation"},
      {"hardsigmoid", "activation"},
      {"hardtanh", "activation"},
      {"relu6", "activation"},
      {"log_sigmoid", "activation"},
      {"prelu", "activation"},
      {"clamp", "activation"},
      {"abs", "arithmetic"},
      {"rsub", "arithmetic"},
      {"maximum", "arithmetic"},
      {"minimum", "arithmetic"},
      {"reciprocal", "arithmetic"},
      {"sin", "arithmetic"},
      {"cos", "arithmetic"},
      {"erf", "arithmetic"},
      {"where", "arithmetic"},
      {"masked_fill", "arithmetic"},
      {"sign", "arithmetic"},
      {"multiply", "arithmetic"},
      {"divide", "arithmetic"},
      {"subtract", "arithmetic"},
      {"prod", "reduction"},
      {"argmax", "reduction"},
      {"argmin", "reduction"},
      {"std", "reduction"},
      {"any", "reduction"},
      {"all", "reduction"},
      {"cumsum", "scan"},
      {"cumprod", "scan"},
      {"cummax", "scan"},
      {"cummin", "scan"},
      {"logcumsumexp", "scan"},
      {"mse_loss", "loss"},
      {"l1_loss", "loss"},
      {"smooth_l1_loss", "loss"},
      {"huber_loss", "loss"},
      {"kl_div", "loss"},
      {"triplet_margin_loss", "loss"},
      {"hinge_embedding_loss", "loss"},
      {"margin_ranking_loss", "loss"},
      {"binary_cross_entropy", "loss"},
      {"binary_cross_entropy_with_logits", "loss"},
      {"nll_loss", "loss"},
      {"cosine_embedding_loss", "loss"},
      {"dot", "product"},
      {"outer", "product"},
      {"ger", "product"},
      {"matvec", "product"},
      {"addmv", "product"},
      {"addbmm", "product"},
      {"tensordot", "product"},
      {"bilinear", "product"},
      {"multi_head_attention_forward", "attention"},
      {"numpy_T", "view"},
      {"mT", "view"},
      {"clone", "view"},
      {"detach", "view"},
      {"contiguous", "view"},
      {"expand", "view"},
      {"expand_as", "view"},
      {"view_as", "view"},
      {"movedim", "view"},
      {"swapaxes", "view"},
      {"slice", "view"},
      {"select", "view"},
      {"chunk", "view"},
      {"split", "view"},
      {"split_with_sizes", "view"},
      {"narrow", "view"},
      {"unbind", "view"},
      {"alias", "view"},
      {"to", "view"},
      {"unflatten", "view"},
      {"native_layer_norm", "norm"},
      {"native_batch_norm", "norm"},
      {"native_group_norm", "norm"},
      {"rnn_tanh", "recurrent"},
      {"rnn_relu", "recurrent"},
      {"lstm", "recurrent"},
      {"gru", "recurrent"},
  };
  return table;
}

// Adds a feature with a sign from its hash, so that collisions cancel on average.
template <size_t N>
void add(std::array<float, N>& vector, std::string_view feature, float weight) {
  uint64_t hash = stable_hash(feature);
  vector[(hash >> 8) % N] += (hash & 1) != 0 ? weight : -weight;
}

template <size_t N>
void to_length_1(std::array<float, N>& vector) {
  double sum = 0;
  for (float x : vector) sum += double{x} * x;
  if (sum == 0) return;
  for (float& x : vector) x = static_cast<float>(x / std::sqrt(sum));
}

// Views move no data, so they say little about what a kernel does.
float importance(std::string_view family) { return family == kViewFamily ? 0.2f : 1.0f; }

}  // namespace

void normalise(StructureVector& vector) { to_length_1(vector); }

std::string plain_operator(const std::string& op) {
  size_t colon = op.rfind(':');
  std::string plain = colon == std::string::npos ? op : op.substr(colon + 1);
  if (plain.size() > 1 && plain.back() == '_') plain.pop_back();
  return plain;
}

std::string_view operator_family(std::string_view plain) {
  auto found = families().find(plain);
  return found == families().end() ? plain : found->second;
}

StructureVector embed(const Structure& structure) {
  StructureVector vector{};
  std::unordered_map<std::string, int> seen;
  for (const std::string& op : structure.ops) {
    std::string plain = plain_operator(op);
    std::string family(operator_family(plain));
    // The tenth add says less than the first.
    float weight = importance(family) / static_cast<float>(1 + seen[plain]++);
    add(vector, "op:" + plain, weight);
    add(vector, "family:" + family, 0.7f * weight);
  }
  for (const auto& [producer, consumer] : structure.edges) {
    std::string from = plain_operator(producer), to = plain_operator(consumer);
    std::string edge = from + ">" + to;
    float weight = std::min(importance(operator_family(from)), importance(operator_family(to))) /
                   static_cast<float>(1 + seen[edge]++);
    add(vector, "edge:" + edge, 0.8f * weight);
    add(vector, "family-edge:" + std::string(operator_family(from)) + ">" + std::string(operator_family(to)),
        0.5f * weight);
  }
  if (!structure.ops.empty()) add(vector, "dtype:" + structure.dtype, 0.2f);
  to_length_1(vector);
  return vector;
}

double similarity(const Structure& one, const Structure& other) {
  const StructureVector a = embed(one), b = embed(other);
  return std::clamp(std::inner_product(a.begin(), a.end(), b.begin(), 0.0), 0.0, 1.0);
}

TextVector embed_text(const std::string& text) {
  TextVector vector{};
  std::string word;
  auto finish = [&] {
    if (word.size() > 1) {
      add(vector, "word:" + word, 1);
      // Three-letter pieces let "softmax" meet "log_softmax" and plurals.
      for (size_t i = 0; i + 3 <= word.size(); ++i) add(vector, "piece:" + word.substr(i, 3), 0.3f);
    }
    word.clear();
  };
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else
      finish();
  }
  finish();
  to_length_1(vector);
  return vector;
}

}  // namespace tilepilot::retrieval
