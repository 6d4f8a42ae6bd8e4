#include "eval/worker/truth/stage_match.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "eval/pattern.h"

namespace tilepilot::eval {
namespace {

constexpr double kNearFraction = 0.5;      // of the elements, at most, are wrong
constexpr double kNearCorrelation = 0.95;  // or they are, but go with those that are wanted
constexpr int64_t kSampled = 4096, kMostDescribed = int64_t{1} << 22;

// How far values of a type may be apart, against their size: coarser than roundings, finer than most mistakes.
double tolerance_of_stage(at::ScalarType type) {
  if (type == at::kBFloat16) return 4e-2;
  if (type == at::kHalf) return 1e-2;
  return c10::isFloatingType(type) && c10::elementSize(type) == 1 ? 0.2 : 1e-3;
}

bool is_comparable(const at::Tensor& value) {
  return value.defined() && value.layout() == at::kStrided && !value.is_complex() && !value.is_quantized() &&
         value.numel() > 0;
}

at::Tensor in_a_row(const at::Tensor& value) { return value.detach().reshape({-1}); }

bool is_one_number(const at::Tensor& elements) {
  return elements.numel() > 1 && elements.eq(elements[0]).all().item<bool>();
}

// Every so many elements.
at::Tensor sample_of(const at::Tensor& elements) {
  const int64_t step = std::max<int64_t>(1, elements.numel() / kSampled);
  return elements.slice(0, 0, c10::nullopt, step);
}

at::Tensor wide(const at::Tensor& elements, const at::Tensor& like) { return elements.to(like.device(), at::kDouble); }

double rms_of(const at::Tensor& sample) {
  const at::Tensor values = wide(sample, sample);
  return at::where(values.isfinite(), values, at::zeros({}, values.options())).square().mean().sqrt().item<double>();
}

// What an element may differ from the one that is wanted.
struct Closeness {
  double tolerance, rms;
  at::Tensor bounds(const at::Tensor& wanted) const {
    return at::where(wanted.isfinite(), wanted, at::zeros({}, wanted.options())).abs_().add_(rms).mul_(tolerance);
  }
};

Closeness closeness_of(const at::Tensor& actual, const at::Tensor& wanted) {
  return {std::max(tolerance_of_stage(actual.scalar_type()), tolerance_of_stage(wanted.scalar_type())),
          rms_of(sample_of(wanted))};
}

int64_t count_wrong(const at::Tensor& actual, const at::Tensor& wanted, const Closeness& closeness) {
  const at::Tensor one = wide(actual, wanted), other = wide(wanted, wanted);
  const at::Tensor close = one.sub(other).abs_().le(closeness.bounds(other));
  const at::Tensor same = one.eq(other).logical_or_(one.isnan().logical_and_(other.isnan()));
  return actual.numel() - close.logical_or_(same).sum().item<int64_t>();
}

// In pieces, so that not all is there in float64.
double fraction_wrong(const at::Tensor& actual, const at::Tensor& wanted, const Closeness& closeness) {
  constexpr int64_t kPiece = int64_t{1} << 21;
  int64_t wrong = 0;
  for (int64_t begin = 0; begin < actual.numel(); begin += kPiece)
    wrong += count_wrong(actual.slice(0, begin, begin + kPiece), wanted.slice(0, begin, begin + kPiece), closeness);
  return static_cast<double>(wrong) / static_cast<double>(actual.numel());
}

double correlation_of(const at::Tensor& one, const at::Tensor& other) {
  const at::Tensor a = one.sub(one.mean()), b = other.sub(other.mean());
  const double product = a.mul(b).sum().item<double>();
  const double sizes = std::sqrt(a.square().sum().item<double>() * b.square().sum().item<double>());
  return sizes > 0 && std::isfinite(product) ? product / sizes : 0;
}

std::vector<double> numbers_of(const at::Tensor& elements) {
  const at::Tensor flat = elements.cpu().to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

bool makes_output(const Graph& graph, int node) {
  bool found = false;
  for_each_value(graph.outputs, [&](int id) {
    const auto& outputs = graph.nodes[static_cast<size_t>(node)].outputs;
    found = found || std::find(outputs.begin(), outputs.end(), id) != outputs.end();
  });
  return found;
}

}  // namespace

StageMatch::StageMatch(const std::vector<WrittenByLaunch>& launches) : launches_(launches) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < launches_.size(); ++i)
    for (const at::Tensor& tensor : launches_[i].tensors) {
      if (!is_comparable(tensor)) continue;
      written_.push_back({i, in_a_row(tensor)});
      written_.back().is_constant = is_one_number(written_.back().elements);
    }
}

void StageMatch::add_value(int node, const at::Tensor& value) {
  const at::NoGradGuard no_grad;
  if (!is_comparable(value)) return;
  at::Tensor elements;
  for (Written& written : written_) {
    if (written.is_constant || written.is_matched || written.elements.numel() != value.numel()) continue;
    if (!elements.defined()) {
      elements = in_a_row(value);
      if (is_one_number(elements)) return;  // it tells nothing
    }
    compare(written, node, elements, value);
  }
}

// First a sample: most values are nothing alike.
void StageMatch::compare(Written& written, int node, const at::Tensor& elements, const at::Tensor& value) {
  const Closeness closeness = closeness_of(written.elements, elements);
  const at::Tensor one = sample_of(written.elements), other = sample_of(elements);
  const double correlation = correlation_of(wide(one, other), wide(other, other));
  const bool is_alike = correlation >= kNearCorrelation;
  if (fraction_wrong(one, other, closeness) > kNearFraction && !is_alike) return;
  const double fraction = fraction_wrong(written.elements, elements, closeness);
  if (fraction == 0) {
    written.is_matched = true;
    written.node = node;
    written.nearest = at::Tensor();
    return;
  }
  if (node == kGiven || (fraction > kNearFraction && !is_alike)) return;
  const bool is_nearer = !written.is_near || fraction < written.fraction_wrong ||
                         (fraction == written.fraction_wrong && correlation > written.correlation);
  if (!is_nearer) return;
  written.is_near = true;
  written.node = node;
  written.fraction_wrong = fraction;
  written.correlation = correlation;
  written.nearest = value.detach().clone();  // a later node may write into it
}

StageMatch::State StageMatch::state_of(size_t launch) const {
  bool any_unknown = false, any_other = false;
  for (const Written& written : written_) {
    if (written.launch != launch) continue;
    if (written.is_matched && written.node != kGiven) return State::right;
    any_unknown = any_unknown || !written.is_matched;
    any_other = any_other || (!written.is_matched && !written.is_constant);
  }
  return any_other ? State::other : any_unknown ? State::constant : State::copies;
}

const StageMatch::Written* StageMatch::nearest_of(size_t launch) const {
  const Written* nearest = nullptr;
  for (const Written& written : written_) {
    if (written.launch != launch || !written.is_near || written.is_matched) continue;
    if (!nearest || written.fraction_wrong < nearest->fraction_wrong) nearest = &written;
  }
  return nearest;
}

StageCheck StageMatch::check_of(size_t launch, const Written* written, const Graph& graph) const {
  StageCheck check;
  check.kernel = launches_[launch].kernel;
  check.line = launches_[launch].line;
  check.launch = static_cast<int>(launch) + 1;
  if (!written) return check;
  const GraphNode& node = graph.nodes[static_cast<size_t>(written->node)];
  check.right = written->is_matched;
  check.node = written->node + 1;
  check.op = node.op;
  check.node_line = node.line;
  if (check.right) return check;
  check.fraction_wrong = written->fraction_wrong;
  if (written->elements.numel() > kMostDescribed) return check;
  const Closeness closeness = closeness_of(written->elements, in_a_row(written->nearest));
  const at::Tensor wanted = wide(in_a_row(written->nearest), written->nearest);
  const auto actual = numbers_of(written->elements), expected = numbers_of(wanted),
             bounds = numbers_of(closeness.bounds(wanted));
  check.pattern = describe_wrong_values({actual, expected, bounds, written->nearest.sizes().vec()}).pattern;
  return check;
}

std::vector<StageCheck> StageMatch::checks(const Graph& graph) const {
  const at::NoGradGuard no_grad;
  std::vector<StageCheck> found;
  const size_t count = launches_.size();
  size_t next = 0;  // after the last that is right
  for (size_t i = 0; i < count; ++i)
    if (state_of(i) == State::right) next = i + 1;
  for (const Written& written : written_)
    if (next > 0 && found.empty() && written.launch == next - 1 && written.is_matched && written.node != kGiven)
      found.push_back(check_of(next - 1, &written, graph));
  if (next == count && count > 0) return makes_output(graph, found[0].node - 1) ? std::vector<StageCheck>() : found;
  const auto is_doubtful = [&](size_t i) {
    return state_of(i) == State::other || (state_of(i) == State::constant && i + 1 == count);
  };
  std::optional<size_t> first, near;
  for (size_t i = next; i < count; ++i) {
    if (!first && is_doubtful(i)) first = i;
    if (!near && nearest_of(i)) near = i;
  }
  // Where no launch is known for what it is, one alone says no more than the outputs do.
  if (found.empty() && (!near || count == 1)) return {};
  if (first && first != near) found.push_back(check_of(*first, nullptr, graph));
  if (near) found.push_back(check_of(*near, nearest_of(*near), graph));
  return found;
}

}  // namespace tilepilot::eval
