// What modules ask of `torch` while they are read, where there is none.
#include <gtest/gtest.h>

#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/tile/tile.h"
#include "compiler/syntax/parser.h"

namespace tilepilot::stage {
namespace {

// Empty, or the first error's message.
std::string trouble(const std::string& program) {
  SourceMap sources;
  DiagnosticList diagnostics;
  auto tree = syntax::parse(sources, sources.add("program.py", program), diagnostics);
  if (!tree) return diagnostics.items().front().message;
  Interpreter interpreter(sources);
  install_torch_stub(interpreter);
  auto module = interpreter.run_module(tree, "program");
  return module.ok() ? "" : module.error().message;
}

TEST(TorchStub, AnswersWhatModulesAskWhileTheyAreRead) {
  EXPECT_EQ(trouble(R"(
import torch
import torch.backends
from torch.testing import assert_close
from torch import version

torch.manual_seed(0)
torch.random.manual_seed(0)
torch.set_num_threads(4)
torch.backends.cuda.matmul.allow_tf32 = True
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
assert torch.cuda.get_device_capability() == (9, 0)
assert torch.cuda.get_device_properties(0).multi_processor_count > 0
assert torch.version.hip is None and version.cuda is None
assert torch.__getattribute__("float16") is torch.float16
device = torch.device("cuda")

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor | None, dtype=torch.float8_e4m3fn):
        return x * 2

twice = Twice.apply if hasattr(Twice, "apply") else None

@torch.compile
def f(): return 1

@torch.compile(dynamic=True)
@torch.no_grad()
@torch.inference_mode()
def g(): return 2

assert (f(), g(), torch.compile(g)()) == (1, 2, 2)
)"),
            "");
}

TEST(TorchStub, FailTensors) {
  EXPECT_EQ(trouble("import torch\nx = torch.ones(3)\n"),
            "`torch.ones` needs tensors, and here tile programs are only compiled");
  EXPECT_EQ(trouble("import torch\ntorch.testing.assert_close(1, 2)\n"),
            "`torch.testing.assert_close` needs tensors, and here tile programs are only compiled");
  EXPECT_EQ(trouble("import torch\ntorch.cuda.Event().record()\n"),
            "`torch.cuda.Event` needs tensors, and here tile programs are only compiled");
}

}  // namespace
}  // namespace tilepilot::stage
