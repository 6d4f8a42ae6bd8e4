#include "compiler/emulator/tensor_core.h"

#include <cmath>
#include <cstring>

#include "compiler/emulator/matrix_place.h"

namespace tilepilot::emulator {
namespace host_types {
#include "compiler/targets/cpu/prelude/types.h.in"
#undef TP_INLINE
}  // namespace host_types
namespace {

using emulated::mma_lane;
using emulated::operand;

struct Instruction {
  operand c, a, b;
  int k, m;
};

template <class T>
T stored(const void* values, int index) {
  T x;
  std::memcpy(&x, static_cast<const char*>(values) + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return x;
}

template <class T>
void put(void* values, int index, T x) {
  std::memcpy(static_cast<char*>(values) + static_cast<size_t>(index) * sizeof(T), &x, sizeof(T));
}

}  // namespace

int bytes_of(operand type) {
  switch (type) {
    case operand::f64:
      return 8;
    case operand::f32:
    case operand::s32:
      return 4;
    case operand::f16:
    case operand::bf16:
      return 2;
    default:
      return 1;
  }
}

// Every type's values are doubles.
double operand_value(operand type, const void* values, int index) {
  namespace h = host_types;
  switch (type) {
    case operand::f16:
      return static_cast<double>(h::to_float(stored<h::float16>(values, index)));
    case operand::bf16:
      return static_cast<double>(h::to_float(stored<h::bfloat16>(values, index)));
    case operand::f32:
      return static_cast<double>(h::to_float(stored<h::tfloat32>(values, index)));
    case operand::f64:
      return stored<double>(values, index);
    case operand::e4m3:
      return static_cast<double>(h::to_float(stored<h::float8_e4m3>(values, index)));
    case operand::e5m2:
      return static_cast<double>(h::to_float(stored<h::float8_e5m2>(values, index)));
    case operand::s8:
      return stored<int8_t>(values, index);
    case operand::u8:
      return stored<uint8_t>(values, index);
    case operand::s32:
      return stored<int32_t>(values, index);
  }
  return 0;
}

double sum_value(operand type, const void* values, int index) {
  return type == operand::f32 ? static_cast<double>(stored<float>(values, index)) : operand_value(type, values, index);
}

void put_sum(operand type, void* values, int index, double x) {
  switch (type) {
    case operand::f16:
      return put(values, index, host_types::to_float16(host_types::narrowed(x)));
    case operand::f32:
      return put(values, index, static_cast<float>(x));
    case operand::s32:
      return put(values, index, static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(x))));
    default:
      return put(values, index, x);
  }
}

void add_element(operand type, char* to, const char* from) {
  put_sum(type, to, 0, sum_value(type, to, 0) + sum_value(type, from, 0));
}

void multiply(uint32_t detail, std::span<void* const> lanes) {
  const Instruction op{static_cast<operand>(detail & 15u), static_cast<operand>(detail >> 4 & 15u),
                       static_cast<operand>(detail >> 8 & 15u), static_cast<int>(detail >> 12 & 255u),
                       static_cast<int>(detail >> 20)};
  double a[16][32], b[32][8], sum[16][8];
  // Lane 4 * g + t holds `run` neighbours of a register, then the register 8 rows below, then those to the right.
  const int run = std::max(1, 4 / bytes_of(op.a)), halves = op.m / 8;
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const mma_lane*>(lanes[static_cast<size_t>(lane)]);
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < op.m * op.k / 32; ++i) {
      const int r = i / run;
      a[g + 8 * (r % halves)][r / halves * 4 * run + t * run + i % run] = operand_value(op.a, own.a, i);
    }
    for (int i = 0; i < op.k * 8 / 32; ++i) b[i / run * 4 * run + t * run + i % run][g] = operand_value(op.b, own.b, i);
    for (int i = 0; i < op.m * 8 / 32; ++i) sum[g + 8 * (i / 2)][t * 2 + i % 2] = sum_value(op.c, own.c, i);
  }
  const bool fused = op.c == operand::f64;
  for (int row = 0; row < op.m; ++row) {
    for (int k = 0; k < op.k; ++k) {
      const double factor = a[row][k];
      if (fused)
        for (int column = 0; column < 8; ++column) sum[row][column] = std::fma(factor, b[k][column], sum[row][column]);
      else
        for (int column = 0; column < 8; ++column) sum[row][column] += factor * b[k][column];
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const mma_lane*>(lanes[static_cast<size_t>(lane)]);
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < op.m * 8 / 32; ++i) put_sum(op.c, own.c, i, sum[g + 8 * (i / 2)][t * 2 + i % 2]);
  }
}

}  // namespace tilepilot::emulator
