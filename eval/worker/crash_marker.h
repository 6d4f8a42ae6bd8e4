// Where a candidate's process is, readable from the judge after the process died: one page of shared memory.
#pragma once

#include <atomic>
#include <cstring>
#include <string>

#include "compiler/stage/python/interpreter.h"
#include "eval/process/wire.h"

namespace tilepilot::eval {

struct CrashMarker {
  stage::StatementMarker at;  // the statement that runs
  char kernel[112] = {};      // the generated kernel that runs; empty: none
  // Spent on compiling kernels, in seconds, and since when one is being compiled, on monotonic_seconds()' clock; or 0.
  std::atomic<double> compiled = 0, compiling_since = 0;

  void enter_kernel(const std::string& name) {
    size_t count = std::min(name.size(), sizeof(kernel) - 1);
    std::memcpy(kernel, name.data(), count);
    kernel[count] = '\0';
  }
  void leave_kernel() { kernel[0] = '\0'; }
};

class CrashMarkerPage {
 public:
  CrashMarkerPage();                                   // a fresh one, for the judge
  explicit CrashMarkerPage(const Descriptor& handed);  // the judge's, in the candidate
  ~CrashMarkerPage();
  CrashMarkerPage(const CrashMarkerPage&) = delete;

  int descriptor() const { return file_.number(); }
  CrashMarker* operator->() const { return marker_; }
  CrashMarker* get() const { return marker_; }  // null if there was no memory

 private:
  Descriptor file_;
  CrashMarker* marker_ = nullptr;
};

}  // namespace tilepilot::eval
