// The kernels of a library as they are found, each with a name of its own.
#pragma once

#include <map>

#include "compiler/diagnostics/result.h"
#include "compiler/export/c_names.h"
#include "compiler/export/interface.h"
#include "compiler/source/source.h"

namespace tilepilot::exporting {

class KernelList {
 public:
  explicit KernelList(const SourceMap& sources) : sources_(sources) {}

  // The number of the program's kernel; a program that is there already keeps its number. It is named after the
  // function of the file that makes it: `rms_norm`, rather than the `main` inside. `call` and `launched`, if they are
  // given, tell it from others of that name. Errors: those of function_of.
  Result<size_t> add(const ir::Program& program, const std::string& call = {}, Span launched = {});
  std::vector<Kernel> take() { return std::move(kernels_); }
  const std::vector<Kernel>& kernels() const { return kernels_; }

 private:
  const SourceMap& sources_;
  UniqueNames names_{{"run_model", "status_text", "last_error", "set_threads", "status"}};
  std::vector<Kernel> kernels_;
};

}  // namespace tilepilot::exporting
