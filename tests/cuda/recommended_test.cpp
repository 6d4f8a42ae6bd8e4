// Products with the tiles that the model recommends: code can be generated and compiled, and takes the shared memory
// and the registers that the model counts on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "compiler/ir/text/text.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/prelude.h"
#include "compiler/targets/gpu/estimate/kernel_estimate.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/nvrtc_fixture.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using targets::gpu::GemmProblem;
using targets::gpu::Machine;
using targets::gpu::Tiles;

int64_t pieces(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

// As upstream's example of a product has it, b transposed.
ir::Program product_with(const GemmProblem& problem, const Tiles& tiles) {
  const bool whole = problem.element.is_int();
  const ir::DType sum = whole ? ir::kInt32 : problem.element == ir::kFloat64 ? ir::kFloat64 : ir::kFloat32;
  return parse(fmt::format(
      R"(program gemm(A: {type}[{m}, {k}], B: {type}[{n}, {k}], C: {output}[{m}, {n}]) {{
  kernel bx, by in {columns}, {rows} threads {threads} {{
    shared A_shared: {type}[{tile_m}, {tile_k}]
    shared B_shared: {type}[{tile_n}, {tile_k}]
    fragment C_local: {sum}[{tile_m}, {tile_n}]
    fill C_local = {zero}
    pipelined k in {steps} stages {stages} {{
      copy A[by * {tile_m} : +{tile_m}, k * {tile_k} : +{tile_k}] -> A_shared
      copy B[bx * {tile_n} : +{tile_n}, k * {tile_k} : +{tile_k}] -> B_shared
      gemm C_local += A_shared @ B_shared.T{precision}
    }}
    copy C_local -> C[by * {tile_m} : +{tile_m}, bx * {tile_n} : +{tile_n}]
  }}
}}
)",
      fmt::arg("type", ir::to_string(problem.element)), fmt::arg("output", ir::to_string(problem.output)),
      fmt::arg("sum", ir::to_string(sum)), fmt::arg("zero", whole ? "0" : "0.0"), fmt::arg("m", problem.m),
      fmt::arg("n", problem.n), fmt::arg("k", problem.k), fmt::arg("columns", pieces(problem.n, tiles.block_n)),
      fmt::arg("rows", pieces(problem.m, tiles.block_m)), fmt::arg("threads", tiles.threads),
      fmt::arg("tile_m", tiles.block_m), fmt::arg("tile_n", tiles.block_n), fmt::arg("tile_k", tiles.block_k),
      fmt::arg("precision", problem.full_precision ? " precision fp32" : ""),
      fmt::arg("steps", pieces(problem.k, tiles.block_k)), fmt::arg("stages", tiles.stages)));
}

std::string describe(const Machine& hardware, const GemmProblem& problem, const Tiles& tiles) {
  return fmt::format("{}, {} {} x {} x {}: {} x {} x {}, {} stages, {} threads", hardware.name,
                     ir::to_string(problem.element), problem.m, problem.n, problem.k, tiles.block_m, tiles.block_n,
                     tiles.block_k, tiles.stages, tiles.threads);
}

std::vector<GemmProblem> problems() {
  std::vector<GemmProblem> all;
  for (const ir::DType element :
       {ir::kFloat16, ir::kInt8, ir::kFloat32, ir::kFloat64, ir::kTensorFloat32, ir::kFloat8E4M3})
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{8192, 8192, 8192}, {1024, 1024, 1024}, {16, 4096, 4096}, {200, 1000, 304}}) {
      GemmProblem problem;
      problem.m = m;
      problem.n = n;
      problem.k = k;
      problem.element = element;
      problem.output = element.is_int()                                     ? ir::kInt32
                       : element == ir::kFloat16 || element == ir::kFloat64 ? element
                                                                            : ir::kFloat32;
      all.push_back(problem);
      if (element != ir::kFloat32) continue;
      problem.full_precision = true;
      all.push_back(problem);
    }
  return all;
}

TEST(Recommended, CodeTakesTheSharedMemoryThatTheModelCountsOn) {
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
    const Machine hardware = targets::gpu::machine_of(architecture);
    for (const GemmProblem& problem : problems())
      for (const Tiles& tiles : recommend(problem, hardware, 4)) {
        const ir::Program program = product_with(problem, tiles);
        const auto code = targets::cuda::generate(program, architecture);
        ASSERT_TRUE(code.ok()) << describe(hardware, problem, tiles) << "\n" << render(code.error());
        // What fits besides holds the result on its way out.
        const int64_t result = tiles.block_m * tiles.block_n * problem.output.bytes();
        EXPECT_LE(code->launches[0].shared_bytes, tiles.work.shared_bytes + result + 1024)
            << describe(hardware, problem, tiles);
        const auto made = targets::gpu::estimate(program, hardware);
        ASSERT_TRUE(made && std::holds_alternative<targets::gpu::Estimate>(*made));
        const double ratio = std::get<targets::gpu::Estimate>(*made).seconds / tiles.estimate.seconds;
        EXPECT_NEAR(ratio, 1, 0.12) << describe(hardware, problem, tiles);
      }
  }
}

// Of the assembler's remarks.
int64_t number_before(const std::string& text, const std::string& words) {
  const size_t end = text.find(words);
  if (end == std::string::npos) return -1;
  const size_t begin = text.rfind(' ', end - 1);
  return std::atoll(text.substr(begin + 1, end - begin - 1).c_str());
}

TEST(Recommended, CodeTakesTheRegistersThatTheModelCountsOn) {
  SKIP_WITHOUT_NVRTC();
  runtime::cuda::NvrtcOptions options = nvrtc_options();
  options.cache.clear();  // what it holds has no remarks
  options.extra_flags = {"--ptxas-options=-v"};
  runtime::cuda::Nvrtc remarking(options);
  for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
    const Machine hardware = targets::gpu::machine_of(architecture);
    for (const GemmProblem& problem : problems()) {
      if (problem.m > 1024 && problem.element != ir::kFloat16 && problem.element != ir::kInt8) continue;
      if (problem.m < 1024) continue;
      const Tiles tiles = recommend(problem, hardware, 1).at(0);
      const auto code = targets::cuda::generate(product_with(problem, tiles), architecture);
      ASSERT_TRUE(code.ok());
      DiagnosticList warnings;
      const auto made = remarking.compile(targets::cuda::prelude() + code->source,
                                          architecture == Architecture::sm_80 ? "sm_80" : "sm_90a", warnings);
      ASSERT_TRUE(made.ok()) << render(made.error());
      // The parts of split operands make the assembler give up a few words.
      EXPECT_LE(number_before(made->log, " bytes spill stores"), problem.full_precision ? 16 : 0)
          << describe(hardware, problem, tiles) << made->log;
      // Threads that share out registers themselves are assembled for an equal share.
      if (code->source.find("set_registers_up") != std::string::npos) continue;
      const int64_t registers = number_before(made->log, " registers");
      EXPECT_GT(registers, 0) << made->log;
      EXPECT_NEAR(static_cast<double>(registers), static_cast<double>(tiles.work.registers), 48)
          << describe(hardware, problem, tiles);
    }
  }
}

}  // namespace
}  // namespace tilepilot::testing
