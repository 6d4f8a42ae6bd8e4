// The losses of torch.nn.functional: ATen's operators take the reduction as a number, Python as a word and two legacy
// flags.
#include <ATen/ATen.h>

#include <cmath>

#include <ATen/ExpandUtils.h>
#include "eval/host/arguments.h"

namespace tilepilot::eval {

using at::Tensor;
using c10::IValue;

namespace {

using A = const Arguments&;

IValue reduce(const Tensor& loss, const std::string& reduction) {
  if (reduction == "none") return loss;
  return reduction == "mean" ? loss.mean() : loss.sum();
}

// The element-wise losses broadcast first; a weight makes them average by weight.
template <class Loss>
IValue broadcast_loss(A a, Loss loss) {
  auto pair = at::broadcast_tensors({a.tensor("input"), a.tensor("target")});
  return loss(pair[0], pair[1]);
}

IValue weighted(A a, const Tensor& errors, bool mean_by_weight) {
  Tensor weight = a.tensor("weight");
  Tensor scaled = errors * weight;
  std::string reduction = a.reduction_text();
  if (reduction == "none") return scaled;
  if (reduction == "sum") return scaled.sum();
  return mean_by_weight ? scaled.sum() / weight.sum() : scaled.mean();
}

IValue mse_loss(A a) {
  return broadcast_loss(a, [&](const Tensor& input, const Tensor& target) -> IValue {
    if (a.given("weight")) return weighted(a, at::pow(input - target, 2), true);
    return at::mse_loss(input, target, a.reduction());
  });
}

IValue l1_loss(A a) {
  return broadcast_loss(a, [&](const Tensor& input, const Tensor& target) -> IValue {
    if (a.given("weight")) return weighted(a, at::abs(input - target), true);
    return at::l1_loss(input, target, a.reduction());
  });
}

IValue huber_loss(A a) {
  return broadcast_loss(a, [&](const Tensor& input, const Tensor& target) -> IValue {
    if (a.given("weight")) {
      return weighted(a, at::huber_loss(input, target, at::Reduction::None, a.real("delta")), false);
    }
    return at::huber_loss(input, target, a.reduction(), a.real("delta"));
  });
}

IValue smooth_l1_loss(A a) {
  return broadcast_loss(a, [&](const Tensor& input, const Tensor& target) -> IValue {
    double beta = a.real("beta");
    return beta == 0 ? at::l1_loss(input, target, a.reduction())
                     : at::smooth_l1_loss(input, target, a.reduction(), beta);
  });
}

IValue cross_entropy(A a) {
  return at::cross_entropy_loss(a.tensor("input"), a.tensor("target"), a.maybe_tensor("weight"), a.reduction(),
                                a.integer("ignore_index"), a.real("label_smoothing"));
}

IValue nll_loss(A a) {
  return at::nll_loss_nd(a.tensor("input"), a.tensor("target"), a.maybe_tensor("weight"), a.reduction(),
                         a.integer("ignore_index"));
}

IValue kl_div(A a) {
  bool batch_mean = a.reduction_text() == "batchmean";
  Tensor input = a.tensor("input");
  int64_t reduction = batch_mean ? int64_t{at::Reduction::Sum} : a.reduction();
  Tensor reduced = at::kl_div(input, a.tensor("target"), reduction, a.flag("log_target"));
  return batch_mean && input.dim() != 0 ? reduced / input.size(0) : reduced;
}

IValue binary_cross_entropy(A a) {
  Tensor target = a.tensor("target");
  TORCH_CHECK(target.sizes() == a.tensor("input").sizes(), "Using a target size (", target.sizes(),
              ") that is different to the input size (", a.tensor("input").sizes(), ")");
  auto weight = a.maybe_tensor("weight");
  if (weight) weight = weight->expand(at::infer_size(target.sizes(), weight->sizes()));
  return at::binary_cross_entropy(a.tensor("input"), target, weight, a.reduction());
}

IValue binary_cross_entropy_with_logits(A a) {
  TORCH_CHECK(a.tensor("target").sizes() == a.tensor("input").sizes(), "Target size must be the same as input size");
  return at::binary_cross_entropy_with_logits(a.tensor("input"), a.tensor("target"), a.maybe_tensor("weight"),
                                              a.maybe_tensor("pos_weight"), a.reduction());
}

IValue gaussian_nll_loss(A a) {
  Tensor input = a.tensor("input"), var = a.tensor("var");
  TORCH_CHECK(!at::any(var < 0).item<bool>(), "var has negative entry/entries");
  if (var.sizes() != input.sizes() && var.dim() == input.dim() - 1) var = var.unsqueeze(-1);
  var = var.clone().clamp_(a.scalar("eps"));
  Tensor loss = at::mul(at::log(var) + at::pow(input - a.tensor("target"), 2) / var, 0.5);
  if (a.flag("full")) loss += 0.5 * std::log(2 * M_PI);
  return reduce(loss, a.reduction_text());
}

IValue multilabel_soft_margin_loss(A a) {
  Tensor input = a.tensor("input"), target = a.tensor("target");
  Tensor loss = -(target * at::log_sigmoid(input) + (1 - target) * at::log_sigmoid(-input));
  if (auto weight = a.maybe_tensor("weight")) loss = loss * *weight;
  return reduce(loss.sum(-1) / input.size(-1), a.reduction_text());
}

#define TP_LEGACY "bool? size_average=None, bool? reduce=None, str reduction='mean'"

const FunctionRow kLosses[] = {
    {"mse_loss(Tensor input, Tensor target, " TP_LEGACY ", Tensor? weight=None)", mse_loss},
    {"l1_loss(Tensor input, Tensor target, " TP_LEGACY ", Tensor? weight=None)", l1_loss},
    {"smooth_l1_loss(Tensor input, Tensor target, " TP_LEGACY ", float beta=1.0)", smooth_l1_loss},
    {"huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None)", huber_loss},
    {"cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
     "bool? reduce=None, str reduction='mean', float label_smoothing=0.0)",
     cross_entropy},
    {"nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? "
     "reduce=None, str reduction='mean')",
     nll_loss},
    {"kl_div(Tensor input, Tensor target, " TP_LEGACY ", bool log_target=False)", kl_div},
    {"binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, " TP_LEGACY ")", binary_cross_entropy},
    {"binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, " TP_LEGACY
     ", Tensor? pos_weight=None)",
     binary_cross_entropy_with_logits},
    {"soft_margin_loss(Tensor input, Tensor target, " TP_LEGACY ")",
     [](A a) -> IValue { return at::soft_margin_loss(a.tensor("input"), a.tensor("target"), a.reduction()); }},
    {"multi_margin_loss(Tensor input, Tensor target, int p=1, float margin=1.0, Tensor? weight=None, " TP_LEGACY ")",
     [](A a) -> IValue {
       return at::multi_margin_loss(a.tensor("input"), a.tensor("target"), a.scalar("p"), a.scalar("margin"),
                                    a.maybe_tensor("weight"), a.reduction());
     }},
    {"multilabel_margin_loss(Tensor input, Tensor target, " TP_LEGACY ")",
     [](A a) -> IValue { return at::multilabel_margin_loss(a.tensor("input"), a.tensor("target"), a.reduction()); }},
    {"multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, " TP_LEGACY ")",
     multilabel_soft_margin_loss},
    {"ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, str "
     "reduction='mean', bool zero_infinity=False)",
     [](A a) -> IValue {
       return at::ctc_loss(a.tensor("log_probs"), a.tensor("targets"), a.tensor("input_lengths"),
                           a.tensor("target_lengths"), a.integer("blank"), a.reduction(), a.flag("zero_infinity"));
     }},
    {"ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, str "
     "reduction='mean', bool zero_infinity=False)",
     [](A a) -> IValue {
       return at::ctc_loss(a.tensor("log_probs"), a.tensor("targets"), a.integers("input_lengths"),
                           a.integers("target_lengths"), a.integer("blank"), a.reduction(), a.flag("zero_infinity"));
     }},
    {"hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, " TP_LEGACY ")",
     [](A a) -> IValue {
       return at::hinge_embedding_loss(a.tensor("input"), a.tensor("target"), a.real("margin"), a.reduction());
     }},
    {"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, " TP_LEGACY ")",
     [](A a) -> IValue {
       return at::margin_ranking_loss(a.tensor("input1"), a.tensor("input2"), a.tensor("target"), a.real("margin"),
                                      a.reduction());
     }},
    {"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, " TP_LEGACY ")",
     [](A a) -> IValue {
       return at::cosine_embedding_loss(a.tensor("input1"), a.tensor("input2"), a.tensor("target"), a.real("margin"),
                                        a.reduction());
     }},
    {"triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float "
     "eps=1e-06, bool swap=False, " TP_LEGACY ")",
     [](A a) -> IValue {
       return at::triplet_margin_loss(a.tensor("anchor"), a.tensor("positive"), a.tensor("negative"), a.real("margin"),
                                      a.real("p"), a.real("eps"), a.flag("swap"), a.reduction());
     }},
    {"poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? size_average=None, "
     "float eps=1e-08, bool? reduce=None, str reduction='mean')",
     [](A a) -> IValue {
       return at::poisson_nll_loss(a.tensor("input"), a.tensor("target"), a.flag("log_input"), a.flag("full"),
                                   a.real("eps"), a.reduction());
     }},
    {"gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, float eps=1e-06, str "
     "reduction='mean')",
     gaussian_nll_loss},
};
#undef TP_LEGACY

}  // namespace

FunctionTable functional_loss_table() { return kLosses; }

}  // namespace tilepilot::eval
