// What the tuner and the carver, written in Python, get from the compiler.
#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

// Compiles only where two programs are compiled at the same time; refuses those of one name.
class Meeting final : public runtime::KernelBackend {
 public:
  explicit Meeting(runtime::KernelBackend& inner) : inner_(inner) {}
  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override {
    if (program.name == "refused") return make_error(DiagnosticKind::compiler_failed, program.span, "not this one");
    {
      std::unique_lock lock(mutex_);
      ++arrived_;
      all_.notify_all();
      if (!all_.wait_for(lock, std::chrono::seconds(60), [&] { return arrived_ >= wanted; }))
        return make_error(DiagnosticKind::compiler_failed, program.span, "nobody else came");
    }
    return inner_.compile(program, warnings);
  }
  int wanted = 1;

 private:
  runtime::KernelBackend& inner_;
  std::mutex mutex_;
  std::condition_variable all_;
  int arrived_ = 0;
};

Meeting& meeting() {
  static Meeting instance(backend());
  return instance;
}

class TuningModule : public Run {
 protected:
  TuningModule() : Run(meeting()) {
    meeting().wanted = 1;
    install_tuning(interpreter_);
  }
};

constexpr const char* kPrograms = R"(
import _tilepilot_tuning as native

@tilelang.jit(out_idx=[-1])
def add(N, block, number=1):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] + number
    return main

def bad():
    @T.prim_func
    def refused(A: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            for i in T.Parallel(16):
                A[i] = 0.0
    return refused

@tilelang.jit
def matmul(M, N, K, block_M, block_N, block_K, num_stages, threads):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            a = T.alloc_shared((block_M, block_K), "float16")
            b = T.alloc_shared((block_N, block_K), "float16")
            c = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[bx * block_N, k * block_K], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * block_M, bx * block_N])
    return main

H200 = {"architecture": "sm_90a", "multiprocessors": None}
)";

TEST_F(TuningModule, CompilesSideBySide) {
  load(kPrograms);
  // One core takes one program after another.
  meeting().wanted = std::thread::hardware_concurrency() > 1 ? 2 : 1;
  EXPECT_TRUE(holds("native.compile_all([add(32, 16), add(32, 32)]) == [None, None]"));
  auto a = random_array(ir::kFloat32, {32}, 1);
  expect_near(call("add(32, 16)(x0)", {a}), 1e-6, [&](int64_t i) { return a->at(i) + 1; });
}

TEST_F(TuningModule, TellsWhichProgramsFailAndCompilesTheOthers) {
  load(kPrograms);
  EXPECT_TRUE(
      holds("native.compile_all([add(48, 16), tilelang.compile(bad()), add(48, 16)]) == [None, 'not this one', None]"));
  EXPECT_TRUE(holds("native.compile_all([]) == []"));
  EXPECT_THAT(failure("native.compile_all([3])", {}), HasSubstr("a compiled program is wanted, not a `int`"));
}

TEST_F(TuningModule, ProgramsAndFunctionsHaveTexts) {
  load(kPrograms);
  EXPECT_TRUE(holds("native.program_text(add(32, 16)) != native.program_text(add(32, 32))"));
  EXPECT_TRUE(holds("native.program_text(add(32, 16)) == native.program_text(add(32, 16))"));
  EXPECT_TRUE(holds("'bx * block + i' in native.source_text(add) and native.source_text(3) == ''"));
}

TEST_F(TuningModule, EstimatesRankAsMeasured) {
  load(kPrograms);
  EXPECT_TRUE(
      holds("native.estimate(matmul(8192, 8192, 8192, 128, 256, 64, 3, 256), H200)['ms'] < "
            "native.estimate(matmul(8192, 8192, 8192, 128, 128, 32, 3, 128), H200)['ms']"));
  EXPECT_TRUE(
      holds("'shared memory' in native.estimate(matmul(8192, 8192, 8192, 256, 256, 64, 6, 256), H200)['refusal']"));
  EXPECT_THAT(failure("native.estimate(add(32, 16), {'architecture': 'sm_75'})", {}), HasSubstr("sm_80"));
  EXPECT_THAT(failure("native.estimate(add(32, 16), {'architecture': 'sm_80', 'multiprocessors': 0})", {}),
              HasSubstr("at least one multiprocessor"));
}

TEST_F(TuningModule, RecommendsInTheWordsOfTheLanguage) {
  load(std::string(kPrograms) + R"(
best = native.recommend("gemm", {"m": 8192, "n": 8192, "k": 8192, "element": "float16"}, H200, 3)
)");
  EXPECT_TRUE(holds("len(best) == 3 and best[0]['block_M'] == 128 and best[0]['block_N'] == 256"));
  EXPECT_TRUE(holds("best[0]['num_stages'] == 4 and best[0]['threads'] == 256 and best[0]['ms'] <= best[1]['ms']"));
  EXPECT_TRUE(holds("native.recommend('reduction', {'rows': 64, 'columns': 64}, H200, 1)[0]['block_N'] == 64"));
  EXPECT_TRUE(holds("native.recommend('attention', {'queries': 64, 'dim': 64}, H200, 1)[0]['num_stages'] >= 1"));
  EXPECT_TRUE(holds("native.recommend('elementwise', {'columns': 64}, H200, 0) == []"));
  EXPECT_TRUE(holds("native.hardware(H200)['multiprocessors'] == 132"));
  EXPECT_THAT(failure("native.recommend('sort', {}, H200, 1)", {}), HasSubstr("there is no model of `sort`"));
  EXPECT_THAT(failure("native.recommend('gemm', {'m': 'x'}, H200, 1)", {}), HasSubstr("`m` must be an integer"));
  EXPECT_THAT(failure("native.recommend('gemm', {'element': 'text'}, H200, 1)", {}), HasSubstr("`text`"));
}

}  // namespace
}  // namespace tilepilot::stage
