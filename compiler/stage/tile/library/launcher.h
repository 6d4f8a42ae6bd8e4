// A staged program on its way to the machine: compiled at its first call, then launched on the host's tensors. Outputs
// are allocated here and returned. Once it is compiled, several threads may run it.
#pragma once

#include <vector>

#include "compiler/stage/tile/kernel/context.h"

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
  bool is_compiled() const { return kernel_ != nullptr; }
  // The two halves of compiling, for hosts that let other threads run in between: `build` changes nothing.
  Result<std::shared_ptr<runtime::CompiledKernel>> build(Span span, DiagnosticList& warnings) const;
  void adopt(std::shared_ptr<runtime::CompiledKernel> kernel, const DiagnosticList& warnings);
  // Compiles those that are not compiled yet, side by side on the cores of this machine. A status each, in order.
  static std::vector<Status> compile_all(const std::vector<Launcher*>& launchers, Span span);

 private:
  // The arguments of one call.
  struct Call {
    std::vector<runtime::Argument> arguments;
    std::vector<Value> lent;  // in place of tensors that it leaves out
  };
  Status compile(Span span);
  Result<Call> bind_inputs(const std::vector<Value>& inputs, Span span) const;
  // Null if the value is none for the parameter.
  std::optional<runtime::Argument> as_argument(size_t parameter, const Value& value) const;
  Status lend_absent(Call& call, const std::vector<size_t>& absent, Span span) const;
  Result<Value> allocate_output(const Call& call, const ir::BufferData& buffer, Span span) const;
  Status launch(const Call& call, Span span) const;

  ContextRef context_;
  ir::Program program_;
  std::vector<size_t> outputs_;
  std::shared_ptr<runtime::CompiledKernel> kernel_;
};

// `out_idx` as parameter positions: an int, or a list of ints; negative ones count from the end. `invalid_jit` if one
// is out of range or not a tensor.
Result<std::vector<size_t>> output_positions(const Value& out_idx, const ir::Program& program, Span span);

}  // namespace tilepilot::stage
