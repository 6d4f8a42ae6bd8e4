// A program, as the text of its IR, in the emulator beside the interpreter.
#pragma once

#include <string>
#include <vector>

#include "compiler/targets/cuda/codegen.h"
#include "tests/cuda/emulated.h"
#include "tests/ir/random_arguments.h"

namespace tilepilot::testing {

// `wrong`: what the emulator found, or the first element that differs; "" if there is nothing.
struct Outcome {
  std::string source, printed, expected_print, wrong;
};
// On small random values.
Outcome outcome(const std::string& text, targets::gpu::Architecture architecture);

// What the compiler says of its choices (`--explain`) for a program as text.
std::string explained(const std::string& text,
                      targets::gpu::Architecture architecture = targets::gpu::Architecture::sm_90a);

// Of random arguments: whole numbers from -2 to 2 in the place of all floats, so that sums of a hundred products of
// them are exact in float16, too.
void make_whole(const ir::testing::RandomArguments& arguments);

// Runs a program of a compiled batch on small random values. Fails the test if the emulator finds anything wrong with
// it, or the results are not those that the interpreter has of `reference`: that program, or one that takes the same
// arguments. `name`: of the program, for the message.
void expect_agreement(EmulatedBatch& batch, size_t number, const ir::Program& reference, const std::string& name = {});

// Fails the test if anything is wrong for one of these architectures. The source for the last one.
std::string expect_interpreted(const std::string& text,
                               const std::vector<targets::gpu::Architecture>& architectures = {
                                   targets::gpu::Architecture::sm_80, targets::gpu::Architecture::sm_90a});

}  // namespace tilepilot::testing
