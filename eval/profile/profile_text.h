// A profile in plain words, for people.
#pragma once

#include <string>

#include "eval/profile/profile.h"

namespace tilepilot::eval {

// Several lines without the last line's end: what a call takes, then its parts, the dearest first, each with a sentence
// on what bounds it and where to look; then eager's operators.
std::string profile_text(const Profile& profile);

// Of the dearest kernel: "`softmax`, line 12: 61 % of a call, memory-bound at 45 % of the roofline". Empty: there is
// none.
std::string top_kernel_text(const Profile& profile);

// What the compiler chose for a kernel, and what kept it from something faster, by line; empty: nothing is known.
std::string choices_text(const KernelProfile& kernel);

// "`softmax`, line 12: 2 launches a call; 16.8 MB and 2.1 GFLOP a launch; has TMA, wgmma", a line.
std::string counts_text(const KernelProfile& kernel);

// Whether others took the processor from some of a kernel's calls: its faster calls say what it takes.
bool was_disturbed(const KernelProfile& kernel);
// Of a kernel: "memory-bound at 45 % of the roofline"; empty: the machine's rates are not known.
std::string bound_text(const KernelProfile& kernel);
// "16.8 MB and 2.1 GFLOP a launch: 1.2 TB/s and 150 GFLOP/s".
std::string rates_text(const KernelProfile& kernel);
// What it takes of the machine: blocks, threads, registers, shared memory, instructions, on lines of their own.
std::vector<std::string> use_lines(const KernelProfile& kernel);
// What is worth a look, the likeliest cause first.
std::vector<std::string> hints_of(const KernelProfile& kernel, const Profile& profile);

// "12.3 us", "1.20 ms": four digits at most.
std::string time_text(double us);

}  // namespace tilepilot::eval
