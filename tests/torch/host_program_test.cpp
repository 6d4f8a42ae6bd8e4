// Whole programs in the host room: what a candidate's ModelNew needs, and what is refused.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "eval/host/tensors/tensor_object.h"
#include "tests/torch/host_room.h"

namespace tilepilot::eval {
namespace {

using stage::Value;

constexpr const char* kHeader = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n";

Value value_of(testing::Room& room, const std::string& body) {
  auto result = room.result(kHeader + body);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? *result : Value();
}

Diagnostic error_of(const std::string& body) {
  testing::Room room;
  auto result = room.result(kHeader + body);
  EXPECT_FALSE(result.ok());
  return result.ok() ? Diagnostic{} : Diagnostic(result.error());
}

constexpr const char* kModel = R"(
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width) * 2)
        self.register_buffer("shift", torch.zeros(width))

    def forward(self, x):
        return F.relu(self.inner(x)) * self.scale + self.shift

class Model(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.norm = nn.BatchNorm1d(width)
        self.names = {}

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        key = (x.shape, x.dtype)
        if key not in self.names:
            self.names[key] = x.shape[-1]
        return self.norm(x) / self.names[key]
)";

TEST(HostProgram, ModuleKeepsItsWeightsByNameInOrder) {
  testing::Room room;
  Value model = value_of(room, std::string(kModel) + "\ndef f():\n    return Model(4, 2)\n");
  std::vector<std::string> names;
  for (auto& entry : named_tensors(model)) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"blocks.0.scale", "blocks.0.shift", "blocks.0.inner.weight",
                                             "blocks.0.inner.bias", "blocks.1.scale", "blocks.1.shift",
                                             "blocks.1.inner.weight", "blocks.1.inner.bias", "norm.weight", "norm.bias",
                                             "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}));
}

TEST(HostProgram, LoadedWeightsDecideTheResult) {
  testing::Room room;
  auto module = room.run(std::string(kHeader) + kModel + "\nmodel = Model(4, 2)\nother = Model(4, 2)\n");
  ASSERT_TRUE(module.ok()) << module.error().message;
  Value model = *(*module)->members.find(stage::Name("model")), other = *(*module)->members.find(stage::Name("other"));
  ASSERT_TRUE(load_tensors(other, named_tensors(model)).ok());
  at::Tensor x = at::randn({3, 4});
  stage::CallArgs first, second;
  first.positional = {wrap_tensor(room.host(), x)};
  second.positional = {wrap_tensor(room.host(), x)};
  auto a = room.interpreter().call(model, first), b = room.interpreter().call(other, second);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(at::equal(*tensor_of(*a), *tensor_of(*b)));
}

TEST(HostProgram, LoadingNamesWhatDoesNotFit) {
  testing::Room room;
  Value model = value_of(room, "def f():\n    return nn.Linear(2, 3)\n");
  auto status = load_tensors(model, {{"weight", at::zeros({3, 3})}, {"extra", at::zeros({1})}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "weights that the module lacks: `extra`; weights that were not given: `bias`; weights of another shape: "
            "`weight`");
}

TEST(HostProgram, ModuleMethods) {
  testing::Room room;
  Value result = value_of(room, std::string(kModel) + R"(
def init(m):
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.weight, 0.5)
        nn.init.zeros_(m.bias)

def f():
    model = Model(4, 1).apply(init).eval()
    assert not model.training and not model.blocks[0].training
    assert len(list(model.parameters())) == 5
    assert next(model.parameters()).shape == (4,)
    assert [n for n, _ in model.named_children()] == ["blocks", "norm"]
    assert "norm.running_mean" in model.state_dict()
    assert sum(p.numel() for p in model.parameters()) == 32
    assert len(model.blocks) == 1 and model.blocks[-1] is model.blocks[0]
    assert model.half().blocks[0].scale.dtype == torch.float16
    assert model.float().train().training
    assert all(p.requires_grad for p in model.parameters())
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(net) == 3 and isinstance(net[1], nn.ReLU) and len(net[:2]) == 2
    heads = nn.ModuleDict({"a": nn.Linear(2, 2)})
    heads["b"] = nn.Linear(2, 3)
    assert list(heads.keys()) == ["a", "b"] and "a" in heads and heads["b"].out_features == 3
    weights = nn.ParameterList([nn.Parameter(torch.ones(2)) for _ in range(3)])
    assert len(weights) == 3 and len(list(weights.parameters())) == 3
    drop = nn.Dropout(0.5)
    drop.p = 0.0
    assert torch.equal(drop(torch.ones(8)), torch.ones(8))
    return model
)");
  EXPECT_FALSE(result.is_none());
}

TEST(HostProgram, InPlaceOperatorsKeepTheObject) {
  testing::Room room;
  Value result = value_of(room, R"(
def f():
    x = torch.zeros(3)
    y = x
    x += 1
    x *= torch.tensor(2.0)
    x[0] = 7
    x[1:] = torch.tensor([8.0, 9.0])
    assert x.add_(0) is x
    return y
)");
  ASSERT_TRUE(tensor_of(result));
  EXPECT_TRUE(at::equal(*tensor_of(result), at::tensor({7.0f, 8.0f, 9.0f})));
}

TEST(HostProgram, ContextsAndSwitchesAreAccepted) {
  testing::Room room;
  Value result = value_of(room, R"(
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

@torch.no_grad()
def g(x):
    return x.to(device) + 1

def f():
    with torch.no_grad():
        x = torch.zeros(2, device=device).cuda()
    with torch.inference_mode():
        return g(x)
)");
  ASSERT_TRUE(tensor_of(result));
}

// Scripts record gradients (scripts/autograd.py), candidates never do.
TEST(HostProgram, CandidatesRecordNoGradients) {
  testing::Room room;
  Value result = value_of(room, R"(
def f():
    w = nn.Parameter(torch.ones(2))
    with torch.enable_grad(), torch.set_grad_enabled(True):
        y = w * 2
    return y.requires_grad or torch.is_grad_enabled() or y.grad_fn is not None
)");
  ASSERT_TRUE(result.if_bool());
  EXPECT_FALSE(*result.if_bool());
  EXPECT_EQ(error_of("def f():\n    return torch.autograd.grad(1, 2)\n").kind, DiagnosticKind::forbidden);
}

TEST(HostProgram, CandidatesHaveEinopsAndNumpy) {
  testing::Room room;
  Value result = value_of(room, R"(
from einops import rearrange
import numpy as np
def f():
    x = rearrange(torch.arange(6.0), "(a b) -> b a", a=2)
    return tuple(x.shape) == (3, 2) and abs(np.log(1.0 / 0.01) - 4.605170185988092) < 1e-12
)");
  ASSERT_TRUE(result.if_bool());
  EXPECT_TRUE(*result.if_bool());
}

TEST(HostProgram, KernelsSeeTheTensorsMemory) {
  testing::Room room;
  Value value = value_of(room, "def f():\n    return torch.zeros(2, 3, dtype=torch.float16).t()\n");
  auto view = room.host().tensors().view(value);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->data, tensor_of(value)->data_ptr());
  EXPECT_EQ(view->shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(view->strides, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(view->type, ir::kFloat16);
  EXPECT_FALSE(room.host().tensors().view(Value(3)));
  auto made = room.host().tensors().allocate(ir::kInt32, {4}, {});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(tensor_of(*made)->scalar_type(), at::kInt);
  std::atomic<int64_t> sum = 0;
  room.host().tensors().parallel_for()(100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
  });
  EXPECT_EQ(sum, 4950);
}

// Were the kernels' loop compiled without OpenMP, everything would still pass, at half the speed or less.
TEST(HostProgram, KernelsRunOnAllThreadsOfLibTorch) {
  testing::Room room;
  at::set_num_threads(2);
  std::mutex mutex;
  std::condition_variable both;
  std::set<std::thread::id> threads;
  room.host().tensors().parallel_for()(1000, [&](int64_t, int64_t) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    both.notify_all();
    both.wait_for(lock, std::chrono::seconds(1), [&] { return threads.size() == 2; });
  });
  EXPECT_EQ(threads.size(), 2u);
}

TEST(HostProgram, FailUnfittingArgumentsListTheSignatures) {
  Diagnostic error = error_of("def f():\n    return torch.softmax(torch.ones(2), 'a')\n");
  EXPECT_EQ(error.kind, DiagnosticKind::no_matching_overload);
  EXPECT_EQ(error.message, "no overload of `softmax` accepts (Tensor, str)");
  ASSERT_FALSE(error.notes.empty());
  EXPECT_EQ(error.notes[0].message, "`softmax(Tensor input, int dim, ScalarType? dtype=None)`");
}

TEST(HostProgram, FailOperationsReportLibTorchsFirstLine) {
  Diagnostic error = error_of("def f():\n    return torch.ones(2, 3) @ torch.ones(2, 3)\n");
  EXPECT_EQ(error.kind, DiagnosticKind::tensor_operation_failed);
  EXPECT_EQ(error.message, "`@`: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
  EXPECT_TRUE(error.span.valid());
}

TEST(HostProgram, FailHugeTensorsAreOutOfMemory) {
  Diagnostic error = error_of("def f():\n    return torch.empty(1 << 45, dtype=torch.float64)\n");
  EXPECT_EQ(error.kind, DiagnosticKind::out_of_memory);
}

TEST(HostProgram, FailUnknownMethodsSuggestTheNearest) {
  Diagnostic error = error_of("def f():\n    return torch.ones(2).reshap(1, 2)\n");
  EXPECT_EQ(error.kind, DiagnosticKind::unknown_attribute);
  EXPECT_EQ(error.hint, "did you mean `reshape`?");
}

TEST(HostProgram, FailForbiddenNames) {
  for (const char* use :
       {"torch.ops.aten.from_file('x')", "torch.ops.aten.from_file.default('x')", "torch.ops.aten._print('x')",
        "torch.load('x')", "torch.save(1, 'x')", "torch.compile(f)", "torch.hub.load('a', 'b')", "torch.jit.script(f)",
        "torch.utils.cpp_extension", "torch.cuda.Event()", "torch.ones(1).backward()", "torch.ones(1).numpy()",
        "torch.ones(1).data_ptr()"}) {
    EXPECT_EQ(error_of("def f():\n    return " + std::string(use) + "\n").kind, DiagnosticKind::forbidden) << use;
  }
}

TEST(HostProgram, FailParametersBeforeInit) {
  Diagnostic error = error_of(
      "class M(nn.Module):\n    def __init__(self):\n        self.w = nn.Parameter(torch.ones(1))\n"
      "def f():\n    return M()\n");
  EXPECT_EQ(error.kind, DiagnosticKind::unknown_attribute);
  EXPECT_EQ(error.hint, "call `super().__init__()` first");
}

}  // namespace
}  // namespace tilepilot::eval
