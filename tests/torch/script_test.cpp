// Scripts in the room of `tilepilot run`: scripts/NAME.py prints golden/script_NAME.txt, and what real PyTorch can run
// of them prints the same there; the messages of scripts/fail_NAME.py are golden/script_fail_NAME.txt.
#include "eval/worker/script.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/golden.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

// They run in their own folder, so that no message holds the path of this machine.
class HostScript : public ::testing::TestWithParam<std::string> {
 protected:
  HostScript() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(tilepilot::testing::tests_path("torch/scripts"));
  }
  ~HostScript() override { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

// Times differ from run to run.
std::string without_times(const std::string& shown) {
  std::istringstream lines(shown);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("Tuned latency", 0) != 0) kept += line + "\n";
  }
  return kept;
}

TEST_P(HostScript, MatchesGolden) {
  std::string shown;
  auto show = [&](const std::string& text) { shown += text; };
  int code = run_script({GetParam() + ".py"}, {{.bench_ms = 1e9, .autotune_limit = 2}, {show, show}});
  EXPECT_EQ(code, GetParam().rfind("fail_", 0) == 0 ? 1 : 0) << shown;
  tilepilot::testing::expect_golden("torch/golden/script_" + GetParam() + ".txt", without_times(shown));
}

INSTANTIATE_TEST_SUITE_P(Files, HostScript, ::testing::ValuesIn(tilepilot::testing::stems_in("torch/scripts", ".py")),
                         [](const auto& info) { return info.param; });

// Those that need neither a GPU nor a package that the Python with PyTorch may lack.
class PyTorchScript : public ::testing::TestWithParam<const char*> {};

TEST_P(PyTorchScript, PrintsTheSame) {
  const std::string name = GetParam();
  auto run = testing::run_python("tests/torch/scripts/" + name + ".py", {});
  if (run.exit_code != 0 && run.output.empty()) GTEST_SKIP() << "this Python has no PyTorch to compare with";
  EXPECT_EQ(run.output,
            tilepilot::testing::read_text(tilepilot::testing::tests_path("torch/golden/script_" + name + ".txt")));
}

INSTANTIATE_TEST_SUITE_P(Files, PyTorchScript,
                         ::testing::Values("assert_close", "autograd", "numpy_arrays", "random_state", "tensor_text"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilepilot::eval
