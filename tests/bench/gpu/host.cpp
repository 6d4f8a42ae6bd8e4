// What the host does for a GPU: microseconds of a launch beyond the driver's own, and seconds from a product's text to
// its machine code on the device, by phases, on one core and without a cache. Prints rows for `scripts/bench-gpu`,
// whose last number is a limit. usage: bench_gpu [FOLDER...]      (where NVRTC is looked for besides the usual places)
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "compiler/diagnostics/render.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/text/text.h"
#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/prelude.h"
#include "tests/cuda/launch_overhead.h"

namespace tilepilot {
namespace {

using runtime::cuda::Device;
using Clock = std::chrono::steady_clock;

constexpr double kMostBeyondDriver = 4;  // microseconds
constexpr double kMostToMachineCode = 0.35;
constexpr int kRounds = 7;

bool complain(const Diagnostic& error) {
  SourceMap none;
  fmt::print(stderr, "{}\n", render(none, error));
  return false;
}

void tell(std::string_view name, std::string_view unit, double ours, double limit, std::string_view note) {
  fmt::print("ROW;{};{};{};0;{};{}\n", name, unit, ours, limit, note);
}

bool launches(const runtime::cuda::NvrtcOptions& nvrtc) {
  for (const testing::SmallKernel& kernel : {testing::kThreeTensors, testing::kSymbolicExtents, testing::kTensorMaps}) {
    SourceMap sources;
    DiagnosticList diagnostics;
    const auto program = ir::read_text(sources, sources.add(kernel.name, kernel.text), diagnostics);
    if (!program) return complain(diagnostics.items()[0]);
    const auto made = testing::measure_launches(*program, {.nvrtc = nvrtc});
    if (!made) return complain(made.error());
    tell(fmt::format("launch beyond driver, {}", kernel.name), "us", made->beyond, kMostBeyondDriver,
         fmt::format("{:.2f} in all, the driver {:.2f}", made->ours, made->bare));
  }
  return true;
}

constexpr std::string_view kProduct = R"(
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K, num_stages, threads, dtype="float16", accum_dtype="float"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return main
)";
constexpr std::string_view kCall = "matmul(4096, 4096, 4096, 128, 256, 64, 3, 256)";

constexpr std::array<const char*, 4> kPhases = {"staging", "lowering", "NVRTC", "loading"};
using Phases = std::array<double, kPhases.size()>;

double total(const Phases& phases) { return phases[0] + phases[1] + phases[2] + phases[3]; }

Result<Phases> compile_once(runtime::cuda::Nvrtc& nvrtc, const Device& device, const std::string& machine) {
  Phases phases = {};
  auto begin = Clock::now();
  const auto phase_ends = [&](size_t phase) {
    const auto now = Clock::now();
    phases[phase] = std::chrono::duration<double>(now - begin).count();
    begin = now;
  };
  SourceMap sources;
  driver::CompileResult staged =
      driver::compile(sources, {.name = "product.py", .text = std::string(kProduct), .call = std::string(kCall)});
  if (staged.programs.size() != 1)
    return make_error(DiagnosticKind::compiler_failed, {}, render(sources, staged.diagnostics));
  phase_ends(0);
  const auto architecture = machine == "sm_80" ? targets::gpu::Architecture::sm_80 : targets::gpu::Architecture::sm_90a;
  const auto code = TRY(targets::cuda::generate(staged.programs[0], architecture));
  phase_ends(1);
  DiagnosticList warnings;
  const auto made = TRY(nvrtc.compile(targets::cuda::prelude() + code.source, machine, warnings));
  phase_ends(2);
  const auto module = TRY(device.load(made.cubin));
  for (const auto& launch : code.launches) TRY(module->function(launch.function, launch.shared_bytes));
  phase_ends(3);
  return phases;
}

void tell_phases(std::string_view name, const Phases& phases) {
  std::string note;
  for (size_t phase = 0; phase < kPhases.size(); ++phase)
    note += fmt::format("{}{} {:.3f}", phase == 0 ? "" : ", ", kPhases[phase], phases[phase]);
  tell(name, "s", total(phases), kMostToMachineCode, note);
}

// The first one of a process also opens NVRTC, which the median of all does not tell.
bool text_to_machine_code(const runtime::cuda::NvrtcOptions& options) {
  cpu_set_t before, core;
  sched_getaffinity(0, sizeof(before), &before);
  CPU_ZERO(&core);
  CPU_SET(sched_getcpu(), &core);
  sched_setaffinity(0, sizeof(core), &core);
  const auto device = Device::open();
  if (!device) return complain(device.error());
  const auto machine = runtime::cuda::architecture_of((*device)->capability());
  if (!machine) return complain(machine.error());
  runtime::cuda::Nvrtc nvrtc(options);
  std::vector<Phases> all;
  for (int round = 0; round < kRounds; ++round) {
    const auto phases = compile_once(nvrtc, **device, *machine);
    if (!phases) return complain(phases.error());
    all.push_back(*phases);
  }
  sched_setaffinity(0, sizeof(before), &before);
  tell_phases("text to loaded cubin, first of a process", all[0]);
  std::sort(all.begin(), all.end(), [](const Phases& a, const Phases& b) { return total(a) < total(b); });
  tell_phases("text to loaded cubin, GEMM", all[all.size() / 2]);
  return true;
}

}  // namespace
}  // namespace tilepilot

int main(int count, char** arguments) {
  tilepilot::runtime::cuda::NvrtcOptions nvrtc;  // without a cache
  nvrtc.folders.assign(arguments + 1, arguments + count);
  for (const auto& folder : tilepilot::runtime::cuda::default_cuda_folders()) nvrtc.folders.push_back(folder);
  const bool compiled = tilepilot::text_to_machine_code(nvrtc);  // before anything else opens NVRTC
  return tilepilot::launches(nvrtc) && compiled ? 0 : 1;
}
