// What a candidate's process writes to its standard streams: a pipe's other end, from which so much comes through to
// ours, escaped, and the rest is dropped and counted.
#pragma once

#include <cstddef>
#include <thread>

#include "eval/process/wire.h"

namespace tilepilot::eval {

class OutputTap {
 public:
  static constexpr size_t kKept = size_t{64} << 10;

  // `into`: a descriptor that outlives this.
  explicit OutputTap(int into);
  // Takes what is still there.
  ~OutputTap();
  OutputTap(const OutputTap&) = delete;

  // For the process; closed here once it has it.
  int write_end() const { return write_end_.number(); }
  void close_write_end() { Descriptor closed = std::move(write_end_); }

 private:
  Descriptor read_end_, write_end_, stop_read_, stop_write_;
  int into_;
  std::thread thread_;

  void carry();
};

}  // namespace tilepilot::eval
