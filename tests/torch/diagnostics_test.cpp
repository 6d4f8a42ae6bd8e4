// What tensor operations say when they cannot do what the program asks.
#include "tests/golden_diagnostic.h"
#include "tests/torch/host_room.h"

namespace tilepilot::eval {
namespace {

class Diagnostics : public tilepilot::testing::DiagnosticTest {
 protected:
  void expect(const std::string& kind, const std::string& text) {
    testing::Room room;
    auto ran = room.run("import torch\n\n" + text);
    ASSERT_FALSE(ran.ok()) << text;
    expect_diagnostic(kind, render(room.sources(), ran.error()));
  }
};

TEST_F(Diagnostics, NoMatchingOverload) {
  expect("no_matching_overload", "x = torch.ones(2, 3)\ntorch.softmax(x, \"last\")\n");
}

TEST_F(Diagnostics, TensorOperationFailed) { expect("tensor_operation_failed", "x = torch.ones(2, 3)\ny = x @ x\n"); }

TEST_F(Diagnostics, OutOfMemory) { expect("out_of_memory", "x = torch.empty(2**45)\n"); }

}  // namespace
}  // namespace tilepilot::eval
