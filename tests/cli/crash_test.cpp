// A script whose process faults: what it says names the kernel and the line.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"
#include "tests/golden.h"

namespace tilepilot {
namespace {

using ::testing::HasSubstr;

// Reads memory that is not there, in the blocks of the kernel's launch.
constexpr const char* kFaults =
    "import tilelang\n"
    "import tilelang.language as T\n"
    "import torch\n"
    "\n"
    "@tilelang.jit\n"
    "def reads(n):\n"
    "    @T.prim_func\n"
    "    def stray(address: T.ptr, Y: T.Tensor((n,), 'float32')):\n"
    "        with T.Kernel(n // 64, threads=64) as bx:\n"
    "            X = T.make_tensor(address, (n,), 'float32')\n"
    "            for i in T.Parallel(64):\n"
    "                Y[bx * 64 + i] = X[bx * 64 + i]\n"
    "    return stray\n"
    "\n"
    "y = torch.zeros(65536)\n"
    "print('before')\n"
    "reads(65536)(y.data_ptr(), y)\n"
    "print('between')\n"
    "reads(65536)(64, y)\n"
    "print('never')\n";

class CrashedScript : public CommandLine {
 protected:
  runtime::ProcessResult run(const std::string& text, std::vector<std::string> options) {
    std::ofstream(folder_ / "stray.py") << text;
    options.insert(options.begin(), {"run", "--target", "cpu"});
    options.emplace_back("stray.py");
    return tilepilot(options);
  }
};

TEST_F(CrashedScript, NamesTheKernelAndTheCall) {
  const auto ran = run(kFaults, {});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.signal, 0);
  EXPECT_EQ(ran.out, "before\nbetween\n");
  testing::expect_golden("diagnostics/golden/crashed.txt", ran.err);
}

TEST_F(CrashedScript, SaysSoAsJson) {
  const auto ran = run(kFaults, {"--json"});
  EXPECT_EQ(ran.exit_code, 1);
  const nlohmann::json told = nlohmann::json::parse(ran.out);
  EXPECT_EQ(told["ok"], false);
  EXPECT_EQ(told["exit_code"], 1);
  EXPECT_EQ(told["output"], "before\nbetween\n");
  EXPECT_THAT(told["messages"].get<std::string>(), HasSubstr("the generated kernel `stray` crashed"));
}

}  // namespace
}  // namespace tilepilot
