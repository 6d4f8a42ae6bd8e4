#include "compiler/emulator/report.h"

#include <fmt/format.h>

namespace tilepilot::emulator {

std::string_view name_of(DefectKind kind) {
  switch (kind) {
    case DefectKind::data_race:
      return "data race";
    case DefectKind::pending_copy:
      return "copy not waited for";
    case DefectKind::missing_fence:
      return "missing fence";
    case DefectKind::uninitialised_read:
      return "uninitialised read";
    case DefectKind::out_of_bounds:
      return "out of bounds";
    case DefectKind::misaligned:
      return "misaligned";
    case DefectKind::deadlock:
      return "deadlock";
    case DefectKind::divergence:
      return "divergence";
    case DefectKind::barrier_misuse:
      return "barrier misuse";
    case DefectKind::failed_check:
      return "failed check";
    case DefectKind::unsupported:
      return "unsupported";
  }
  return "";
}

std::string spelled(const SourceLine& line) {
  if (line.line == 0) return "an unknown line";
  return line.file.empty() ? fmt::format("line {}", line.line) : fmt::format("{}:{}", line.file, line.line);
}

Traffic& Traffic::operator+=(const Traffic& other) {
  instructions += other.instructions;
  bytes += other.bytes;
  shared_wavefronts += other.shared_wavefronts;
  bank_conflicts += other.bank_conflicts;
  global_sectors += other.global_sectors;
  least_sectors += other.least_sectors;
  return *this;
}

}  // namespace tilepilot::emulator
