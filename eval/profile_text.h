// A profile in plain words, for people.
#pragma once

#include <string>

#include "eval/profile.h"

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

// "12.3 us", "1.20 ms": four digits at most.
std::string time_text(double us);

}  // namespace tilepilot::eval
