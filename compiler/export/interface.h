// What an exported library offers, as plain data: its functions, where their kernels come from, and what a whole model
// launches. The generators of source, header, examples and documentation all read this.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::exporting {

// A parameter of a C function.
struct Argument {
  enum class Kind { tensor, number, extent };
  Kind kind = Kind::tensor;
  std::string name;  // in C
  ir::DType type;
  std::vector<ir::Expr> shape = {}, strides = {};  // of a tensor; no strides: contiguous
  bool is_read = false, is_written = false;        // a tensor
  ir::Var variable = nullptr;                      // of a number or an extent
};

struct Function {
  std::string name;     // in C, without the library's name in front
  std::string comment;  // where it comes from, one line
  std::vector<Argument> arguments;
};

struct Kernel {
  ir::Program program;
  Function function;
};

// A launch of the whole model: what stands for each argument of the kernel's function, extents included.
struct ModelLaunch {
  struct Memory {
    bool is_workspace = false;
    size_t argument = 0;  // of the model's function, unless it is the workspace
    int64_t offset = 0;   // bytes
  };
  using Value = std::variant<Memory, int64_t, double>;
  size_t kernel = 0;
  std::vector<Value> values;
  int line = 0;  // of the program
};

struct Model {
  Function function;
  std::vector<ModelLaunch> launches;
  int64_t buffer_bytes = 0;  // of what one kernel hands to another
};

struct Library {
  std::string name;    // of the library, a C identifier
  std::string file;    // that it was made of, without its folder
  std::string target;  // "cpu", "cuda:sm_80" or "cuda:sm_90a"
  std::vector<Kernel> kernels;
  std::optional<Model> model = {};
  std::vector<std::string> notes = {};  // what was left out, and why

  bool is_gpu() const { return target != "cpu"; }
};

}  // namespace tilepilot::exporting
