// A fuzz target: what one input has to survive. Each executable links one definition, either with libFuzzer (CMake
// option TILEPILOT_FUZZ) or with replay.cpp, which runs a corpus and cheap mutations of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tilepilot::fuzz {

// Pieces of the input language, which mutations put in.
extern const std::vector<std::string> kWords;

// A broken promise of ours: the input that shows it is a finding.
inline void require(bool holds, const char* promise, const std::string& shown = {}) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n%s\n", promise, shown.c_str());
  std::abort();
}

}  // namespace tilepilot::fuzz
