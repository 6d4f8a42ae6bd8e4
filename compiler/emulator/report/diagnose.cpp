#include "compiler/emulator/report/diagnose.h"

#include <fmt/format.h>

#include <cassert>

namespace tilepilot::emulator {
namespace {

std::string sentence(const Defect& defect) {
  std::string text = fmt::format("{} at {}: {}", name_of(defect.kind), spelled(defect.second), defect.message);
  text += fmt::format(" (block {}, {}, {}", defect.block[0], defect.block[1], defect.block[2]);
  return text + (defect.count > 1 ? fmt::format("; {} times)", defect.count) : ")");
}

}  // namespace

Error error_of(const Report& report, const std::string& kernel, Span call) {
  assert(!report.defects.empty());
  Error error = make_error(DiagnosticKind::emulated_defect, call,
                           fmt::format("`{}` is wrong: {}", kernel, sentence(report.defects.front())));
  for (size_t k = 1; k < report.defects.size(); ++k) error->note({}, sentence(report.defects[k]));
  if (report.left_out > 0) error->note({}, fmt::format("{} more are left out", report.left_out));
  return error;
}

}  // namespace tilepilot::emulator
