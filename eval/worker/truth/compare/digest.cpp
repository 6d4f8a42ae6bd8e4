#include "eval/worker/truth/compare/digest.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "eval/torch/element_type.h"

namespace tilepilot::eval {
namespace {

// The sum of what each word of 8 bytes and its place become: any order of summing gives the same, on any device.
constexpr int64_t kPlace = static_cast<int64_t>(0x9E3779B97F4A7C15), kMix = static_cast<int64_t>(0xBF58476D1CE4E5B9);
constexpr int kFirstShift = 32, kSecondShift = 29;
constexpr int64_t kWord = 8;

// Wraps around, as LibTorch's integers do.
int64_t multiplied(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t added(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

int64_t mixed(int64_t word, int64_t place) {
  word = added(word, multiplied(place, kPlace));
  word = multiplied(word ^ (word >> kFirstShift), kMix);
  return word ^ (word >> kSecondShift);
}

int64_t hash_words(const char* data, int64_t words) {
  int64_t total = 0;
  for (int64_t i = 0; i < words; ++i) {
    int64_t word = 0;
    std::memcpy(&word, data + i * kWord, kWord);
    total = added(total, mixed(word, i));
  }
  return total;
}

// On the device itself: a copy to the host would take longer than most calls. The same numbers as hash_words.
int64_t hash_words(const at::Tensor& bytes) {
  constexpr int64_t kAtOnce = int64_t{1} << 24;
  const at::Tensor words = bytes.view(at::kLong);
  const at::Tensor places = at::arange(std::min(kAtOnce, words.numel()), words.options());
  int64_t total = 0;
  for (int64_t begin = 0; begin < words.numel(); begin += kAtOnce) {
    const int64_t count = std::min(kAtOnce, words.numel() - begin);
    at::Tensor part = places.narrow(0, 0, count).add(begin).mul_(kPlace).add_(words.narrow(0, begin, count));
    part.bitwise_xor_(part.bitwise_right_shift(kFirstShift)).mul_(kMix);
    part.bitwise_xor_(part.bitwise_right_shift(kSecondShift));
    total = added(total, part.sum().item<int64_t>());
  }
  return total;
}

// The bytes that fill no word, as a number.
int64_t rest_of(const char* data, int64_t size) {
  int64_t word = 0;
  std::memcpy(&word, data, static_cast<size_t>(size));
  return word;
}

int64_t hash_on_host(const at::Tensor& elements) {
  auto* data = static_cast<const char*>(elements.const_data_ptr());
  const auto size = static_cast<int64_t>(elements.nbytes()), words = size / kWord;
  return added(hash_words(data, words), mixed(rest_of(data + words * kWord, size % kWord), words));
}

int64_t hash_on_device(const at::Tensor& elements) {
  // Words begin where memory that LibTorch gives begins.
  const at::Tensor aligned = elements.storage_offset() == 0 ? elements : elements.clone();
  const at::Tensor bytes = aligned.view({-1}).view(at::kByte);
  const int64_t size = bytes.numel(), words = size / kWord;
  const at::Tensor rest = bytes.narrow(0, words * kWord, size % kWord).cpu();
  const int64_t last = mixed(rest_of(static_cast<const char*>(rest.const_data_ptr()), size % kWord), words);
  return words == 0 ? last : added(hash_words(bytes.narrow(0, 0, words * kWord)), last);
}

}  // namespace

std::string digest_of(const at::Tensor& tensor, DigestPlace place) {
  at::NoGradGuard no_grad;
  at::DisableRecordFunctionGuard unobserved;
  const at::Tensor elements = tensor.contiguous();
  int64_t hash = 0;
  if (elements.numel() > 0)
    hash = elements.is_cpu() && place == DigestPlace::nearest ? hash_on_host(elements) : hash_on_device(elements);
  return fmt::format("{}[{}]:{:016x}", element_type_name(tensor.scalar_type()), fmt::join(tensor.sizes().vec(), ","),
                     static_cast<uint64_t>(hash));
}

}  // namespace tilepilot::eval
