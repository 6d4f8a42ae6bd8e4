// What one launch of generated code costs, by the emulator's counts.
#pragma once

#include <string>

#include "tests/cuda/emulated.h"

namespace tilepilot::testing {

// Of one launch whose results are the interpreter's.
struct Launched {
  emulator::Counters counters;
  std::string source, explanation;

  int64_t sectors() const { return counters.global_reads.global_sectors + counters.global_writes.global_sectors; }
  int64_t wavefronts() const {
    return counters.shared_reads.shared_wavefronts + counters.shared_writes.shared_wavefronts;
  }
  int64_t accesses() const { return counters.global_reads.instructions + counters.global_writes.instructions; }
};

// Of a program's text. Fails the test where the results are others.
Launched launched(const std::string& text, targets::gpu::Architecture architecture = targets::gpu::Architecture::sm_80);

}  // namespace tilepilot::testing
