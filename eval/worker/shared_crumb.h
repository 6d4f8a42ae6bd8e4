// Where a candidate's process is, readable from the judge after the process died: one page of shared memory.
#pragma once

#include <atomic>
#include <cstring>
#include <string>

#include "compiler/stage/python/interpreter.h"
#include "eval/process/wire.h"

namespace tilepilot::eval {

struct SharedCrumb {
  stage::Breadcrumb at;   // the statement that runs
  char kernel[112] = {};  // the generated kernel that runs; empty: none
  // Spent on compiling kernels, in seconds, and since when one is being compiled, on monotonic_seconds()' clock; or 0.
  std::atomic<double> compiled = 0, compiling_since = 0;

  void enter_kernel(const std::string& name) {
    size_t count = std::min(name.size(), sizeof(kernel) - 1);
    std::memcpy(kernel, name.data(), count);
    kernel[count] = '\0';
  }
  void leave_kernel() { kernel[0] = '\0'; }
};

class CrumbPage {
 public:
  CrumbPage();                                   // a fresh one, for the judge
  explicit CrumbPage(const Descriptor& handed);  // the judge's, in the candidate
  ~CrumbPage();
  CrumbPage(const CrumbPage&) = delete;

  int descriptor() const { return file_.number(); }
  SharedCrumb* operator->() const { return crumb_; }
  SharedCrumb* get() const { return crumb_; }  // null if there was no memory

 private:
  Descriptor file_;
  SharedCrumb* crumb_ = nullptr;
};

}  // namespace tilepilot::eval
