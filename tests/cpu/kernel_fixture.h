// Compiling programs written in the IR's text form, and running them on plain arrays.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/interpret/machine.h"
#include "compiler/ir/text/text.h"
#include "compiler/runtime/kernel.h"

namespace tilepilot::testing {

// A tensor that owns its memory, initialised to bytes 0.
struct Array {
  ir::DType type;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  Array(ir::DType element, std::vector<int64_t> extents);
  int64_t size() const;
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  runtime::TensorView view();
};

// The program; fails the test if the text has errors.
ir::Program parse(const std::string& text);

runtime::KernelBackend& backend();

std::shared_ptr<runtime::CompiledKernel> compile(const ir::Program& program);
// Compiles and runs on two threads; fails the test on any error.
void run(const ir::Program& program, const std::vector<runtime::Argument>& arguments);

// The same arguments for the interpreter, and the other way round.
std::vector<interpret::Argument> to_interpret(const std::vector<runtime::Argument>& arguments);
std::vector<runtime::Argument> to_launch(const std::vector<interpret::Argument>& arguments);

// Deterministic values in [-2, 2) for floating types, small integers for others.
void randomize(Array& array, uint32_t seed);

std::string render(const Diagnostic& diagnostic);

// Runs a program on small whole numbers: every sum is exact, and results must equal the interpreter's to the last bit.
void expect_interpreted_result(const std::string& text, const std::vector<int64_t>& scalars);

}  // namespace tilepilot::testing
