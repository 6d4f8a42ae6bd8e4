// A staged program on its way to the machine: compiled at its first call, then launched on the host's tensors. Outputs
// are allocated here and returned.
#pragma once

#include <vector>

#include "compiler/stage/tile/context.h"

namespace tilepilot::stage {

class Launcher {
 public:
  // `outputs`: the parameters that the call returns, in that order.
  Launcher(ContextRef context, ir::Program program, std::vector<size_t> outputs);

  TileContext& context() const { return *context_; }
  const ir::Program& program() const { return program_; }
  const std::vector<size_t>& outputs() const { return outputs_; }
  bool is_output(size_t parameter) const;
  // The inputs of a call in their order: those given by position, then those given by name.
  Result<std::vector<Value>> arrange(const CallArgs& args) const;
  // Runs the program; `inputs` are the other parameters' values, in order.
  Result<Value> run(const std::vector<Value>& inputs, Span span);
  // The generated code.
  Result<std::string> source(Span span);
  // Compiles those that are not compiled yet, side by side on the cores of this machine. A status each, in order.
  static std::vector<Status> compile_all(const std::vector<Launcher*>& launchers, Span span);

 private:
  Status compile(Span span);
  Status bind_inputs(const std::vector<Value>& inputs, Span span);
  // Null if the value is none for the parameter.
  std::optional<runtime::Argument> as_argument(size_t parameter, const Value& value) const;
  Status lend_absent(const std::vector<size_t>& absent, Span span);
  Result<Value> allocate_output(const ir::BufferData& buffer, Span span);

  ContextRef context_;
  ir::Program program_;
  std::vector<size_t> outputs_;
  std::shared_ptr<runtime::CompiledKernel> kernel_;
  std::vector<runtime::Argument> arguments_;  // of the call in progress
  std::vector<Value> lent_;                   // in place of tensors that it leaves out
};

// `out_idx` as parameter positions: an int, or a list of ints; negative ones count from the end. `invalid_jit` if one
// is out of range or not a tensor.
Result<std::vector<size_t>> output_positions(const Value& out_idx, const ir::Program& program, Span span);

}  // namespace tilepilot::stage
