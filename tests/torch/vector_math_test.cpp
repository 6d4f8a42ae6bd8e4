#include "eval/torch/vector_math.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

namespace tilepilot::eval {
namespace {

// The exit status of a process whose first operator is `exp`: 1 if a part of it is of low accuracy.
int exp_in_a_new_process() {
  at::set_num_threads(2);
  settle_vector_math();
  const at::Tensor x = at::linspace(-3, 3, 1 << 12);
  const at::Tensor expected = x.to(at::kDouble).exp();
  const at::Tensor error = ((x.exp() - expected) / expected).abs().max();
  return error.item<double>() < 1e-6 ? 0 : 1;
}

// Without settle_vector_math() about one process in ten is wrong.
TEST(VectorMath, IsAccurateInEveryNewProcess) {
  const auto threads = std::filesystem::directory_iterator("/proc/self/task");
  if (std::distance(begin(threads), end(threads)) > 1) GTEST_SKIP() << "other tests have run in this process";
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(exp_in_a_new_process());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "process " << i;
  }
}

}  // namespace
}  // namespace tilepilot::eval
