// What the host room costs beside ATen: the same operations called from C++ and from a program in the evaluator, with
// one element a tensor so that the work itself is negligible. Prints microseconds a forward call and a Python-level
// operation.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "tests/torch/host_room.h"

namespace tilepilot::eval {
namespace {

using Clock = std::chrono::steady_clock;

// The least of several medians, in microseconds a call.
double measure(const std::function<void()>& body) {
  constexpr int kRounds = 30, kCalls = 200;
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    auto start = Clock::now();
    for (int call = 0; call < kCalls; ++call) body();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kCalls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// A model whose forward is `count` times the same line.
std::string program(const std::string& line, int count) {
  std::string text =
      "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nclass M(nn.Module):\n"
      "    def __init__(self):\n        super().__init__()\n        self.lin = nn.Linear(1, 1)\n"
      "    def forward(self, x, y):\n";
  for (int i = 0; i < count; ++i) text += "        " + line + "\n";
  return text + "        return x\nm = M()\n";
}

double time_program(const std::string& line, int count) {
  testing::Room room;
  stage::Interpreter& interpreter = room.interpreter();
  auto module = room.run(program(line, count));
  if (!module.ok()) {
    fmt::print("{}: {}\n", line, module.error().message);
    return 0;
  }
  stage::Value model = *(*module)->members.find(stage::Name("m"));
  stage::Value x = wrap_tensor(room.host(), at::ones({1, 1})), y = wrap_tensor(room.host(), at::ones({1, 1}));
  return measure([&] {
    stage::CallArgs args;
    args.positional = {x, y};
    auto result = interpreter.call(model, std::move(args));
    if (!result.ok()) std::abort();
  });
}

struct Case {
  const char* line;
  int operations;  // at the level of Python
  std::function<at::Tensor(const at::Tensor&, const at::Tensor&)> aten;
};

void run() {
  at::NoGradGuard no_grad;
  at::Tensor weight = at::ones({1, 1}), bias = at::ones({1});
  const Case cases[] = {
      {"x = x + y", 1, [](auto& x, auto& y) { return at::add(x, y); }},
      {"x = x * 2.0", 1, [](auto& x, auto&) { return at::mul(x, 2.0); }},
      {"x = torch.relu(x)", 1, [](auto& x, auto&) { return at::relu(x); }},
      {"x = F.gelu(x)", 1, [](auto& x, auto&) { return at::gelu(x); }},
      {"x = x.view(1, -1)", 1,
       [](auto& x, auto&) {
         return x.view({1, -1});
       }},
      {"x = x.sum(dim=1, keepdim=True)", 1, [](auto& x, auto&) { return at::sum(x, at::IntArrayRef{1}, true); }},
      {"x = torch.softmax(x, dim=-1)", 1, [](auto& x, auto&) { return at::softmax(x, -1); }},
      {"x = self.lin(x)", 1, [&](auto& x, auto&) { return at::linear(x, weight, bias); }},
      {"x = torch.maximum(x.exp(), y[:1]) + 1", 4,
       [](auto& x, auto& y) { return at::add(at::maximum(x.exp(), y.slice(0, 0, 1)), 1); }},
  };
  constexpr int kLines = 50;
  double empty = time_program("x = x", 1);
  fmt::print("{:<42} {:>9} {:>9} {:>12}\n", "line", "ATen us", "room us", "over us/op");
  for (const Case& each : cases) {
    double room = (time_program(each.line, kLines) - empty) / kLines;
    at::Tensor y = at::ones({1, 1});
    double aten = measure([&] {
                    at::Tensor x = at::ones({1, 1});
                    for (int i = 0; i < kLines; ++i) x = each.aten(x, y);
                  }) /
                  kLines;
    fmt::print("{:<42} {:>9.3f} {:>9.3f} {:>12.3f}\n", each.line, aten, room, (room - aten) / each.operations);
  }
  fmt::print("a forward call that does nothing: {:.3f} us\n", empty);
}

}  // namespace
}  // namespace tilepilot::eval

int main() { tilepilot::eval::run(); }
