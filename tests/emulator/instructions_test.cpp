// Each instruction of a warp against its definition: operands dealt out as the table of atoms says.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "compiler/layout/atoms.h"
#include "tests/emulator/kernels.h"

namespace tilepilot::emulator::testing {
namespace {

using layout::Fragment;
using ::testing::IsEmpty;

// Elements of generated code's types, for whole numbers that every one of them holds.
struct Element {
  const char* type;
  int64_t bytes;
  int digits;    // of the significand of a small float; 0: an integer; -1: float, double
  int exponent;  // the bias
};
constexpr Element kElements[] = {
    {"float16", 2, 10, 15}, {"bfloat16", 2, 7, 127}, {"float8_e4m3", 1, 3, 7}, {"float8_e5m2", 1, 2, 15},
    {"int8_t", 1, 0, 0},    {"uint8_t", 1, 0, 0},    {"int32_t", 4, 0, 0},     {"float", 4, -1, 0},
    {"double", 8, -1, 0},   {"tfloat32", 4, -1, 0},
};
const Element& element(const std::string& type) {
  return *std::find_if(std::begin(kElements), std::end(kElements), [&](const Element& e) { return type == e.type; });
}

void put(std::vector<uint8_t>& bytes, size_t index, const Element& type, int value) {
  uint8_t* place = bytes.data() + index * size_t(type.bytes);
  int64_t bits = value;
  if (type.digits > 0) {
    int power = 0;
    const int magnitude = std::abs(value);
    while (magnitude >> (power + 1) != 0) ++power;
    const int sign = value < 0 ? 1 << (type.bytes * 8 - 1) : 0;
    bits = value == 0 ? 0 : sign + ((power + type.exponent - 1) << type.digits) + (magnitude << type.digits >> power);
  } else if (type.digits < 0 && type.bytes == 4) {
    const auto real = float(value);
    std::memcpy(&bits, &real, 4);
  } else if (type.digits < 0) {
    const double real = value;
    std::memcpy(&bits, &real, 8);
  }
  std::memcpy(place, &bits, size_t(type.bytes));
}

std::vector<uint8_t> dealt_out(const Fragment& fragment, const std::vector<int>& tile, const Element& type) {
  const int64_t count = fragment.register_count();
  std::vector<uint8_t> bytes(size_t(fragment.thread_count() * count * type.bytes));
  for (int64_t thread = 0; thread < fragment.thread_count(); ++thread)
    for (int64_t reg = 0; reg < count; ++reg)
      put(bytes, size_t(thread * count + reg), type, tile[size_t(*fragment.element({thread, reg}))]);
  return bytes;
}

std::vector<int> small_numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int> numbers;
  for (int64_t k = 0; k < count; ++k) numbers.push_back(int(random() % 4));
  return numbers;
}

struct Product {
  const char *function, *instruction, *operands, *sum, *a, *b;
};
constexpr Product kProducts[] = {
    {"mma_m16n8k8", "mma.sync.m16n8k8", "f16", "float", "float16", "float16"},
    {"mma_m16n8k8", "mma.sync.m16n8k8", "bf16", "float", "bfloat16", "bfloat16"},
    {"mma_m16n8k16", "mma.sync.m16n8k16", "f16 bf16", "float", "float16", "float16"},
    {"mma_m16n8k16", "mma.sync.m16n8k16", "f16 bf16", "float", "bfloat16", "bfloat16"},
    {"mma_m16n8k8", "mma.sync.m16n8k8", "f16", "float16", "float16", "float16"},
    {"mma_m16n8k16", "mma.sync.m16n8k16", "f16 bf16", "float16", "float16", "float16"},
    {"mma_m16n8k4", "mma.sync.m16n8k4", "tf32", "float", "tfloat32", "tfloat32"},
    {"mma_m16n8k8", "mma.sync.m16n8k8", "tf32", "float", "float", "float"},
    {"mma_m16n8k16", "mma.sync.m16n8k16", "s8 u8", "int32_t", "int8_t", "int8_t"},
    {"mma_m16n8k32", "mma.sync.m16n8k32", "s8 u8", "int32_t", "uint8_t", "int8_t"},
    {"mma_m16n8k32", "mma.sync.m16n8k32", "e4m3 e5m2", "float", "float8_e4m3", "float8_e5m2"},
    {"mma_m16n8k32", "mma.sync.m16n8k32", "e4m3 e5m2", "float", "float8_e5m2", "float8_e4m3"},
    {"mma_m8n8k4", "mma.sync.m8n8k4", "f64", "double", "double", "double"},
    {"mma_m16n8k4", "mma.sync.m16n8k4", "f64", "double", "double", "double"},
    {"mma_m16n8k8", "mma.sync.m16n8k8", "f64", "double", "double", "double"},
    {"mma_m16n8k16", "mma.sync.m16n8k16", "f64", "double", "double", "double"},
};

TEST(Instruction, ProductsEqualPlainLoops) {
  for (const Product& product : kProducts) {
    SCOPED_TRACE(fmt::format("{} of {} and {} to {}", product.function, product.a, product.b, product.sum));
    const auto atoms = layout::atoms();
    const auto atom = std::find_if(atoms.begin(), atoms.end(), [&](const layout::Atom& row) {
      return row.instruction == product.instruction && row.operands == product.operands;
    });
    ASSERT_NE(atom, atoms.end());
    const std::vector<int> a = small_numbers(atom->m * atom->k, 1), b = small_numbers(atom->k * atom->n, 2),
                           c = small_numbers(atom->m * atom->n, 3);
    std::vector<int> sum = c;
    for (int64_t i = 0; i < atom->m; ++i)
      for (int64_t j = 0; j < atom->n; ++j)
        for (int64_t k = 0; k < atom->k; ++k)
          sum[size_t(i * atom->n + j)] += a[size_t(i * atom->k + k)] * b[size_t(k * atom->n + j)];
    const Fragment a_held = a_fragment(*atom), b_held = b_fragment(*atom), c_held = c_fragment(*atom);
    const KernelText kernel{fmt::format(
        "extern \"C\" __global__ void main_0(global_array<{0}> A, global_array<{1}> B, global_array<{2}> C) {{\n"
        "  registers<{0}, {3}> a;\n  registers<{1}, {4}> b;\n  registers<{2}, {5}> c;\n"
        "  for (int i = 0; i < {3}; ++i) {{\n    a[i] = A[threadIdx.x * {3} + i];\n  }}\n"
        "  for (int i = 0; i < {4}; ++i) {{\n    b[i] = B[threadIdx.x * {4} + i];\n  }}\n"
        "  for (int i = 0; i < {5}; ++i) {{\n    c[i] = C[threadIdx.x * {5} + i];\n  }}\n"
        "  {6}(&c[0], &a[0], &b[0]);\n"
        "  for (int i = 0; i < {5}; ++i) {{\n    C[threadIdx.x * {5} + i] = c[i];\n  }}\n}}\n",
        product.a, product.b, product.sum, a_held.register_count(), b_held.register_count(), c_held.register_count(),
        product.function)};
    std::vector<uint8_t> given_a = dealt_out(a_held, a, element(product.a)),
                         given_b = dealt_out(b_held, b, element(product.b)),
                         given_c = dealt_out(c_held, c, element(product.sum));
    const Report report = run_kernel(kernel, {}, Buffers().add("A", given_a).add("B", given_b).add("C", given_c));
    EXPECT_THAT(told(report), IsEmpty());
    EXPECT_EQ(given_c, dealt_out(c_held, sum, element(product.sum)));
  }
}

TEST(Instruction, MatricesAreLoadedAndStored) {
  for (const int64_t matrices : {1, 2, 4})
    for (const bool transposed : {false, true}) {
      const KernelText kernel{fmt::format(R"(
extern "C" __global__ void main_0(global_array<uint16_t> A, global_array<uint16_t> held_to, global_array<uint16_t> B) {{
  shared_array<float16> tile = shared_tile<float16>(0, 256);
  shared_array<float16> other = shared_tile<float16>(512, 256);
  copy_vector<16>(tile + threadIdx.x * 8, A + threadIdx.x * 8);
  zero_vector<16>(other + threadIdx.x * 8);
  sync_threads();
  registers<float16, {0} * 2> held;
  ldmatrix{1}<{0}>(&held[0], tile + threadIdx.x * 8);
  copy_vector<{0} * 4>(held_to + threadIdx.x * {0} * 2, &held[0]);
  stmatrix{1}<{0}>(other + threadIdx.x * 8, &held[0]);
  sync_threads();
  copy_vector<16>(B + threadIdx.x * 8, other + threadIdx.x * 8);
}}
)",
                                          matrices, transposed ? "_transposed" : "")};
      std::vector<uint16_t> a(256), held(size_t(64 * matrices)), b(256), expected(256);
      for (size_t i = 0; i < a.size(); ++i) a[i] = uint16_t(i * 3 + 1);
      std::copy(a.begin(), a.begin() + 64 * matrices, expected.begin());
      const Report report =
          run_kernel(kernel, {.shared_bytes = 1024}, Buffers().add("A", a).add("held", held).add("B", b));
      EXPECT_THAT(told(report), IsEmpty());
      EXPECT_EQ(b, expected);
      const Fragment owners =
          layout::ldmatrix_fragment(matrices, transposed ? layout::Transposed::yes : layout::Transposed::no);
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t reg = 0; reg < matrices * 2; ++reg)
          ASSERT_EQ(held[size_t(lane * matrices * 2 + reg)], a[size_t(*owners.element({lane, reg}))]);
    }
}

TEST(Instruction, ShufflesGiveOtherLanesValues) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<int64_t> A, int64_t lane, int64_t width) {
  A[threadIdx.x * 4] = shuffle(int64_t(threadIdx.x) << 40, int(lane), int(width));
  A[threadIdx.x * 4 + 1] = shuffle_xor(int64_t(threadIdx.x) << 40, int(lane), int(width));
  A[threadIdx.x * 4 + 2] = shuffle_up(int64_t(threadIdx.x) << 40, int(lane), int(width));
  A[threadIdx.x * 4 + 3] = shuffle_down(int64_t(threadIdx.x) << 40, int(lane), int(width));
}
)"};
  for (const int64_t threads : {32, 20})
    for (const int64_t width : {1, 4, 32})
      for (const int64_t lane : {0, 1, 3, 17, 31}) {
        std::vector<int64_t> a(128);
        const Report report = run_kernel(kernel, {.threads = threads, .scalars = {lane, width}}, Buffers().add("A", a));
        EXPECT_THAT(told(report), IsEmpty());
        for (int64_t own = 0; own < threads; ++own) {
          const int64_t first = own / width * width, end = first + width;
          const auto other = [&](int64_t number, bool inside) {
            return (inside && number < threads ? number : own) << 40;
          };
          EXPECT_EQ(a[size_t(own * 4)], other(first + lane % width, true));
          EXPECT_EQ(a[size_t(own * 4 + 1)], other(own ^ lane, (own ^ lane) < end));
          EXPECT_EQ(a[size_t(own * 4 + 2)], other(own - lane, own - lane >= first));
          EXPECT_EQ(a[size_t(own * 4 + 3)], other(own + lane, own + lane < end));
        }
      }
}

TEST(Instruction, VotesCountTheWarp) {
  const KernelText kernel{R"(
extern "C" __global__ void main_0(global_array<uint32_t> A, int64_t mask) {
  const bool mine = (mask >> threadIdx.x & 1) != 0;
  A[threadIdx.x * 3] = vote_any(mine);
  A[threadIdx.x * 3 + 1] = vote_all(mine);
  A[threadIdx.x * 3 + 2] = ballot(mine);
}
)"};
  for (const int64_t mask : {int64_t{0}, int64_t{5}, int64_t{0xffffffff}}) {
    std::vector<uint32_t> a(96);
    EXPECT_THAT(told(run_kernel(kernel, {.scalars = {mask}}, Buffers().add("A", a))), IsEmpty());
    EXPECT_EQ(a[93], uint32_t(mask != 0));
    EXPECT_EQ(a[94], uint32_t(mask == 0xffffffff));
    EXPECT_EQ(a[95], uint32_t(mask));
  }
}

// 64 threads at once, in two warps: what they leave does not depend on who was first.
TEST(Instruction, AtomicUpdatesLoseNothing) {
  for (const char* type : {"float16", "bfloat16", "int8_t", "uint8_t", "int32_t", "float", "double"})
    for (const bool shared : {false, true}) {
      SCOPED_TRACE(fmt::format("{} in {} memory", type, shared ? "shared" : "global"));
      const Element& kind = element(type);
      const bool small = kind.digits > 0;
      const KernelText kernel{fmt::format(
          R"(
extern "C" __global__ void __launch_bounds__(64) main_0(global_array<{0}> A, global_array<{0}> values) {{
  shared_array<{0}> tile = shared_tile<{0}>(0, 8);
  if (threadIdx.x < 5) {{
    tile[threadIdx.x] = A[threadIdx.x];
  }}
  sync_threads();
  const auto x = {1}(values[threadIdx.x]);
  atomic_update<add_update>({2} + 0, x);
  atomic_update<min_update>({2} + 1, x);
  atomic_update<max_update>({2} + 2, x);
  if (threadIdx.x == 5) {{
    atomic_update<put_update>({2} + 3, x);
  }}
  {3}
  sync_threads();
  if ({4} && threadIdx.x < 5) {{
    A[threadIdx.x] = tile[threadIdx.x];
  }}
}}
)",
          type, small ? "to_float" : type, shared ? "tile" : "A",
          kind.digits == 0 ? shared ? "atomic_update<or_update>(tile + 4, x);" : "atomic_update<or_update>(A + 4, x);"
                           : "",
          shared)};
      std::vector<uint8_t> elements(size_t(5 * kind.bytes)), values(size_t(64 * kind.bytes)), expected = elements;
      const int before[] = {2, 9, 1, 0, 4}, after[] = {36, 0, 3, 1, kind.digits == 0 ? 7 : 4};
      for (size_t i = 0; i < 5; ++i) put(elements, i, kind, before[i]), put(expected, i, kind, after[i]);
      for (size_t i = 0; i < 64; ++i) put(values, i, kind, i == 7 ? 3 : int(i % 2));
      const Report report =
          run_kernel(kernel, {.threads = 64, .shared_bytes = 64}, Buffers().add("A", elements).add("values", values));
      EXPECT_THAT(told(report), IsEmpty());
      EXPECT_EQ(elements, expected);
      EXPECT_EQ(report.counters.atomics, 2 * 3 + 1 + 2 * int(kind.digits == 0));
    }
}

}  // namespace
}  // namespace tilepilot::emulator::testing
