// `tilepilot tune`, and what a run makes of what it found. Measured on the processor, so only properties that hold
// whatever is fastest are expected.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHeader =
    "import tilelang\n"
    "import tilelang.language as T\n";

// A factory that leaves its tiles open. Told by `fails`, some or all of them do not compile.
constexpr const char* kFactory = R"(
def matmul(M, N, K, block_M, block_N, block_K=32, num_stages=1, fails=0):
    if block_M > fails > 0:
        raise ValueError(f'{block_M} is too much')

    @T.prim_func
    def main(A: T.Tensor((M, K), 'float32'), B: T.Tensor((K, N), 'float32'), C: T.Tensor((M, N), 'float32')):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            a = T.alloc_shared((block_M, block_K), 'float32')
            b = T.alloc_shared((block_K, block_N), 'float32')
            c = T.alloc_fragment((block_M, block_N), 'float32')
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], a)
                T.copy(B[k * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block_M, bx * block_N])
    return main

def plain(x):
    return x

size = 32
)";

// The same with configurations of its own, as a script that runs it.
constexpr const char* kTuned = R"(
@tilelang.autotune(configs=[{'block': 8}, {'block': 16}, {'block': 32}], warmup=1, rep=1)
@tilelang.jit(out_idx=[-1])
def double(N, block=None):
    @T.prim_func
    def main(A: T.Tensor((N,), 'float32'), B: T.Tensor((N,), 'float32')):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * 2
    return main

if __name__ == '__main__':
    print(double(128).config)
)";

// Of its configurations one never ends: a sum that only grows, until it stays infinite.
constexpr const char* kEndless = R"(
print('before')

@tilelang.autotune(configs=[{'block': 8}, {'block': 16}, {'block': 32}], warmup=1, rep=1, timeout=1.5)
@tilelang.jit(out_idx=[-1])
def grow(N, block=None):
    @T.prim_func
    def main(A: T.Tensor((N,), 'float32'), B: T.Tensor((N,), 'float32')):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            total = T.alloc_local((1,), 'float32')
            total[0] = T.abs(A[0]) + 1.0
            if block == 8:
                while total[0] > 0.0:
                    total[0] = total[0] * 2.0
            for i in T.Parallel(block):
                B[bx * block + i] = total[0]
    return main

if __name__ == '__main__':
    print(sorted(grow(128).config.items()))
)";

class Tune : public CommandLine {
 protected:
  Tune() {
    std::ofstream(folder_ / "factory.py") << kHeader << kFactory;
    std::ofstream(folder_ / "tuned.py") << kHeader << kTuned;
    std::ofstream(folder_ / "endless.py") << kHeader << kEndless;
  }
  runtime::ProcessResult run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, {"--target", "cpu"});
    return tilepilot(std::move(arguments), {"TILEPILOT_CACHE=" + (folder_ / "cache").string()});
  }
  runtime::ProcessResult tune(const std::string& call, const std::string& limit = "2",
                              const std::string& file = "factory.py") {
    return run({"tune", file, "--call", call, "--limit", limit, "--bench-time", "1"});
  }
};

TEST_F(Tune, GoesOnWithoutWhatNeverEnds) {
  const std::vector<std::string> command = {"tune", "endless.py",   "--call", "grow(128)",    "--limit",
                                            "3",    "--bench-time", "1",      "--time-limit", "1"};
  auto result = run(command);
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("{'block': 8}: it did not end within 1.0 seconds; the run begins anew without it"),
                    HasSubstr("Skipped {'block': 8}: it did not end within 1.0 seconds")));
  EXPECT_THAT(result.out, AllOf(HasSubstr("3 configurations, 2 measured"), ContainsRegex("best: block=(16|32)")));
  // It is known from now on.
  auto again = run(command);
  EXPECT_EQ(again.exit_code, 0) << all(again);
  EXPECT_THAT(again.err, Not(HasSubstr("begins anew")));
}

TEST_F(Tune, ARunGoesOnWithoutWhatNeverEnds) {
  auto result = run({"run", "endless.py"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, ContainsRegex("before\nbefore\n\\[\\('block', (16|32)\\)\\]"));
  EXPECT_THAT(result.err, HasSubstr("{'block': 8}: it did not end within 1.5 seconds; the run begins anew"));
}

// Where nothing can be kept a new run would meet the same: it ends instead.
TEST_F(Tune, fail_NeverEndsWithoutACache) {
  std::ofstream(folder_ / "cache") << "no folder";
  auto result = run({"run", "endless.py"});
  EXPECT_EQ(result.exit_code, 1) << all(result);
  EXPECT_THAT(result.err, HasSubstr("{'block': 8}: it did not end within 1.5 seconds\n"));
}

TEST_F(Tune, PrintsATableAndTheFastest) {
  auto result = tune("matmul(32, 32, 32)");
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("matmul on the processor:"), HasSubstr("2 measured, 2 of them now"),
                                HasSubstr("model ms  TFLOP/s  block_M  block_N  block_K  num_stages"),
                                ContainsRegex("best: block_M=[0-9]+, block_N=[0-9]+, block_K=[0-9]+, num_stages=")));
  EXPECT_THAT(result.err, HasSubstr("`--limit N` lets it try more"));
  // Tiles of twice the extents and more would be empty.
  EXPECT_THAT(result.out, Not(ContainsRegex("block_M=(64|128|256)")));
  auto again = tune("matmul(32, 32, 32)");
  EXPECT_EQ(again.exit_code, 0) << all(again);
  EXPECT_THAT(again.out, HasSubstr("2 measured, 0 of them now"));
  EXPECT_THAT(again.err, AllOf(HasSubstr("Tuned before"), Not(HasSubstr("Tuned latency"))));
  auto quiet = run({"tune", "--quiet", "factory.py", "--call", "matmul(48, 32, 32)", "--limit", "1"});
  EXPECT_THAT(quiet.out, HasSubstr("1 measured, 1 of them now"));
  EXPECT_THAT(quiet.err, Not(HasSubstr("Tuned latency")));
  auto other = tune("matmul(32, 32, 48)");
  EXPECT_THAT(other.out, HasSubstr("2 of them now")) << "other shapes are another search";
}

TEST_F(Tune, WhatTheCallGivesStaysAsItIs) {
  auto result = tune("matmul(32, 32, 32, block_K=16, block_M=16, num_stages=2)", "9");
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("2 configurations, 2 measured"), Not(HasSubstr("block_K"))));
}

TEST_F(Tune, LeavesOutWhatDoesNotCompileAndSaysWhy) {
  auto result = tune("matmul(64, 16, 16, block_N=16, block_K=16, num_stages=1, fails=16)", "9");
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("3 configurations, 1 measured"), HasSubstr("best: block_M=16 with")));
  EXPECT_THAT(result.err, HasSubstr("Skipped {'block_M': 64}: ValueError: 64 is too much"));
}

TEST_F(Tune, AnswersInJson) {
  auto result = run({"--json", "tune", "factory.py", "--call",
                     "matmul(64, 16, 16, block_N=16, block_K=16, "
                     "num_stages=1, fails=16)",
                     "--bench-time", "1"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json answer = json::parse(result.out);
  EXPECT_EQ(answer["ok"], true);
  EXPECT_EQ(answer["best"], json({{"block_M", 16}}));
  EXPECT_GT(answer["best_ms"], 0.0);
  ASSERT_EQ(answer["rows"].size(), 3u);
  EXPECT_EQ(answer["rows"][0]["ms"], answer["best_ms"]);
  EXPECT_EQ(answer["rows"][0]["measured_now"], true);
  EXPECT_TRUE(answer["rows"][2]["ms"].is_null());
  EXPECT_THAT(answer["rows"][2]["failure"].get<std::string>(), HasSubstr("is too much"));
}

TEST_F(Tune, IsUsedByTheNextRun) {
  auto tuned = run({"tune", "tuned.py", "--call", "double(128)", "--limit", "3"});
  ASSERT_EQ(tuned.exit_code, 0) << all(tuned);
  EXPECT_THAT(tuned.out, HasSubstr("3 configurations, 3 measured, 3 of them now"));
  auto first = run({"run", "tuned.py"}), second = run({"run", "tuned.py"});
  EXPECT_EQ(first.exit_code, 0) << all(first);
  EXPECT_THAT(first.err, AllOf(HasSubstr("Tuned before"), Not(HasSubstr("Tuned latency"))));
  EXPECT_EQ(first.out, second.out);
  const std::string best = tuned.out.substr(tuned.out.find("block=") + 6, 2);
  EXPECT_THAT(first.out, HasSubstr("{'block': " + std::to_string(std::atoi(best.c_str())) + "}"));
}

TEST_F(Tune, ARunMeasuresOnceAndWhatChangedAgain) {
  auto first = run({"run", "tuned.py"}), second = run({"run", "tuned.py"});
  EXPECT_THAT(first.err, HasSubstr("Tuned latency")) << all(first);
  EXPECT_THAT(second.err, AllOf(HasSubstr("Tuned before"), Not(HasSubstr("Tuned latency")))) << all(second);
  // A larger limit tries what is left; another program is another search.
  auto fewer = run({"run", "--autotune-limit", "1", "tuned.py"});
  EXPECT_THAT(fewer.err, Not(HasSubstr("Tuned latency")));
  std::string text = std::string(kHeader) + kTuned;
  text.replace(text.find("* 2"), 3, "* 3");
  std::ofstream(folder_ / "tuned.py") << text;
  EXPECT_THAT(run({"run", "tuned.py"}).err, HasSubstr("Tuned latency"));
}

// The emulator's times are nobody's, but its machine is another one.
TEST_F(Tune, AnotherMachineMeasuresAnew) {
  EXPECT_THAT(run({"run", "tuned.py"}).err, HasSubstr("Tuned latency"));
  auto other =
      tilepilot({"run", "--target", "emulate:sm_80", "tuned.py"}, {"TILEPILOT_CACHE=" + (folder_ / "cache").string()});
  EXPECT_EQ(other.exit_code, 0) << all(other);
  EXPECT_THAT(other.err, AllOf(HasSubstr("Tuned latency"), Not(HasSubstr("Tuned before")))) << all(other);
  EXPECT_THAT(run({"run", "tuned.py"}).err, HasSubstr("Tuned before"));
}

TEST_F(Tune, ALargerLimitTriesTheRest) {
  auto one = run({"run", "--autotune-limit", "1", "tuned.py"});
  EXPECT_THAT(one.err, HasSubstr("tuning tries 1 of 3 configurations")) << all(one);
  auto rest = tune("double(128)", "3", "tuned.py");
  EXPECT_THAT(rest.out, HasSubstr("3 measured, 2 of them now")) << all(rest);
}

TEST_F(Tune, TakesADamagedRecordForNone) {
  auto first = run({"run", "tuned.py"});
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "cache"))
    if (entry.path().extension() == ".tuning") {
      std::ofstream(entry.path()) << "{\"tried\": [1,";
      ++damaged;
    }
  EXPECT_EQ(damaged, 1);
  auto second = run({"run", "tuned.py"});
  EXPECT_EQ(second.exit_code, 0) << all(second);
  EXPECT_THAT(second.err, HasSubstr("Tuned latency"));
}

TEST_F(Tune, SaysWhatIsWrongWithTheCall) {
  const auto refused = [&](const std::string& call, const std::string& message) {
    auto result = tune(call);
    EXPECT_EQ(result.exit_code, 2) << call << "\n" << all(result);
    EXPECT_THAT(result.err, AllOf(HasSubstr(message), HasSubstr("bad_usage")));
  };
  refused("matmull(32, 32, 32)", "matmull");
  refused("matmul", "what is tuned is a call of a function in the file");
  refused("matmul(32, ", "no Python expression");
  refused("matmul(*[32, 32])", "arguments with `*`");
  refused("matmul(undefined, 1, 1)", "undefined");
  refused("plain(3)", "`plain` has no parameter to tune that the call leaves open");
  refused("matmul(32, 32, 32, 16, 16, 16, 1)", "`matmul` has no parameter to tune that the call leaves open");
  refused("size(3)", "`size` is no function that makes a tile program, but a `int`");
  auto answered = run({"--json", "tune", "factory.py", "--call", "nothing()"});
  EXPECT_EQ(answered.exit_code, 2);
  EXPECT_EQ(json::parse(answered.out)["ok"], false) << all(answered);
  EXPECT_EQ(run({"tune", "missing.py", "--call", "matmul(1, 1, 1)"}).exit_code, 2);
  EXPECT_EQ(run({"tune", "factory.py"}).exit_code, 2) << "what to call is not optional";
  EXPECT_EQ(tune("matmul(32, 32, 32)", "0").exit_code, 2);
}

TEST_F(Tune, FailsIfNoConfigurationWorks) {
  auto result = tune("matmul(64, 64, 64, fails=1)");
  EXPECT_EQ(result.exit_code, 1) << all(result);
  EXPECT_THAT(result.err, AllOf(HasSubstr("no configuration could be compiled and checked"), HasSubstr("is too much")));
  EXPECT_THAT(tune("matmul(64, 64, 64, fails=1)").err, HasSubstr("is too much")) << "and it is tried again";
}

TEST_F(Tune, InTheEmulatorTheModelChooses) {
  std::ofstream(folder_ / "half.py") << kHeader << [] {
    std::string text = kFactory;
    for (size_t at = text.find("float32"); at != std::string::npos; at = text.find("float32", at))
      text.replace(at, 7, "float16");
    return text;
  }();
  auto result = tilepilot({"tune", "--target", "emulate:sm_80", "half.py", "--call", "matmul(32, 32, 32)", "--limit",
                           "1", "--bench-time", "0"},
                          {"TILEPILOT_CACHE=" + (folder_ / "cache").string()});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, AllOf(HasSubstr("matmul on the emulator"), Not(ContainsRegex(" - +[0-9]"))))
      << "the model has times";
}

}  // namespace
}  // namespace tilepilot
