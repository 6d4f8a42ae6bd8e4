// A program, as the text of its IR, in the emulator beside the interpreter.
#pragma once

#include <string>
#include <vector>

#include "compiler/targets/cuda/codegen.h"

namespace tilepilot::testing {

// `wrong`: what the emulator found, or the first element that differs; "" if there is nothing.
struct Outcome {
  std::string source, printed, expected_print, wrong;
};
// On small random values.
Outcome outcome(const std::string& text, targets::cuda::Architecture architecture);

// Fails the test if anything is wrong for one of these architectures. The source for the last one.
std::string expect_interpreted(const std::string& text,
                               const std::vector<targets::cuda::Architecture>& architectures = {
                                   targets::cuda::Architecture::sm_80, targets::cuda::Architecture::sm_90a});

}  // namespace tilepilot::testing
