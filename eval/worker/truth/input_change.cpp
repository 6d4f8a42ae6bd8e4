#include "eval/worker/truth/input_change.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <bit>

#include "eval/torch/span.h"

namespace tilepilot::eval {
namespace {

// Prime, so that no axis of a tensor has this period.
constexpr int64_t kPeriod = 65521;

constexpr uint64_t kNextState = 0x9E3779B97F4A7C15;

// What SplitMix64 gives for a state, which is the one before and `kNextState`.
uint64_t random_bits(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

// One of the 2^21 floats in (7/8, 1], each as likely; of either sign where `sign_bit` is set.
float factor_of(uint32_t bits, uint32_t sign_bit) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(0x1.cp-1F) + 1 + (bits >> 11);
  return std::bit_cast<float>(magnitude | (bits << 31 & sign_bit));
}

// Two of each random number.
at::Tensor factors(uint64_t key, int64_t count, bool signs) {
  at::Tensor result = at::empty({count}, at::kFloat);
  auto* data = result.mutable_data_ptr<float>();
  const uint32_t sign_bit = signs ? uint32_t{1} << 31 : 0;
  for (int64_t i = 0; i < count; i += 2) {
    const uint64_t bits = random_bits(key += kNextState);
    data[i] = factor_of(static_cast<uint32_t>(bits >> 32), sign_bit);
    if (i + 1 < count) data[i + 1] = factor_of(static_cast<uint32_t>(bits), sign_bit);
  }
  return result;
}

void multiply(const at::Tensor& elements, uint64_t key, bool signs) {
  const int64_t count = elements.numel(), period = std::min(count, kPeriod);
  if (count == 0) return;
  const at::Tensor by = factors(key, period, signs).to(elements.device(), elements.scalar_type());
  const int64_t whole = count / period;
  elements.narrow(0, 0, whole * period).view({whole, period}).mul_(by);
  if (const int64_t rest = count % period; rest > 0)
    elements.narrow(0, whole * period, rest).mul_(by.narrow(0, 0, rest));
}

// No multiple of what was there before: its powers, say, cannot be had from those of another one.
void multiply_rows(const at::Tensor& tensor, uint64_t key) {
  const int64_t rows = tensor.size(0);
  const at::Tensor by = factors(key, rows, false).to(tensor.device(), tensor.scalar_type());
  const bool symmetric = tensor.dim() == 2 && tensor.size(1) == rows && tensor.equal(tensor.t());
  std::vector<int64_t> shape(static_cast<size_t>(tensor.dim()), 1);
  shape[0] = rows;
  const at::Tensor column = by.view(shape);
  // Multiplied together first, so that it stays symmetric to the last bit.
  tensor.mul_(symmetric ? column.mul(by) : column);
}

}  // namespace

void change_elements(const at::Tensor& tensor, const InputChange& change, ChangeRule rule) {
  at::NoGradGuard no_grad;
  if (change.key == 0 || rule == ChangeRule::none || tensor.numel() == 0) return;
  const at::Tensor elements = span_of(tensor);
  const int64_t count = elements.numel();
  const auto place = [&](double share) {
    return std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(count)), 0, count);
  };
  const int64_t from = place(change.from), to = std::max(from, place(change.to));
  const at::Tensor part = elements.narrow(0, from, to - from);
  const bool whole = from == 0 && to == count;
  if (rule == ChangeRule::rows) {
    if (whole) multiply_rows(tensor, change.key);
    return;
  }
  if (rule == ChangeRule::one_factor) {
    if (!whole) return;
    part.mul_(factors(change.key, 1, false).to(elements.device(), elements.scalar_type()));
    return;
  }
  const bool moves = rule == ChangeRule::alike || rule == ChangeRule::symmetric;
  constexpr int64_t kLarge = int64_t{1} << 27;  // a copy takes too much memory
  // What lies between elements is none of them.
  if (moves && whole && count == tensor.numel() && count <= kLarge) {
    const uint64_t bits = random_bits(change.key + kNextState);
    elements.copy_(elements.roll(static_cast<int64_t>(bits % static_cast<uint64_t>(count))));
  }
  multiply(part, change.key, rule == ChangeRule::symmetric);
}

}  // namespace tilepilot::eval
