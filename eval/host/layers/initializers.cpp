#include "eval/host/layers/initializers.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <torch/headeronly/version.h>

#include <cmath>

#include "eval/host/arguments.h"

namespace tilepilot::eval {

using at::Tensor;
using c10::IValue;

double calculate_gain(const std::string& nonlinearity, double parameter) {
  if (nonlinearity == "linear" || nonlinearity == "sigmoid" || nonlinearity.substr(0, 4) == "conv") return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + parameter * parameter));
  TORCH_CHECK(nonlinearity == "selu", "Unsupported nonlinearity ", nonlinearity);
  return 3.0 / 4;
}

std::pair<int64_t, int64_t> fans(const Tensor& weight) {
  TORCH_CHECK(weight.dim() >= 2, "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  int64_t field = 1;
  for (int64_t i = 2; i < weight.dim(); ++i) field *= weight.size(i);
  return {weight.size(1) * field, weight.size(0) * field};
}

namespace {

using A = const Arguments&;

double kaiming_std(const Tensor& tensor, double a, const std::string& mode, const std::string& nonlinearity) {
  TORCH_CHECK(mode == "fan_in" || mode == "fan_out", "Mode ", mode, " not supported, please use fan_in or fan_out");
  auto [fan_in, fan_out] = fans(tensor);
  return calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(mode == "fan_in" ? fan_in : fan_out));
}

void kaiming_uniform(const Tensor& tensor, double std, std::optional<at::Generator> generator) {
  double bound = std::sqrt(3.0) * std;
  tensor.uniform_(-bound, bound, std::move(generator));
}

double xavier_std(const Tensor& tensor, double gain) {
  auto [fan_in, fan_out] = fans(tensor);
  return gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}

double normal_cdf(double x) { return (1.0 + std::erf(x / std::sqrt(2.0))) / 2.0; }

struct Truncation {
  double mean, std, low, high;
  std::optional<at::Generator> generator;
};

// Draws from the whole normal distribution and again what fell outside: cheap while most falls inside.
Tensor truncate_by_redrawing(const Tensor& tensor, const Truncation& t) {
  at::Scalar low = at::scalar_tensor(t.low, tensor.scalar_type()).item();
  at::Scalar high = at::scalar_tensor(t.high, tensor.scalar_type()).item();
  Tensor result = tensor.normal_(t.mean, t.std, t.generator);
  while (true) {
    Tensor mask = (result < low) | (result > high);
    if (!mask.any().item<bool>()) return result;
    result = at::where(mask, at::empty_like(result).normal_(t.mean, t.std, t.generator), result);
  }
}

// Draws uniformly and accepts by the density: for truncations far in a tail.
Tensor truncate_by_rejection(const Tensor& tensor, const Truncation& t) {
  double mode = std::max(t.low, std::min(t.mean, t.high));
  double log_peak = -0.5 * std::pow((mode - t.mean) / t.std, 2);
  Tensor candidates = at::empty_like(tensor), accept = at::empty_like(tensor);
  auto log_density = [&] { candidates.sub_(t.mean).div_(t.std).pow_(2).mul_(-0.5).sub_(log_peak); };
  tensor.uniform_(t.low, t.high, t.generator);
  candidates.copy_(tensor);
  log_density();
  Tensor pending = accept.uniform_(0, 1, t.generator).log_().gt(candidates);
  if (!pending.any().item<bool>()) return tensor;
  Tensor result = tensor;
  while (true) {
    candidates.uniform_(t.low, t.high, t.generator);
    result = at::where(pending, candidates, result);
    log_density();
    pending = at::where(pending, accept.uniform_(0, 1, t.generator).log_().gt(candidates), pending);
    if (!pending.any().item<bool>()) return result;
  }
}

// Takes uniform numbers through the inverse of the cumulative distribution.
Tensor truncate_by_inversion(const Tensor& tensor, const Truncation& t) {
  const double from = normal_cdf((t.low - t.mean) / t.std), to = normal_cdf((t.high - t.mean) / t.std);
  tensor.uniform_(2 * from - 1, 2 * to - 1, t.generator).erfinv_();
  return tensor.mul_(t.std * std::sqrt(2.0)).add_(t.mean).clamp_(t.low, t.high);
}

// PyTorch's way of sampling changed with 2.12; equal seeds are to give the weights of the PyTorch that is linked.
constexpr bool kSamplesByInversion = TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 12;

IValue trunc_normal(A a) {
  Truncation t{a.real("mean"), a.real("std"), a.real("a"), a.real("b"), a.generator("generator")};
  Tensor tensor = a.tensor("tensor");
  double share = normal_cdf((t.high - t.mean) / t.std) - normal_cdf((t.low - t.mean) / t.std);
  const Tensor drawn = [&] {
    // How many draws it takes depends on the numbers: who puts others in the place of a weight is not to see them on
    // the way, but when they are written.
    at::DisableRecordFunctionGuard unobserved;
    if (kSamplesByInversion) return truncate_by_inversion(tensor, t);
    return share > 0.3 ? truncate_by_redrawing(tensor, t) : truncate_by_rejection(tensor, t);
  }();
  return tensor.copy_(drawn);
}

IValue orthogonal(A a) {
  Tensor tensor = a.tensor("tensor");
  TORCH_CHECK(tensor.dim() >= 2, "Only tensors with 2 or more dimensions are supported");
  if (tensor.numel() == 0) return tensor;
  int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  Tensor flat = at::empty({rows, columns}, tensor.options()).normal_(0, 1, a.generator("generator"));
  if (rows < columns) flat.t_();
  auto [q, r] = at::linalg_qr(flat);
  q.mul_(at::diag(r, 0).sign());
  if (rows < columns) q.t_();
  tensor.view_as(q).copy_(q);
  return tensor.mul_(a.real("gain"));
}

IValue dirac(A a) {
  Tensor tensor = a.tensor("tensor");
  int64_t groups = a.integer("groups"), rank = tensor.dim();
  TORCH_CHECK(rank >= 3 && rank <= 5, "Only tensors with 3, 4, or 5 dimensions are supported");
  TORCH_CHECK(tensor.size(0) % groups == 0, "dim 0 must be divisible by groups");
  int64_t channels = tensor.size(0) / groups;
  tensor.zero_();
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t d = 0; d < std::min(channels, tensor.size(1)); ++d) {
      Tensor cell = tensor.select(0, g * channels + d).select(0, d);
      while (cell.dim() > 0) cell = cell.select(0, cell.size(0) / 2);
      cell.fill_(1);
    }
  }
  return tensor;
}

IValue eye(A a) {
  Tensor tensor = a.tensor("tensor");
  TORCH_CHECK(tensor.dim() == 2, "Only tensors with 2 dimensions are supported");
  return at::eye_out(tensor, tensor.size(0), tensor.size(1));
}

IValue sparse(A a) {
  Tensor tensor = a.tensor("tensor");
  TORCH_CHECK(tensor.dim() == 2, "Only tensors with 2 dimensions are supported");
  auto zeros = static_cast<int64_t>(std::ceil(a.real("sparsity") * static_cast<double>(tensor.size(0))));
  tensor.normal_(0, a.real("std"), a.generator("generator"));
  for (int64_t column = 0; column < tensor.size(1); ++column) {
    Tensor chosen = at::randperm(tensor.size(0)).slice(0, 0, zeros);
    tensor.select(1, column).index_fill_(0, chosen, 0);
  }
  return tensor;
}

const FunctionRow kInitializers[] = {
    {"uniform_(Tensor tensor, float a=0.0, float b=1.0, Generator? generator=None)",
     [](A a) -> IValue { return a.tensor("tensor").uniform_(a.real("a"), a.real("b"), a.generator("generator")); }},
    {"normal_(Tensor tensor, float mean=0.0, float std=1.0, Generator? generator=None)",
     [](A a) -> IValue { return a.tensor("tensor").normal_(a.real("mean"), a.real("std"), a.generator("generator")); }},
    {"trunc_normal_(Tensor tensor, float mean=0.0, float std=1.0, float a=-2.0, float b=2.0, Generator? "
     "generator=None)",
     trunc_normal},
    {"constant_(Tensor tensor, float val)", [](A a) -> IValue { return a.tensor("tensor").fill_(a.real("val")); }},
    {"ones_(Tensor tensor)", [](A a) -> IValue { return a.tensor("tensor").fill_(1.0); }},
    {"zeros_(Tensor tensor)", [](A a) -> IValue { return a.tensor("tensor").zero_(); }},
    {"eye_(Tensor tensor)", eye},
    {"dirac_(Tensor tensor, int groups=1)", dirac},
    {"xavier_uniform_(Tensor tensor, float gain=1.0, Generator? generator=None)",
     [](A a) -> IValue {
       double bound = std::sqrt(3.0) * xavier_std(a.tensor("tensor"), a.real("gain"));
       return a.tensor("tensor").uniform_(-bound, bound, a.generator("generator"));
     }},
    {"xavier_normal_(Tensor tensor, float gain=1.0, Generator? generator=None)",
     [](A a) -> IValue {
       double std = xavier_std(a.tensor("tensor"), a.real("gain"));
       return a.tensor("tensor").normal_(0.0, std, a.generator("generator"));
     }},
    {"kaiming_uniform_(Tensor tensor, float a=0.0, str mode='fan_in', str nonlinearity='leaky_relu', Generator? "
     "generator=None)",
     [](A a) -> IValue {
       Tensor tensor = a.tensor("tensor");
       if (tensor.numel() == 0) return tensor;
       kaiming_uniform(tensor, kaiming_std(tensor, a.real("a"), a.text("mode"), a.text("nonlinearity")),
                       a.generator("generator"));
       return tensor;
     }},
    {"kaiming_normal_(Tensor tensor, float a=0.0, str mode='fan_in', str nonlinearity='leaky_relu', Generator? "
     "generator=None)",
     [](A a) -> IValue {
       Tensor tensor = a.tensor("tensor");
       if (tensor.numel() == 0) return tensor;
       return tensor.normal_(0, kaiming_std(tensor, a.real("a"), a.text("mode"), a.text("nonlinearity")),
                             a.generator("generator"));
     }},
    {"orthogonal_(Tensor tensor, float gain=1.0, Generator? generator=None)", orthogonal},
    {"sparse_(Tensor tensor, float sparsity, float std=0.01, Generator? generator=None)", sparse},
    {"calculate_gain(str nonlinearity, float? param=None)",
     [](A a) -> IValue { return calculate_gain(a.text("nonlinearity"), a.maybe_real("param").value_or(0.01)); }},
    {"_calculate_fan_in_and_fan_out(Tensor tensor)",
     [](A a) -> IValue {
       auto [fan_in, fan_out] = fans(a.tensor("tensor"));
       return c10::ivalue::Tuple::create(fan_in, fan_out);
     }},
    {"_calculate_correct_fan(Tensor tensor, str mode)",
     [](A a) -> IValue {
       auto [fan_in, fan_out] = fans(a.tensor("tensor"));
       return a.text("mode") == "fan_in" ? fan_in : fan_out;
     }},
};

}  // namespace

void init_kaiming_default(const Tensor& weight) {
  if (weight.numel() > 0) kaiming_uniform(weight, kaiming_std(weight, std::sqrt(5.0), "fan_in", "leaky_relu"), {});
}

void init_xavier_uniform(const Tensor& weight, double gain) {
  double bound = std::sqrt(3.0) * xavier_std(weight, gain);
  weight.uniform_(-bound, bound);
}

FunctionTable initializer_table() { return kInitializers; }

}  // namespace tilepilot::eval
