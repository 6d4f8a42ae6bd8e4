// Indices that come from tensors may be anything: no access leaves its tile, and a launch in which one would ends with
// the line that did it. The interpreter says which those are.
#include <cstring>
#include <random>

#include "tests/cpu/kernel_fixture.h"
#include "tests/golden_diagnostic.h"
#include "tests/rounds.h"

namespace tilepilot::testing {
namespace {

struct Access {
  const char* name;
  const char* body;  // with the tile s, the tensors x and y, and the numbers at[0] and at[1]
};

constexpr Access kAccesses[] = {
    {"load", "y[0] = s[at[0]]"},
    {"store", "s[at[0]] = 1.0"},
    {"sum", "s[at[0] + at[1]] = 1.0"},
    {"multiple", "s[at[0] * 4i64] = 1.0"},
    {"multiple_of_let", "let k: int64 = at[0]\n s[k * 4i64 - 3i64] = 1.0"},
    {"square", "let k: int64 = at[0]\n y[0] = s[(k * k) // 1152921504606846976i64]"},
    {"quotient", "let k: int64 = at[0]\n y[0] = s[k // 2i64]"},
    {"remainder", "let k: int64 = at[0]\n y[0] = s[k % 16i64]"},
    {"remainder_by", "let k: int64 = at[0]\n y[0] = s[k % 17i64]"},
    {"narrowed", "let k: int32 = int32(at[0])\n y[0] = s[k]"},
    {"bits", "let k: int64 = at[0]\n y[0] = s[k & 15i64]"},
    {"more_bits", "let k: int64 = at[0]\n y[0] = s[k & 31i64]"},
    {"guarded", "let k: int64 = at[0]\n if k >= 0i64 and k < 16i64 {\n s[k] = 1.0\n }"},
    {"guarded_below", "let k: int64 = at[0]\n if k < 16i64 {\n s[k] = 1.0\n }"},
    {"guard_that_wraps", "let k: int64 = at[0]\n if k >= 0i64 and k * 4i64 < 64i64 {\n s[k] = 1.0\n }"},
    {"guard_one_less", "let k: int64 = at[0]\n if k >= 0i64 and k + 1i64 < 17i64 {\n s[k] = 1.0\n }"},
    {"chosen", "let k: int64 = at[0]\n y[0] = select(k >= 0i64 and k < 16i64, s[k], 0.0)"},
    {"at_most", "let k: int64 = at[0]\n y[0] = s[max(min(k, 15i64), 0i64)]"},
    {"loop_end", "serial i in at[1] {\n if i < 40i64 {\n s[i] = 1.0\n }\n}"},
    {"loop_from", "let k: int64 = at[0]\n serial i in 4 {\n s[k + int64(i)] = 1.0\n }"},
    {"parallel_store", "parallel i in 8 {\n s[at[0] + int64(i)] = 1.0\n }"},
    {"parallel_load", "parallel i in 8 {\n y[i] = s[at[0] + int64(i)]\n }"},
    {"parallel_of_let", "let k: int64 = at[0]\n parallel i in 8 {\n y[i] = s[k + int64(i)] * 2.0\n }"},
    {"gathered", "parallel i in 8 {\n y[i] = s[at[i % 2]]\n }"},
    {"fill", "let k: int64 = at[0]\n fill s[k : +4] = 2.0"},
    {"copy_from", "let k: int64 = at[0]\n copy s[k : +4] -> y[0 : +4]"},
    {"copy_to", "let k: int64 = at[0]\n copy x[0 : +4] -> s[k : +4]"},
    {"copy_rows", "let k: int64 = at[0]\n copy x[0 : +4] -> m[k, 0 : +4]"},
    {"reduce_from", "let k: int64 = at[0]\n reduce sum m[k : +2, 0 : 4] -> r axis 1"},
    {"product", "let k: int64 = at[0]\n gemm c += m[k : +4, 0 : 4] @ d"},
};

constexpr int64_t kNumbers[] = {0,
                                1,
                                3,
                                12,
                                13,
                                15,
                                16,
                                17,
                                31,
                                32,
                                -1,
                                -2,
                                -16,
                                1 << 20,
                                -(1 << 20),
                                INT32_MAX,
                                INT32_MIN,
                                int64_t{1} << 32,
                                int64_t{1} << 60,
                                (int64_t{1} << 60) + 3,
                                int64_t{1} << 61,
                                int64_t{1} << 62,
                                (int64_t{1} << 62) + 1,
                                INT64_MAX,
                                INT64_MAX - 1,
                                INT64_MIN,
                                INT64_MIN + 1,
                                -(int64_t{1} << 62)};

std::string program_of(const Access& access) {
  return std::string("program wild(at: int64[2], x: float32[64], y: float32[64]) {\n") +
         "  kernel b in 1 threads 1 {\n"
         "    shared s: float32[16]\n    shared m: float32[8, 4]\n    shared d: float32[4, 4]\n"
         "    shared c: float32[4, 4]\n    shared r: float32[2]\n"
         "    fill s = 3.0\n    fill m = 1.0\n    fill d = 1.0\n    fill c = 0.0\n    fill r = 0.0\n    " +
         access.body +
         "\n    copy s -> y[16 : +16]\n    copy r -> y[32 : +2]\n    copy c[0, 0 : +4] -> y[40 : +4]\n  }\n}\n";
}

std::string name_of(const ::testing::TestParamInfo<Access>& row) { return row.param.name; }

class WildIndexTest : public ::testing::TestWithParam<Access> {
 protected:
  struct Memory {
    Array at{ir::kInt64, {2}}, x{ir::kFloat32, {64}}, y{ir::kFloat32, {64}};

    Memory(int64_t first, int64_t second) {
      const int64_t numbers[] = {first, second};
      std::memcpy(at.bytes.data(), numbers, sizeof numbers);
      randomize(x, 1);
    }
    std::vector<runtime::Argument> arguments() { return {at.view(), x.view(), y.view()}; }
  };

  void SetUp() override {
    program_ = parse(program_of(GetParam()));
    kernel_ = compile(program_);
    ASSERT_NE(kernel_, nullptr);
  }

  void compare(int64_t first, int64_t second) {
    Memory expected(first, second), actual(first, second);
    const auto fault = interpret::run(program_, to_interpret(expected.arguments()),
                                      {&interpret::library_functions(), 0, steps(1'000'000)});
    if (fault && fault->kind == interpret::FaultKind::budget_exceeded) return;
    static const runtime::ParallelFor pool = runtime::thread_pool(1);
    const Status status = kernel_->launch(actual.arguments(), pool, {});
    SCOPED_TRACE("at " + std::to_string(first) + ", " + std::to_string(second));
    if (fault) {
      ASSERT_EQ(fault->kind, interpret::FaultKind::outside_tile) << fault->message;
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().kind, DiagnosticKind::outside_tile) << render(status.error());
      return;
    }
    ASSERT_TRUE(status.ok()) << render(status.error());
    EXPECT_EQ(expected.y.bytes, actual.y.bytes);
  }

  ir::Program program_;
  std::shared_ptr<runtime::CompiledKernel> kernel_;
};

TEST_P(WildIndexTest, LeavesNoTile) {
  for (const int64_t number : kNumbers) compare(number, 3);
  std::mt19937_64 random(7);
  for (int i = 0; i < rounds(2000); ++i) {
    const auto draw = [&] { return static_cast<int64_t>(random()) >> (random() % 64); };
    const int64_t first = draw(), second = draw();
    compare(first, second % 64);
  }
}

class OutsideTile : public DiagnosticTest {};

TEST_F(OutsideTile, IsToldWithItsLine) {
  const std::string text = program_of({"store", "s[at[0]] = 1.0"});
  DiagnosticList errors;
  const auto program = ir::read_text(sources_, sources_.add("wild.ir", text), errors);
  ASSERT_TRUE(program);
  const auto kernel = compile(*program);
  ASSERT_NE(kernel, nullptr);
  Array at(ir::kInt64, {2}), x(ir::kFloat32, {64}), y(ir::kFloat32, {64});
  at.as<int64_t>()[0] = int64_t{1} << 40;
  const Status status = kernel->launch({at.view(), x.view(), y.view()}, runtime::thread_pool(1), {});
  ASSERT_FALSE(status.ok());
  expect_diagnostic("outside_tile", render(sources_, status.error()));
}

INSTANTIATE_TEST_SUITE_P(Accesses, WildIndexTest, ::testing::ValuesIn(kAccesses), name_of);

}  // namespace
}  // namespace tilepilot::testing
