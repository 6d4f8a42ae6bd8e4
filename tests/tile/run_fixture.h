// A test that runs a program of the tile language through the CPU backend on plain arrays.
#pragma once

#include <gtest/gtest.h>

#include "compiler/diagnostics/render.h"
#include "compiler/syntax/parser.h"
#include "tests/tile/array_host.h"
#include "tests/tile/checked_backend.h"

namespace tilepilot::stage {

using testing::Array;
using testing::ArrayObject;
using testing::random_array;

inline runtime::KernelBackend& backend() {
  static const auto instance = runtime::cpu_backend({"", TILEPILOT_KERNEL_CACHE, {}});
  return *instance;
}

// The same, with the reference interpreter beside it.
inline runtime::KernelBackend& checked_backend() {
  static testing::CheckedBackend instance(backend());
  return instance;
}

// A module of the tile language on `kernels`.
class LoadedModule {
 protected:
  explicit LoadedModule(runtime::KernelBackend& kernels) : interpreter_(sources_) {
    TileOptions options;
    options.backend = &kernels;
    options.host = &host_;
    options.raw_memory = true;
    options.on_program = [this](const ir::Program&) { ++staged_; };
    options.on_launch = [this](const ir::Program&, bool begins) { launches_ += begins ? 1 : 0; };
    install_tile_language(interpreter_, std::move(options));
    install_torch_stub(interpreter_);
  }

  void load(const std::string& text) {
    DiagnosticList diagnostics;
    auto tree = syntax::parse(
        sources_, sources_.add("program.py", "import tilelang\nimport tilelang.language as T\n" + text), diagnostics);
    ASSERT_TRUE(tree) << render(sources_, diagnostics);
    auto module = interpreter_.run_module(tree, "program");
    ASSERT_TRUE(module.ok()) << render(sources_, module.error());
    module_ = *module;
  }

  // The value of an expression in which the names x0, x1, ... are the arrays.
  Result<Value> evaluate(const std::string& expression, const std::vector<Array>& arrays) {
    for (size_t i = 0; i < arrays.size(); ++i) module_->set("x" + std::to_string(i), Value(arrays[i]));
    DiagnosticList diagnostics;
    auto tree = syntax::parse(sources_, sources_.add("call.py", expression + "\n"), diagnostics);
    return interpreter_.evaluate(tree, *std::get<syntax::ExprStmt>(tree->body[0].node).value, *module_);
  }

  Array call(const std::string& expression, const std::vector<Array>& arrays) {
    auto value = evaluate(expression, arrays);
    if (!value.ok()) {
      ADD_FAILURE() << render(sources_, value.error());
      return nullptr;
    }
    return value->get_shared<ArrayObject>();
  }

  bool holds(const std::string& expression) {
    auto value = evaluate(expression, {});
    return value.ok() && value->if_bool() && *value->if_bool();
  }

  std::string failure(const std::string& expression, const std::vector<Array>& arrays) {
    auto value = evaluate(expression, arrays);
    return value.ok() ? "" : std::string(info(value.error().kind).name) + ": " + value.error().message;
  }

  SourceMap sources_;
  testing::ArrayHost host_;
  Interpreter interpreter_;
  std::shared_ptr<ModuleObject> module_;
  int staged_ = 0, launches_ = 0;
};

class Run : public ::testing::Test, protected LoadedModule {
 protected:
  explicit Run(runtime::KernelBackend& kernels = backend()) : LoadedModule(kernels) {}
};

inline void expect_near(const Array& actual, double tolerance, const std::function<double(int64_t)>& expected) {
  ASSERT_TRUE(actual);
  for (int64_t i = 0; i < actual->size(); ++i) ASSERT_NEAR(actual->at(i), expected(i), tolerance) << "at element " << i;
}

}  // namespace tilepilot::stage
