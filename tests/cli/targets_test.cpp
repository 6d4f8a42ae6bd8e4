// Targets on the command line: scripts in the emulator, and what is said where a GPU is missing.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kGemm =
    "import tilelang\n"
    "import tilelang.language as T\n"
    "import torch\n"
    "\n"
    "@tilelang.jit(out_idx=[-1])\n"
    "def matmul(M, N, K):\n"
    "    @T.prim_func\n"
    "    def main(A: T.Tensor((M, K), 'float16'), B: T.Tensor((K, N), 'float16'), C: T.Tensor((M, N), 'float32')):\n"
    "        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):\n"
    "            a = T.alloc_shared((32, 32), 'float16')\n"
    "            b = T.alloc_shared((32, 32), 'float16')\n"
    "            c = T.alloc_fragment((32, 32), 'float32')\n"
    "            T.clear(c)\n"
    "            for k in T.Pipelined(K // 32, num_stages=2):\n"
    "                T.copy(A[by * 32, k * 32], a)\n"
    "                T.copy(B[k * 32, bx * 32], b)\n"
    "                T.gemm(a, b, c)\n"
    "            T.copy(c, C[by * 32, bx * 32])\n"
    "    return main\n"
    "\n"
    "a = torch.randn(32, 64, dtype=torch.float16, device='cuda')\n"
    "b = torch.randn(64, 64, dtype=torch.float16, device='cuda')\n"
    "c = matmul(32, 64, 64)(a, b)\n"
    "torch.cuda.synchronize()\n"
    "torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-3, atol=1e-3)\n"
    "print(c.shape, c.device.type)\n";

// Two blocks write different values to one place.
constexpr const char* kRace =
    "import tilelang\n"
    "import tilelang.language as T\n"
    "import torch\n"
    "\n"
    "@tilelang.jit(out_idx=[-1])\n"
    "def clash():\n"
    "    @T.prim_func\n"
    "    def main(X: T.Tensor((64,), 'float32'), Y: T.Tensor((32,), 'float32')):\n"
    "        with T.Kernel(2, threads=32) as bx:\n"
    "            for i in T.Parallel(32):\n"
    "                Y[i] = X[bx * 32 + i]\n"
    "    return main\n"
    "\n"
    "clash()(torch.arange(64, dtype=torch.float32))\n";

TEST_F(CommandLine, RunInTheEmulator) {
  std::ofstream(folder_ / "gemm.py") << kGemm;
  auto result = tilepilot({"run", "--target", "emulate:sm_80", "gemm.py"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, HasSubstr("torch.Size([32, 64])"));
}

// Columns of 64 float32: their elements lie in one bank, and each in a sector of its own.
TEST_F(CommandLine, RunInTheEmulatorTellsCosts) {
  std::ofstream(folder_ / "turn.py")
      << "import tilelang\n"
         "import tilelang.language as T\n"
         "import torch\n"
         "\n"
         "@tilelang.jit(out_idx=[-1])\n"
         "def turn():\n"
         "    @T.prim_func\n"
         "    def turned(A: T.Tensor((64, 64), 'float32'), B: T.Tensor((64, 64), 'float32')):\n"
         "        with T.Kernel(1, threads=64):\n"
         "            tx = T.get_thread_binding()\n"
         "            s = T.alloc_shared((64, 64), 'float32')\n"
         "            T.copy(A, s)\n"
         "            for j in T.serial(64):\n"
         "                B[tx, j] = s[tx, j]\n"
         "    return turned\n"
         "\n"
         "a = torch.randn(64, 64)\n"
         "kernel = turn()\n"
         "for _ in range(2):\n"
         "    torch.testing.assert_close(kernel(a), a)\n";
  auto result = tilepilot({"run", "--target", "emulate:sm_80", "--costs", "--report", "report.json", "turn.py"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.err, AllOf(HasSubstr("`turned`, 2 launches"), HasSubstr("32768 bytes read in 1024 sectors"),
                                HasSubstr("turn.py:14: 7936 of 8192 wavefronts for bank conflicts"),
                                HasSubstr("turn.py:14: 8192 sectors where 1024 would do")));
  std::ifstream file(folder_ / "report.json");
  const auto report = nlohmann::json::parse(file);
  EXPECT_EQ(report["costs"][0]["shared_lines"]["turn.py:14"]["bank_conflicts"], 7936) << report.dump();
  auto refused = tilepilot({"run", "--target", "cpu", "--costs", "turn.py"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("`--costs` is for runs in the emulator"));
}

// By class, and apart for kernels of one name.
TEST_F(CommandLine, RunInTheEmulatorTellsOperations) {
  std::ofstream(folder_ / "steps.py")
      << "import tilelang\n"
         "import tilelang.language as T\n"
         "import torch\n"
         "\n"
         "@tilelang.jit(out_idx=[-1])\n"
         "def steps(factor):\n"
         "    @T.prim_func\n"
         "    def step(A: T.Tensor((64, 128), 'float32'), B: T.Tensor((64, 128), 'float32')):\n"
         "        with T.Kernel(64, threads=32) as bx:\n"
         "            for i in T.Parallel(128):\n"
         "                B[bx, i] = T.exp2(A[bx, i]) * factor + A[bx, i]\n"
         "    return step\n"
         "\n"
         "a = torch.randn(64, 128)\n"
         "for factor in (2.0, 3.0, 2.0):\n"
         "    torch.testing.assert_close(steps(factor)(a), torch.exp2(a) * factor + a)\n";
  auto result = tilepilot({"run", "--target", "emulate:sm_80", "--costs", "--report", "report.json", "steps.py"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(
      result.err,
      AllOf(HasSubstr("`step`, 2 launches"), HasSubstr("`step` (program 2 of this name), 1 launch"),
            HasSubstr("operations of threads (of warps): 8192 fp32 fma (256), 6144 integer (192), 8192 special (256)"),
            HasSubstr("steps.py:11: 8192 fp32 fma, 8192 special\n")));
  std::ifstream file(folder_ / "report.json");
  const auto costs = nlohmann::json::parse(file)["costs"];
  ASSERT_EQ(costs.size(), 2) << costs.dump();
  EXPECT_EQ(costs[0]["thread_operations"]["fp32_fma"], 2 * 8192);
  EXPECT_EQ(costs[1]["number"], 2);
  EXPECT_EQ(costs[1]["warp_operations"]["special"], 256);
  EXPECT_EQ(costs[1]["operation_lines"]["steps.py:11"]["fp32_fma"], 8192);
}

TEST_F(CommandLine, RunInTheEmulatorAddsUpWhatThreadsHold) {
  std::ofstream(folder_ / "rows.py")
      << "import tilelang\n"
         "import tilelang.language as T\n"
         "import torch\n"
         "\n"
         "@tilelang.jit(out_idx=[-1])\n"
         "def rows():\n"
         "    @T.prim_func\n"
         "    def main(A: T.Tensor((32, 64), 'float32'), O: T.Tensor((32,), 'float32')):\n"
         "        with T.Kernel(1, threads=64) as _:\n"
         "            total = T.alloc_reducer(32, 'float32', replication='all')\n"
         "            T.clear(total)\n"
         "            for k in T.serial(2):\n"
         "                a = T.alloc_fragment((32, 32), 'float32')\n"
         "                T.copy(A[0, k * 32], a)\n"
         "                for i, j in T.Parallel(32, 32):\n"
         "                    total[i] += a[i, j]\n"
         "            T.finalize_reducer(total)\n"
         "            T.copy(total, O)\n"
         "    return main\n"
         "\n"
         "a = torch.randn(32, 64)\n"
         "torch.testing.assert_close(rows()(a), a.sum(1), rtol=1e-4, atol=1e-4)\n";
  auto result = tilepilot({"run", "--target", "emulate:sm_80", "rows.py"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
}

TEST_F(CommandLine, FailRunInTheEmulatorNamesTheLineOfADefect) {
  std::ofstream(folder_ / "race.py") << kRace;
  EXPECT_EQ(tilepilot({"run", "race.py"}).exit_code, 0);
  auto result = tilepilot({"run", "--target", "emulate:sm_80", "race.py"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("is wrong: data race at"), HasSubstr("race.py:11"))) << all(result);
}

TEST_F(CommandLine, FailRunWithoutAGpuSaysWhatIsMissing) {
  std::ofstream(folder_ / "gemm.py") << kGemm;
  auto result = tilepilot({"run", "--target", "cuda:sm_80", "gemm.py"});
  if (result.exit_code == 0) {
    EXPECT_THAT(result.out, HasSubstr("cuda"));
    return;
  }
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, ContainsRegex("driver|LibTorch|NVRTC")) << all(result);
}

TEST_F(CommandLine, CompileForTheEmulatorIsCompileForTheGpu) {
  std::ofstream(folder_ / "gemm.py") << kGemm;
  const std::vector<std::string> call = {"compile", "gemm.py", "--call", "matmul(32, 64, 64)", "--target"};
  auto with = [&](const char* target) {
    auto arguments = call;
    arguments.emplace_back(target);
    return tilepilot(arguments);
  };
  // The module's own calls need tensors.
  std::ofstream(folder_ / "gemm.py") << std::string(kGemm).substr(0, std::string(kGemm).find("\na = torch"));
  auto emulated = with("emulate:sm_90a");
  EXPECT_EQ(emulated.exit_code, 0) << all(emulated);
  EXPECT_THAT(emulated.out, HasSubstr("__global__"));
  EXPECT_EQ(emulated.out, with("cuda:sm_90a").out);
}

TEST_F(CommandLine, CompileExplainsAndDraws) {
  std::ofstream(folder_ / "gemm.py") << std::string(kGemm).substr(0, std::string(kGemm).find("\na = torch"));
  auto with = [&](std::vector<std::string> options) {
    std::vector<std::string> arguments = {"compile",  "gemm.py",   "--call", "matmul(32, 64, 64)",
                                          "--target", "cuda:sm_80"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return tilepilot(arguments);
  };
  const auto explained = with({"--explain"});
  EXPECT_EQ(explained.exit_code, 0) << all(explained);
  EXPECT_THAT(explained.out, HasSubstr("gemm.py:17:17: gemm into c: mma m16n8k16"));
  const auto drawn = with({"--emit", "layouts", "--output", "drawings"});
  EXPECT_EQ(drawn.exit_code, 0) << all(drawn);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "drawings" / "main_0_c.svg"));
  const auto refused = with({"--output", "drawings"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("`--output` is for drawings of layouts"));
}

TEST_F(CommandLine, FailOtherTargets) {
  auto refused = tilepilot({"run", "--target", "cuda:sm_75", "script.py"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("no code is written for `cuda:sm_75`: it lacks the asynchronous copies"));
  for (const auto& [name, why] :
       {std::pair("cuda:sm_100", "`tcgen05` and tensor memory"), std::pair("emulate:sm_120a", "a target of its own"),
        std::pair("cuda:sm_89", "such a GPU runs that of `cuda:sm_80`"),
        std::pair("emulate:sm_90", "such a GPU runs that of `emulate:sm_90a`")}) {
    auto other = tilepilot({"run", "--target", name, "script.py"});
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.err, AllOf(HasSubstr("no code is written for"), HasSubstr(why))) << name;
  }
  auto unknown = tilepilot({"run", "--target", "tpu", "script.py"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no target `tpu`"));
  EXPECT_EQ(tilepilot({"doctor", "--target", "cuda:sm_99"}).exit_code, 2);
  auto judged = tilepilot({"generate", model("matmul"), "--target", "emulate:sm_80"});
  EXPECT_EQ(judged.exit_code, 2);
  EXPECT_THAT(judged.err, HasSubstr("`emulate:sm_80` tells no times"));
}

TEST_F(CommandLine, CheckInTheEmulator) {
  auto good = check("good_matmul", {"--target", "emulate:sm_80", "--trials", "1"});
  EXPECT_EQ(good.exit_code, 0) << all(good);
  auto wrong = check("fail_wrong_values", {"--target", "emulate:sm_80", "--trials", "1"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.out, HasSubstr("wrong_values")) << all(wrong);
}

// The programs that the builtin author writes for a GPU.
TEST_F(CommandLine, CheckProgramsForAGpuInTheEmulator) {
  const std::string folder = TILEPILOT_SOURCE_DIR;
  for (const char* name : {"linear_sum", "lstm_cell"}) {
    auto result = tilepilot({"check", folder + "/tests/agent/golden/" + name + ".gpu.py", "--reference",
                             folder + "/examples/" + name + ".py", "--target", "emulate:sm_90a", "--trials", "1"});
    EXPECT_EQ(result.exit_code, 0) << all(result);
    EXPECT_THAT(result.out, AllOf(HasSubstr("verified"), HasSubstr("emulate:sm_90a"))) << all(result);
  }
}

// Means and squares in one pass, by places that take part in a step more or less, and by blocks that share rows.
TEST_F(CommandLine, CheckLongNormsForAGpuInTheEmulator) {
  const std::string folder = TILEPILOT_SOURCE_DIR;
  auto result = tilepilot({"check", folder + "/tests/agent/golden/long_norms.gpu.py", "--reference",
                           model("long_norms"), "--target", "emulate:sm_90a", "--trials", "1"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, HasSubstr("verified")) << all(result);
}

// Batches, transposed operands, heads between them, vectors.
TEST_F(CommandLine, CheckProductsOfAllKinds) {
  const std::string folder = TILEPILOT_SOURCE_DIR;
  for (auto [program, target] : {std::pair("products.gpu.py", "emulate:sm_90a"), {"products.products.py", "cpu"}}) {
    auto result = tilepilot({"check", folder + "/tests/agent/golden/" + program, "--reference", model("products"),
                             "--target", target, "--trials", "1"});
    EXPECT_EQ(result.exit_code, 0) << all(result);
    EXPECT_THAT(result.out, ::testing::StartsWith("verified")) << all(result);
  }
}

TEST_F(CommandLine, FailCheckWithoutAGpuSaysWhatIsMissing) {
  auto result = check("good_matmul", {"--target", "cuda:sm_90a"});
  if (result.exit_code == 0) {
    EXPECT_THAT(result.out, HasSubstr("cuda:sm_90a"));
    return;
  }
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, ContainsRegex("driver|LibTorch|NVRTC")) << all(result);
}

// KernelBench times on GPUs only. That is said before the model is exported where the target is named.
TEST_F(CommandLine, fail_KernelBenchsTimingOfAProcessor) {
  for (const char* target : {"cpu", "emulate:sm_80"}) {
    auto result = check("good_matmul", {"--target", target, "--protocol", "kernelbench"});
    EXPECT_EQ(result.exit_code, 2) << all(result);
    EXPECT_THAT(result.err, AllOf(HasSubstr("`--protocol kernelbench` times calls on a GPU, and the target is"),
                                  Not(HasSubstr("exporting"))))
        << all(result);
  }
}

TEST_F(CommandLine, DoctorTellsOfGpuNvmlAndNvrtc) {
  auto result = tilepilot({"doctor"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("GPU"), HasSubstr("NVML"), HasSubstr("NVRTC"))) << all(result);
  EXPECT_THAT(result.out, HasSubstr(" ms to a start"));
}

}  // namespace
}  // namespace tilepilot
