// Every function of the device prelude is accepted by NVRTC and its assembler, for both targets. No GPU is needed.
#include <gmock/gmock.h>

#include <ctime>

#include "compiler/targets/cuda/prelude.h"
#include "compiler/targets/cuda/wgmma.h"
#include "tests/cuda/nvrtc_fixture.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::is_wgmma;
using targets::gpu::Wgmma;

std::string failure(const Diagnostic& error) {
  std::string text = error.message;
  for (const Note& note : error.notes) text += "\n" + note.message;
  return text;
}

class PreludeCompiles : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(PreludeCompiles, ForItsTarget) {
  SKIP_WITHOUT_NVRTC();
  const auto& [name, architecture] = GetParam();
  DiagnosticList warnings;
  const auto made = nvrtc().compile(kernel_unit(name), architecture, warnings);
  ASSERT_TRUE(made.ok()) << failure(made.error());
  EXPECT_THAT(made->log, ::testing::Not(::testing::HasSubstr("warning")));
  EXPECT_EQ(made->cubin.substr(0, 4),
            "\x7f"
            "ELF");
}

INSTANTIATE_TEST_SUITE_P(Kernels, PreludeCompiles,
                         ::testing::Combine(::testing::ValuesIn(kernel_files()), ::testing::Values("sm_80", "sm_90a")),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

// What the code of sm_80 is assembled for on a device of 9.0.
TEST(Prelude, CompilesWithoutWhatOnly90aHas) {
  SKIP_WITHOUT_NVRTC();
  for (const char* name : {"matrix", "memory", "threads", "atomics"}) {
    DiagnosticList warnings;
    const auto made = nvrtc().compile(kernel_unit(name), "sm_90", warnings);
    EXPECT_TRUE(made.ok()) << failure(made.error());
  }
}

// Register arrays must not end in local memory: the copies and products of a kernel with constant indices use none.
TEST(Prelude, KeepsRegistersInRegisters) {
  SKIP_WITHOUT_NVRTC();
  for (const char* name : {"matrix", "memory"}) {
    const auto ptx = nvrtc().ptx(kernel_unit(name), "sm_90a");
    ASSERT_TRUE(ptx.ok()) << failure(ptx.error());
    EXPECT_THAT(*ptx, ::testing::Not(::testing::HasSubstr(".local"))) << name;
  }
}

// Sums and operands of asynchronous products, of whatever type.
TEST(Prelude, PinsRegistersOfEveryType) {
  SKIP_WITHOUT_NVRTC();
  std::string body;
  for (const char* type :
       {"float", "int32_t", "float16", "bfloat16", "float8_e4m3", "float8_e5m2", "int8_t", "uint8_t"})
    body += std::string("  {\n    registers<") + type + ", 8> x;\n    pin_registers<8>(&x[0]);\n  }\n";
  DiagnosticList warnings;
  const std::string source = targets::cuda::prelude() + ("extern \"C\" __global__ void pins() {\n" + body + "}\n");
  const auto made = nvrtc().compile(source, "sm_90a", warnings);
  EXPECT_TRUE(made.ok()) << failure(made.error());
}

std::vector<Wgmma> products(const std::vector<int64_t>& columns) {
  constexpr ir::DType kTypes[] = {ir::kFloat16,    ir::kBFloat16, ir::kTensorFloat32, ir::kFloat8E4M3,
                                  ir::kFloat8E5M2, ir::kInt8,     ir::kUInt8};
  std::vector<Wgmma> all;
  for (const ir::DType a : kTypes)
    for (const ir::DType b : kTypes)
      for (const ir::DType sum : {ir::kFloat32, ir::kFloat16, ir::kInt32})
        for (const int64_t n : columns)
          for (int form = 0; form < 8; ++form) {
            const Wgmma product{a, b, sum, n, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0};
            if (is_wgmma(product)) all.push_back(product);
          }
  return all;
}

std::string calling_kernel(const Wgmma& product) {
  const std::string name = targets::cuda::wgmma_name(product);
  const char* sum = product.sum == ir::kFloat32 ? "float" : product.sum == ir::kInt32 ? "int32_t" : "float16";
  const std::string count = std::to_string(product.n / 2);
  const std::string function = targets::cuda::wgmma_function(product);
  std::string a = "b", held;
  if (product.a_in_registers) {
    const size_t begin = function.find("const ") + 6;
    const std::string taken = function.substr(begin, function.find('*', begin) - begin);
    a = "&a[0]";
    held = "  registers<" + (taken == "void" ? "tfloat32" : taken) + ", 16> a;\n  copy_vector<16>(&a[0], c);\n";
  }
  return function + "extern \"C\" __global__ void kernel_" + name + "(" + sum + "* c, uint64_t b) {\n  registers<" +
         sum + ", " + count + "> held;\n  for (int i = 0; i < " + count + "; ++i) held[i] = c[i];\n" + held +
         "  wgmma_fence();\n  " + name + "(&held[0], " + a + ", b, b != 0);\n  wgmma_commit();\n  wgmma_wait<0>();\n" +
         "  for (int i = 0; i < " + count + "; ++i) c[i] = held[i];\n}\n";
}

TEST(Prelude, HasEveryAsynchronousProduct) {
  SKIP_WITHOUT_NVRTC();
  const std::vector<Wgmma> all = products({8, 48, 256});
  EXPECT_GT(all.size(), 100u);
  for (size_t first = 0; first < all.size(); first += 30) {
    std::string unit = targets::cuda::prelude();
    for (size_t k = first; k < std::min(all.size(), first + 30); ++k) unit += calling_kernel(all[k]);
    DiagnosticList warnings;
    const auto made = nvrtc().compile(unit, "sm_90a", warnings);
    EXPECT_TRUE(made.ok()) << failure(made.error());
  }
}

TEST(Prelude, RefusesProductsThatTheMachineHasNot) {
  EXPECT_FALSE(is_wgmma({ir::kFloat16, ir::kBFloat16, ir::kFloat32, 64}));
  EXPECT_FALSE(is_wgmma({ir::kFloat16, ir::kFloat16, ir::kFloat32, 12}));
  EXPECT_FALSE(is_wgmma({ir::kFloat16, ir::kFloat16, ir::kFloat32, 264}));
  EXPECT_FALSE(is_wgmma({ir::kInt8, ir::kInt8, ir::kInt32, 40}));
  EXPECT_FALSE(is_wgmma({ir::kFloat8E4M3, ir::kFloat8E4M3, ir::kFloat32, 64, false, false, true}));
  EXPECT_FALSE(is_wgmma({ir::kFloat16, ir::kFloat16, ir::kFloat32, 64, true, true, false}));
  EXPECT_EQ(targets::cuda::wgmma_name({ir::kFloat16, ir::kFloat16, ir::kFloat32, 128, false, false, true}),
            "wgmma_m64n128k16_f32_f16_f16_tb");
}

// Every kernel pays for the prelude, so it must stay light.
TEST(Prelude, CompilesFast) {
  SKIP_WITHOUT_NVRTC();
  runtime::cuda::NvrtcOptions options = nvrtc_options();
  options.cache.clear();
  runtime::cuda::Nvrtc compiler(options);
  double least = 1e9;
  for (int k = 0; k < 5; ++k) {
    DiagnosticList warnings;
    const std::clock_t begin = std::clock();  // what others do on this machine does not count
    const auto made =
        compiler.compile(targets::cuda::prelude() + "extern \"C\" __global__ void nothing() {}\n", "sm_90a", warnings);
    ASSERT_TRUE(made.ok()) << failure(made.error());
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  RecordProperty("milliseconds", std::to_string(least * 1000));
  EXPECT_LT(least, 0.25) << "on an idle core it takes 0.03 s";
}

}  // namespace
}  // namespace tilepilot::testing
