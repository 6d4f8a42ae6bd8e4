// What the process of a script says when it faults: the kernel that ran and the line that called it, or else the
// statement. A kernel for the processor is native code of this process, and memory that it names by an address is
// checked by nobody. A handler of signals must not allocate, so a kernel's message is written before its launch.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "compiler/runtime/kernel.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::eval {

class CrashReport {
 public:
  // For as long as it lives, a fault writes its message to standard error and ends the process with exit code 1. One
  // lives at a time.
  explicit CrashReport(const SourceMap& sources);
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;

  // Where the interpreter keeps the statement that runs.
  stage::StatementMarker* statement() { return &statement_; }
  // Kernels of the result say when they run; `hint` tells what helps. The report outlives them.
  std::unique_ptr<runtime::KernelBackend> watch(std::unique_ptr<runtime::KernelBackend> backend, std::string hint);

  // The messages of the kernel that runs, one for each fault; null: none runs. Gives those before.
  const std::string* enter(const std::string* messages) { return kernel_messages_.exchange(messages); }
  const SourceMap& sources() const { return sources_; }

 private:
  struct Handlers;

  const SourceMap& sources_;
  stage::StatementMarker statement_;
  std::atomic<const std::string*> kernel_messages_ = nullptr;
  std::unique_ptr<Handlers> before_;

  void tell(size_t fault) const;
  static void on_fault(int signal);
};

}  // namespace tilepilot::eval
