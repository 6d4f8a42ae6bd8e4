// Programs that others reported as compiled wrongly, not at all, or with a message that helped nobody, as data: each
// has to give the right numbers here, on every target, or an error that says why.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/tile/array_host.h"

namespace tilepilot::stage {

using testing::Array;

struct Report {
  int thread;           // its number upstream
  std::string name;     // what it is about
  std::string program;  // defines `kernel`
  std::vector<Array> inputs;
  std::function<double(const std::vector<Array>& inputs, int64_t index)> expected = nullptr;
  double tolerance = 0;

  // What calls it, with the inputs as x0, x1, ...
  std::string call() const {
    std::string text = "kernel(";
    for (size_t i = 0; i < inputs.size(); ++i) text += (i ? ", x" : "x") + std::to_string(i);
    return text + ")";
  }
};

std::vector<Report> reports_of_copies();     // parallel loops, casts, integers and sizes known at run time
std::vector<Report> reports_of_operators();  // gemms, reductions, scans
std::vector<Report> reports_of_order();      // what copies that run ahead may not overtake
std::vector<Report> reports_of_pipelines();  // software-pipelined GEMMs, TMA, warp roles
std::vector<Report> reports_of_threads();    // what threads exchange without barriers of the program's own
std::vector<Report> reports_of_values();     // loops with a start, values outside tensors, small types

inline std::vector<Report> joined(const std::vector<std::vector<Report>>& groups) {
  std::vector<Report> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

// Element i is i.
inline Array counting(ir::DType type, std::vector<int64_t> shape) {
  return testing::make_array(type, std::move(shape), [](int64_t i) { return static_cast<double>(i); });
}
// Small integers, whose sums are exact in any order and type.
inline Array small_integers(ir::DType type, std::vector<int64_t> shape, int64_t seed = 1) {
  return testing::make_array(type, std::move(shape),
                             [seed](int64_t i) { return static_cast<double>((i * 7 + seed * 5 + i / 3) % 5 - 2); });
}

}  // namespace tilepilot::stage
