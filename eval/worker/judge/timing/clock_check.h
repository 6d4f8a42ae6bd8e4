// Holds the time that a candidate's process claims for its samples against what the judge and the kernel saw.
#pragma once

#include <string>
#include <vector>

namespace tilepilot::eval {

struct ClockView {
  double claimed = 0;  // seconds, by the candidate
  double judged = 0;   // by the judge, without the round trip and without waiting for a processor
  double busy = 0;     // the processors' time that its process took for the sample
  double after = 0;    // and after its answer, until it was asked for something else
};

// Why the claims cannot be; empty: they can.
std::string clock_complaint(const std::vector<ClockView>& samples, int threads);

}  // namespace tilepilot::eval
