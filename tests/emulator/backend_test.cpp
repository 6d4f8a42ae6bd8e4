// Programs compiled for the emulator, from their text in the IR to results.
#include "compiler/emulator/backend.h"

#include <gmock/gmock.h>

#include "compiler/ir/text.h"

namespace tilepilot::emulator {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<runtime::CompiledKernel> compiled(const std::string& text) {
  static const auto backend =
      emulator_backend(targets::cuda::Architecture::sm_80, {{"", TILEPILOT_KERNEL_CACHE, {}}, {}});
  SourceMap sources;
  DiagnosticList warnings;
  const auto program = ir::read_text(sources, sources.add("program.ir", text), warnings);
  EXPECT_TRUE(program && !warnings.has_errors());
  auto kernel = backend->compile(*program, warnings);
  EXPECT_TRUE(kernel.ok()) << kernel.error().message;
  return *kernel;
}

runtime::Argument view(std::vector<float>& values, std::vector<int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size() - 1; axis > 0; --axis) strides[axis - 1] = strides[axis] * shape[axis];
  return runtime::TensorView{values.data(), ir::kFloat32, std::move(shape), std::move(strides)};
}

TEST(EmulatorBackend, RunsPrograms) {
  const auto kernel = compiled(R"(program twice(x: float32[5, 64], y: float32[5, 64]) {
  kernel bx in 5 threads 32 {
    shared t: float32[64]
    copy x[bx, 0 : +64] -> t
    parallel i in 64 {
      y[bx, i] = t[63 - i] * 2.0
    }
  }
}
)");
  std::vector<float> x(5 * 64), y(5 * 64), expected(5 * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  for (size_t i = 0; i < x.size(); ++i) expected[i] = x[i / 64 * 64 + 63 - i % 64] * 2;
  const Status status = kernel->launch({view(x, {5, 64}), view(y, {5, 64})}, {}, {});
  EXPECT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(y, expected);
}

TEST(EmulatorBackend, TellsOfDefects) {
  const auto kernel = compiled(R"(program clash(x: float32[64], y: float32[32]) {
  kernel bx in 2 threads 32 {
    parallel i in 32 {
      y[i] = x[bx * 32 + i]
    }
  }
}
)");
  std::vector<float> x(64), y(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  const Status status = kernel->launch({view(x, {64}), view(y, {32})}, {}, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::emulated_defect);
  EXPECT_THAT(status.error().message, HasSubstr("`clash` is wrong: data race"));
}

}  // namespace
}  // namespace tilepilot::emulator
