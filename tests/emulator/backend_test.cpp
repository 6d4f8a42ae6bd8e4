// Programs compiled for the emulator, from their text in the IR to results.
#include "compiler/emulator/backend.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <bit>

#include "compiler/ir/text/text.h"

namespace tilepilot::emulator {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<runtime::CompiledKernel> compiled(const std::string& text) {
  static const auto backend =
      emulator_backend(targets::gpu::Architecture::sm_80, {{"", TILEPILOT_KERNEL_CACHE, {}}, {}});
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

TEST(EmulatorBackend, TakesTensorsThatBeginAnywhere) {
  const auto kernel = compiled(R"(program twice(x: float32[128], y: float32[128]) {
  kernel bx in 1 threads 32 {
    parallel i in 128 {
      y[i] = x[i] * 2.0
    }
  }
}
)");
  EXPECT_THAT(kernel->source(), HasSubstr("copy_vector<16>"));
  std::vector<float> numbers(132), expected(128);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i);
  for (const size_t start : {0, 1, 2, 3, 1, 4}) {
    std::vector<float> x(numbers.begin() + static_cast<ptrdiff_t>(start), numbers.end()), y(132);
    auto from = std::get<runtime::TensorView>(view(numbers, {128})), to = std::get<runtime::TensorView>(view(y, {128}));
    from.data = numbers.data() + start;
    to.data = y.data() + (start == 3 ? 1 : 0);
    for (size_t i = 0; i < 128; ++i) expected[i] = x[i] * 2;
    const Status status = kernel->launch({from, to}, {}, {});
    ASSERT_TRUE(status.ok()) << status.error().message;
    const auto* first = static_cast<const float*>(to.data);
    EXPECT_EQ(std::vector<float>(first, first + 128), expected) << start;
  }
}

TEST(EmulatorBackend, TakesExtentsThatAreKnownAtLaunchAlone) {
  const auto kernel = compiled(R"(program twice<m: int32, n: int32>(x: float32[m, n], y: float32[m, n]) {
  kernel bx, by in (n + 63) // 64, m threads 16 {
    parallel i in 64 {
      y[by, bx * 64 + i] = x[by, bx * 64 + i] * 2.0
    }
  }
}
)");
  EXPECT_THAT(kernel->source(), HasSubstr("copy_vector<16>"));
  EXPECT_THAT(kernel->source(), HasSubstr("const int32_t m"));
  for (const auto& [m, n] : std::vector<std::pair<int64_t, int64_t>>{{2, 128}, {3, 100}, {2, 127}, {4, 66}, {1, 64}}) {
    std::vector<float> x(static_cast<size_t>(m * n)), y(x.size()), expected(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(i);
    for (size_t i = 0; i < x.size(); ++i) expected[i] = x[i] * 2;
    const Status status = kernel->launch({view(x, {m, n}), view(y, {m, n})}, {}, {});
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(y, expected) << m << " " << n;
  }
}

// By the program, whatever others are called and however often it is compiled.
TEST(EmulatorBackend, KeepsABookOfCosts) {
  const auto book = std::make_shared<CostBook>();
  const auto text = [](int64_t elements) {
    return fmt::format(R"(program scale(x: float32[{0}], y: float32[{0}]) {{
  kernel bx in 1 threads 32 {{
    parallel i in {0} {{
      y[i] = x[i] * 2.0
    }}
  }}
}}
)",
                       elements);
  };
  const auto launch = [&](int64_t elements, int times) {
    SourceMap sources;
    DiagnosticList warnings;
    const auto program = ir::read_text(sources, sources.add("scale.ir", text(elements)), warnings);
    const auto backend =
        emulator_backend(targets::gpu::Architecture::sm_80, {{"", TILEPILOT_KERNEL_CACHE, {}}, {}, &sources, book});
    const auto kernel = backend->compile(*program, warnings);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    std::vector<float> x(static_cast<size_t>(elements)), y(x.size());
    for (int k = 0; k < times; ++k)
      EXPECT_TRUE((*kernel)->launch({view(x, {elements}), view(y, {elements})}, {}, {}).ok());
  };
  launch(64, 2);
  launch(128, 1);
  launch(64, 1);
  ASSERT_EQ(book->costs().size(), 2u);
  const Cost &first = book->costs()[0], &second = book->costs()[1];
  EXPECT_EQ(first.launches, 3);
  EXPECT_EQ(second.launches, 1);
  using targets::c::Operation;
  EXPECT_EQ(first.counters.thread_operations[Operation::fp32], 3 * 64);
  EXPECT_EQ(second.counters.thread_operations[Operation::fp32], 128);
  EXPECT_EQ(second.counters.warp_operations[Operation::fp32], 4);
  EXPECT_THAT(to_text(first), HasSubstr("`scale`, 3 launches\n"));
  EXPECT_THAT(to_text(second), HasSubstr("`scale` (program 2 of this name), 1 launch\n"));
  EXPECT_THAT(to_text(second), HasSubstr("  operations of threads (of warps): 128 fp32 (4), 32 integer (1)\n"));
  EXPECT_THAT(to_text(second), HasSubstr("  scale.ir:4: 128 fp32\n  scale.ir:3: 32 integer\n"));
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

// Addresses that a program is given are what it says, unless nothing is there.
TEST(EmulatorBackend, TellsOfAddressesWithoutMemory) {
  const auto kernel = compiled(R"(program ones(to: int64) {
  kernel bx in 1 threads 32 {
    local place: int64[1]
    global out: float32[32] address place
    place[0] = to
    parallel i in 32 {
      out[i] = out[i] + 1.0
    }
  }
}
)");
  alignas(16) float numbers[33] = {};
  const auto launch = [&](int64_t address) {
    const Status status = kernel->launch({address}, {}, {});
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(launch(std::bit_cast<int64_t>(&numbers[0])), "");
  EXPECT_THAT(numbers, ::testing::Contains(1.0f).Times(32));
  EXPECT_THAT(launch(4096), HasSubstr("at address 0x1000, where there is no memory"));
  EXPECT_THAT(launch(0), HasSubstr("at address 0x0, where there is no memory"));
  EXPECT_THAT(launch(std::bit_cast<int64_t>(&numbers[0]) + 2), HasSubstr("which is not aligned to"));
}

}  // namespace
}  // namespace tilepilot::emulator
