// A name of PyTorch that can be called: its overloads in the order PyTorch tries them, each an ATen operator or a row
// of the room's tables.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <memory>
#include <string>
#include <vector>

#include "eval/host/arguments.h"
#include "eval/host/signature.h"

namespace tilepilot::eval {

class Overload {
 public:
  Overload(Signature signature_, c10::OperatorHandle handle) : signature(std::move(signature_)), handle_(handle) {}
  Overload(Signature signature_, FunctionBody body) : signature(std::move(signature_)), body_(body) {}
  // A row that stands for ATen operators: `handle`, and `in_place` if its parameter inplace is true.
  Overload(Signature signature_, c10::OperatorHandle handle, std::optional<c10::OperatorHandle> in_place);

  // Runs on matched arguments; the results replace them. Throws what LibTorch throws. `may_leave_gpu`: an operator that
  // a GPU lacks for the type of its arguments runs on the CPU.
  void run(torch::jit::Stack& stack, bool may_leave_gpu) const;

  Signature signature;
  std::vector<std::string> result_names;  // "values", "indices"; empty if they have none

 private:
  void run_as_it_is(torch::jit::Stack& stack) const;

  std::optional<c10::OperatorHandle> handle_;
  std::optional<c10::OperatorHandle> in_place_;
  FunctionBody body_ = nullptr;
  std::vector<size_t> forwarded_;  // indices of the parameters a renaming row passes on; empty: all
  size_t inplace_index_ = Signature::npos;
};

class Callable {
 public:
  explicit Callable(std::string name) : name_(std::move(name)) {}
  void add(std::unique_ptr<Overload> overload) { overloads_.push_back(std::move(overload)); }
  void sort();
  bool empty() const { return overloads_.empty(); }
  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Overload>>& overloads() const { return overloads_; }

  Result<stage::Value> call(HostState& state, const stage::Value* self, const stage::CallArgs& args) const;
  // On one tensor and one value: the operators of the language.
  Result<stage::Value> call(HostState& state, const stage::Value& self, const stage::Value& other, Span span) const;

 private:
  Error no_match(const stage::Value* self, const stage::CallArgs& args) const;

  std::string name_;
  std::vector<std::unique_ptr<Overload>> overloads_;
};

// An ATen result as a value; `self` (may be null) is returned itself if the result is the same tensor.
stage::Value to_value(HostState& state, const c10::IValue& value, const stage::Value* self = nullptr);

// A tuple of tensors with names: what max(dim=...) returns.
stage::Value make_named_tuple(std::vector<std::string> names, std::vector<stage::Value> items);

// A callable as a value of the evaluator, bound to `self` or free.
struct TorchFunction final : stage::TypedObject<TorchFunction> {
  static constexpr stage::Type kType{"builtin_function_or_method"};
  TorchFunction(HostState& state_, const Callable& callable_, std::optional<stage::Value> self_ = std::nullopt)
      : state(state_), callable(callable_), self(std::move(self_)) {}
  Result<stage::Value> call(stage::Interpreter&, stage::CallArgs args) override {
    return callable.call(state, self ? &*self : nullptr, args);
  }
  Result<std::string> repr(stage::Interpreter&) override { return "<built-in function " + callable.name() + ">"; }
  HostState& state;
  const Callable& callable;
  std::optional<stage::Value> self;
};

}  // namespace tilepilot::eval
