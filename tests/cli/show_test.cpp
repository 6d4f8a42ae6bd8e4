// `tilepilot show`, as its users call it.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTwoKernels = R"(import tilelang.language as T

@T.prim_func
def first(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            B[i] = A[i] + 1.0

@T.prim_func
def second(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        for i in T.Parallel(64):
            B[i] = A[i] * 2.0
)";

class Show : public CommandLine {
 protected:
  runtime::ProcessResult show(std::vector<std::string> more) {
    more.insert(more.begin(), "show");
    return tilepilot(std::move(more));
  }
  runtime::ProcessResult show_matmul(std::vector<std::string> more) {
    more.insert(more.begin(), {TILEPILOT_SOURCE_DIR "/examples/scripts/matmul.py", "--call", "matmul(64, 64, 64)"});
    return show(std::move(more));
  }
  std::string file(const std::string& text) {
    std::ofstream(folder_ / "program.py") << text;
    return (folder_ / "program.py").string();
  }
  std::string read(const std::string& name) {
    std::ifstream stream(folder_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

TEST_F(Show, WritesAPageAndDrawings) {
  const auto result = show_matmul({"-o", "page.html", "--svg", "drawings"});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out, HasSubstr("written: page.html"));
  EXPECT_THAT(read("page.html"), HasSubstr("Timeline of a block"));
  for (const char* name : {"timeline", "roofline", "shared_a", "registers_c"})
    EXPECT_THAT(read(fmt::format("drawings/{}.svg", name)), HasSubstr("<svg xmlns")) << name;
}

TEST_F(Show, NamesThePageAfterTheFile) {
  EXPECT_EQ(show_matmul({}).exit_code, 0);
  EXPECT_THAT(read("matmul.html"), HasSubstr("target emulate:sm_90a"));
}

TEST_F(Show, GivesItsDataAsJson) {
  for (const char* target : {"emulate:sm_80", "cuda:sm_90a", "cpu"}) {
    const auto result = show_matmul({"--json", "--target", target});
    ASSERT_EQ(result.exit_code, 0) << all(result);
    const json kernel = json::parse(result.out)["picture"]["kernels"][0];
    EXPECT_EQ(kernel["roofline"]["flops"], 2.0 * 64 * 64 * 64);
    EXPECT_EQ(kernel["timeline"].is_null(), std::string(target) == "cpu");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "matmul.html"));
  }
}

TEST_F(Show, MeasuresOnThisProcessor) {
  const auto result = show_matmul({"--json", "--target", "cpu", "--measure"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json roofline = json::parse(result.out)["picture"]["kernels"][0]["roofline"];
  EXPECT_GT(roofline["seconds"], 0);
  EXPECT_THAT(roofline["time_from"].get<std::string>(), HasSubstr("measured on"));
  EXPECT_THAT(all(show_matmul({"--measure"})), HasSubstr("the emulator measures no time"));
}

TEST_F(Show, WantsOneKernel) {
  const std::string program = file(kTwoKernels);
  const auto both = show({program});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(all(both), HasSubstr("the file has 2 kernels: `first`, `second`"));
  EXPECT_EQ(show({program, "--kernel", "second", "-o", "page.html"}).exit_code, 0);
  EXPECT_THAT(read("page.html"), HasSubstr("<h2>second</h2>"));
  EXPECT_THAT(all(show({program, "--kernel", "third"})), HasSubstr("no kernel is called `third`"));
}

TEST_F(Show, TellsWhatIsWrongAsCompileDoes) {
  const std::string broken = file(
      "import tilelang.language as T\n\n@T.prim_func\ndef main(A: T.Tensor((64,), 'float32')):\n"
      "    with T.Kernel(1) as bx:\n        A[0] = B[0]\n");
  const auto shown = show({broken}), compiled = tilepilot({"compile", broken});
  EXPECT_EQ(shown.exit_code, compiled.exit_code);
  EXPECT_EQ(shown.err, compiled.err);
  EXPECT_NE(shown.exit_code, 0);
  const auto none = show({file("x = 1\n")});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_THAT(all(none), HasSubstr("stages no tile program"));
  EXPECT_THAT(all(show({(folder_ / "nowhere.py").string()})), HasSubstr("cannot read"));
}

TEST_F(Show, RefusesWhatItCannotUse) {
  const auto unwritable = show_matmul({"-o", "nowhere/page.html"});
  EXPECT_EQ(unwritable.exit_code, 2) << all(unwritable);
  EXPECT_THAT(all(unwritable), HasSubstr("cannot write `nowhere/page.html`"));
  std::ofstream(folder_ / "taken") << "a file";
  EXPECT_THAT(all(show_matmul({"--svg", "taken"})), HasSubstr("cannot write `taken/"));
  EXPECT_THAT(all(show_matmul({"--set", "m"})), HasSubstr("`m` names no extent"));
  EXPECT_THAT(all(show_matmul({"--set", "m=x"})), HasSubstr("`m=x` names no extent"));
  EXPECT_THAT(all(show_matmul({"--set", "m=99999999999999999999"})), HasSubstr("names no extent"));
  EXPECT_THAT(all(show_matmul({"--set", "m=3"})), HasSubstr("has no extent or number `m`"));
  const std::string program = file(kTwoKernels);
  EXPECT_THAT(all(show({program, "--kernel", "first", "-o", program})), HasSubstr("would replace the program"));
  EXPECT_THAT(all(show_matmul({"--seed", "1"})), HasSubstr("has no use for `--seed`"));
  EXPECT_EQ(show_matmul({"--target", "cuda:sm_12"}).exit_code, 2);
}

TEST_F(Show, DrawsWhatNeedsNoExecution) {
  const auto result = show_matmul({"--no-run", "-o", "page.html"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("no timeline"));
  EXPECT_THAT(read("page.html"), HasSubstr("registers of c"));
  EXPECT_THAT(read("page.html"), Not(HasSubstr("timeline of a block")));
}

}  // namespace
}  // namespace tilepilot
