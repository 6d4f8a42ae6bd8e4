// Programs that others reported as compiled wrongly, not at all, or with a message that helped nobody: each has to give
// the right numbers here, through the CPU backend and through the reference interpreter, or an error that says why.
#pragma once

#include "tests/tile/checked_backend.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {

struct Report {
  int thread;           // its number upstream
  std::string name;     // what it is about
  std::string program;  // defines `kernel`
  std::vector<Array> inputs;
  std::function<double(const std::vector<Array>& inputs, int64_t index)> expected = nullptr;
  double tolerance = 0;
};

class Reported : public Run, public ::testing::WithParamInterface<Report> {
 protected:
  Reported() : Run(checked_backend()) {}
  void expect_result() {
    const Report& report = GetParam();
    load(report.program);
    if (HasFatalFailure()) return;
    std::string call_text = "kernel(";
    for (size_t i = 0; i < report.inputs.size(); ++i) call_text += (i ? ", x" : "x") + std::to_string(i);
    expect_near(call(call_text + ")", report.inputs), report.tolerance,
                [&](int64_t i) { return report.expected(report.inputs, i); });
  }
};

inline std::string report_name(const ::testing::TestParamInfo<Report>& info) {
  return info.param.name + "_" + std::to_string(info.param.thread);
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
