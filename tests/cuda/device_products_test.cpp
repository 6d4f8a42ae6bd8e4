// The prelude of kernels on a GPU or in the emulator: tensor-core products against plain loops, with operands dealt out
// as the table of atoms says; hardware barriers, bulk copies and what else sm_90a has.
#include <random>

#include "compiler/layout/atoms.h"
#include "tests/cuda/gpu_fixture.h"

namespace tilepilot::testing {
namespace {

struct Product {
  const char *kernel, *instruction, *operands;  // as the table of atoms names them
  ir::DType a, b, sum;
  int capability = 80;
};
constexpr const char *kHalves = "f16 bf16", *kBytes = "s8 u8", *kByteFloats = "e4m3 e5m2";
const Product kProducts[] = {
    {"f16_k8", "mma.sync.m16n8k8", "f16", ir::kFloat16, ir::kFloat16, ir::kFloat32},
    {"bf16_k8", "mma.sync.m16n8k8", "bf16", ir::kBFloat16, ir::kBFloat16, ir::kFloat32},
    {"f16_k16", "mma.sync.m16n8k16", kHalves, ir::kFloat16, ir::kFloat16, ir::kFloat32},
    {"bf16_k16", "mma.sync.m16n8k16", kHalves, ir::kBFloat16, ir::kBFloat16, ir::kFloat32},
    {"f16_sum_k8", "mma.sync.m16n8k8", "f16", ir::kFloat16, ir::kFloat16, ir::kFloat16},
    {"f16_sum_k16", "mma.sync.m16n8k16", kHalves, ir::kFloat16, ir::kFloat16, ir::kFloat16},
    {"tf32_k4", "mma.sync.m16n8k4", "tf32", ir::kTensorFloat32, ir::kTensorFloat32, ir::kFloat32},
    {"tf32_k8", "mma.sync.m16n8k8", "tf32", ir::kTensorFloat32, ir::kTensorFloat32, ir::kFloat32},
    {"f32_k4", "mma.sync.m16n8k4", "tf32", ir::kFloat32, ir::kFloat32, ir::kFloat32},
    {"f32_k8", "mma.sync.m16n8k8", "tf32", ir::kFloat32, ir::kFloat32, ir::kFloat32},
    {"s8_s8_k16", "mma.sync.m16n8k16", kBytes, ir::kInt8, ir::kInt8, ir::kInt32},
    {"u8_u8_k16", "mma.sync.m16n8k16", kBytes, ir::kUInt8, ir::kUInt8, ir::kInt32},
    {"s8_u8_k16", "mma.sync.m16n8k16", kBytes, ir::kInt8, ir::kUInt8, ir::kInt32},
    {"u8_s8_k16", "mma.sync.m16n8k16", kBytes, ir::kUInt8, ir::kInt8, ir::kInt32},
    {"s8_s8_k32", "mma.sync.m16n8k32", kBytes, ir::kInt8, ir::kInt8, ir::kInt32},
    {"u8_u8_k32", "mma.sync.m16n8k32", kBytes, ir::kUInt8, ir::kUInt8, ir::kInt32},
    {"s8_u8_k32", "mma.sync.m16n8k32", kBytes, ir::kInt8, ir::kUInt8, ir::kInt32},
    {"u8_s8_k32", "mma.sync.m16n8k32", kBytes, ir::kUInt8, ir::kInt8, ir::kInt32},
    {"e4m3_e4m3_k32", "mma.sync.m16n8k32", kByteFloats, ir::kFloat8E4M3, ir::kFloat8E4M3, ir::kFloat32, 89},
    {"e5m2_e5m2_k32", "mma.sync.m16n8k32", kByteFloats, ir::kFloat8E5M2, ir::kFloat8E5M2, ir::kFloat32, 89},
    {"e4m3_e5m2_k32", "mma.sync.m16n8k32", kByteFloats, ir::kFloat8E4M3, ir::kFloat8E5M2, ir::kFloat32, 89},
    {"e5m2_e4m3_k32", "mma.sync.m16n8k32", kByteFloats, ir::kFloat8E5M2, ir::kFloat8E4M3, ir::kFloat32, 89},
    {"f64_k4", "mma.sync.m8n8k4", "f64", ir::kFloat64, ir::kFloat64, ir::kFloat64},
    {"f64_m16_k4", "mma.sync.m16n8k4", "f64", ir::kFloat64, ir::kFloat64, ir::kFloat64, 90},
    {"f64_m16_k8", "mma.sync.m16n8k8", "f64", ir::kFloat64, ir::kFloat64, ir::kFloat64, 90},
    {"f64_m16_k16", "mma.sync.m16n8k16", "f64", ir::kFloat64, ir::kFloat64, ir::kFloat64, 90},
};

// Whole numbers, small enough for every sum to be exact in every type.
std::vector<double> whole_numbers(int64_t count, ir::DType type, uint32_t seed) {
  std::mt19937 random(seed);
  const bool is_signed = type.code != ir::TypeCode::unsigned_int;
  std::vector<double> numbers;
  for (int64_t k = 0; k < count; ++k) numbers.push_back(static_cast<double>(random() % 7) - (is_signed ? 3 : 0));
  return numbers;
}

// The tile's elements thread by thread.
Elements dealt_out(const layout::Fragment& fragment, const std::vector<double>& tile, ir::DType type) {
  const int64_t count = fragment.register_count();
  Elements all(type, static_cast<size_t>(fragment.thread_count() * count));
  for (int64_t thread = 0; thread < fragment.thread_count(); ++thread)
    for (int64_t reg = 0; reg < count; ++reg)
      all.set(static_cast<size_t>(thread * count + reg), tile[static_cast<size_t>(*fragment.element({thread, reg}))]);
  return all;
}

class Products : public GpuTest, public ::testing::WithParamInterface<Product> {};

TEST_P(Products, EqualPlainLoops) {
  const Product& product = GetParam();
  if (!has(product.capability)) GTEST_SKIP() << "this device has no such product";
  const auto atoms = layout::atoms();
  const auto atom = std::find_if(atoms.begin(), atoms.end(), [&](const layout::Atom& row) {
    return row.instruction == product.instruction && row.operands == product.operands;
  });
  ASSERT_NE(atom, atoms.end());
  const std::vector<double> a = whole_numbers(atom->m * atom->k, product.a, 1),
                            b = whole_numbers(atom->k * atom->n, product.b, 2),
                            c = whole_numbers(atom->m * atom->n, product.sum, 3);
  Elements sums = dealt_out(c_fragment(*atom), c, product.sum);
  const Memory first = upload(dealt_out(a_fragment(*atom), a, product.a).bytes()),
               second = upload(dealt_out(b_fragment(*atom), b, product.b).bytes()), third = upload(sums.bytes());
  run("matrix", product.kernel, {.threads = {32, 1, 1}}, {{&first, &second, &third}});
  sums.bytes() = download<std::byte>(third);
  const layout::Fragment owners = c_fragment(*atom);
  for (int64_t thread = 0; thread < 32; ++thread)
    for (int64_t reg = 0; reg < owners.register_count(); ++reg) {
      const int64_t element = *owners.element({thread, reg}), row = element / atom->n, column = element % atom->n;
      double expected = c[static_cast<size_t>(element)];
      for (int64_t k = 0; k < atom->k; ++k)
        expected += a[static_cast<size_t>(row * atom->k + k)] * b[static_cast<size_t>(k * atom->n + column)];
      ASSERT_EQ(sums.get(static_cast<size_t>(thread * owners.register_count() + reg)), expected)
          << "row " << row << ", column " << column;
    }
}

INSTANTIATE_TEST_SUITE_P(Prelude, Products, ::testing::ValuesIn(kProducts),
                         [](const auto& info) { return std::string(info.param.kernel); });

class HopperTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped() && !has(90)) GTEST_SKIP() << "needs compute capability 9.0";
  }
};

TEST_F(GpuTest, CopiesArriveAtBarriers) {
  std::vector<int32_t> numbers;
  for (int32_t k = 0; k < 256; ++k) numbers.push_back(k * k);
  const Memory from = upload(numbers), to = zeros(1024);
  run("hopper", "copies_arrive", {.threads = {64, 1, 1}, .shared_bytes = 2048}, {{&from, &to}});
  const auto got = download<int32_t>(to);
  for (size_t k = 0; k < 256; ++k) EXPECT_EQ(got[k], numbers[k / 64 * 64 + 63 - k % 64]) << k;
}

TEST_F(HopperTest, BulkCopies) {
  std::vector<uint8_t> bytes;
  for (int k = 0; k < 4096; ++k) bytes.push_back(static_cast<uint8_t>(k * 31 >> 3));
  const Memory from = upload(bytes), to = zeros(4096);
  run("hopper", "bulk_copies", {.threads = {128, 1, 1}, .shared_bytes = 8192}, {{&from, &to}});
  const auto got = download<uint8_t>(to);
  for (size_t k = 0; k < 4096; ++k) ASSERT_EQ(got[k], bytes[k] ^ 0x55) << k;
}

TEST_F(HopperTest, BoxesAreCutAtTheEdges) {
  constexpr int64_t kRows = 20, kColumns = 36, kX = 28, kY = 15;
  std::vector<float> matrix;
  for (int64_t k = 0; k < kRows * kColumns; ++k) matrix.push_back(static_cast<float>(k + 1));
  const Memory from = upload(matrix), to = zeros(kRows * kColumns * 4), sum = upload(matrix), seen = zeros(512);
  const auto boxes_of = [&](size_t array) { return BoxesOfMatrix{array, {kColumns, kRows}, {16, 8}}; };
  run("hopper", "boxes", {.threads = {128, 1, 1}, .shared_bytes = 2048},
      {{&from, &to, &sum, &seen}, {kX, kY}, {boxes_of(0), boxes_of(1), boxes_of(2)}});
  const auto box = download<float>(seen), moved = download<float>(to), added = download<float>(sum);
  for (int64_t row = 0; row < 8; ++row)
    for (int64_t column = 0; column < 16; ++column) {
      const bool inside = kY + row < kRows && kX + column < kColumns;
      const float expected = inside ? matrix[static_cast<size_t>((kY + row) * kColumns + kX + column)] : 0.0f;
      ASSERT_EQ(box[static_cast<size_t>(row * 16 + column)], expected) << "row " << row << ", column " << column;
    }
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t column = 0; column < kColumns; ++column) {
      const bool inside = row >= kY && column >= kX && row < kY + 8 && column < kX + 16;
      const auto k = static_cast<size_t>(row * kColumns + column);
      ASSERT_EQ(moved[k], inside ? matrix[k] : 0.0f) << "row " << row << ", column " << column;
      ASSERT_EQ(added[k], inside ? 2 * matrix[k] : matrix[k]) << "row " << row << ", column " << column;
    }
}

TEST_F(HopperTest, AsynchronousProducts) {
  constexpr int64_t kM = 64, kN = 32, kK = 64;
  const std::vector<double> a = whole_numbers(kM * kK, ir::kFloat16, 1), b = whole_numbers(kN * kK, ir::kFloat16, 2);
  Elements a_half(ir::kFloat16, a.size()), b_half(ir::kFloat16, b.size());
  for (size_t k = 0; k < a.size(); ++k) a_half.set(k, a[k]);
  for (size_t k = 0; k < b.size(); ++k) b_half.set(k, b[k]);
  const Memory first = upload(a_half.bytes()), second = upload(b_half.bytes());
  for (const char* kernel : {"product_shared", "product_registers"}) {
    const Memory third = zeros(kM * kN * 4);
    run("hopper", kernel, {.threads = {128, 1, 1}, .shared_bytes = 16384}, {{&first, &second, &third}});
    const auto got = download<float>(third);
    for (int64_t row = 0; row < kM; ++row)
      for (int64_t column = 0; column < kN; ++column) {
        double expected = 0;
        for (int64_t k = 0; k < kK; ++k)
          expected += a[static_cast<size_t>(row * kK + k)] * b[static_cast<size_t>(column * kK + k)];
        ASSERT_EQ(got[static_cast<size_t>(row * kN + column)], expected)
            << kernel << ", row " << row << ", column " << column;
      }
  }
}

TEST_F(HopperTest, RegistersMoveBetweenWarpGroups) {
  const Memory to = zeros(384 * 4);
  run("hopper", "reallocated", {.threads = {384, 1, 1}}, {{&to}});
  const auto got = download<float>(to);
  for (size_t k = 0; k < 384; ++k) EXPECT_EQ(got[k], k < 128 ? 1.0f : 2.0f);
}

TEST_F(HopperTest, BlocksOfAClusterMeet) {
  const Memory to = zeros(64);
  run("hopper", "clusters", {.grid = {16, 1, 1}, .threads = {64, 1, 1}, .cluster = {2, 1, 1}, .shared_bytes = 1024},
      {{&to}});
  const auto got = download<int32_t>(to);
  for (int32_t block = 0; block < 16; ++block) EXPECT_EQ(got[static_cast<size_t>(block)], 10 + block % 2);
}

}  // namespace
}  // namespace tilepilot::testing
