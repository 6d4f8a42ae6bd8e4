#include "tests/emulator/harness.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tilepilot::emulator::testing {
namespace {

std::string with_lines(const std::string& text) {
  std::string numbered;
  int64_t line = 1;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    numbered += fmt::format("#line {} \"kernel.py\"\n{}\n", line++, text.substr(at, end - at));
    at = end + 1;
  }
  return numbered;
}

runtime::Toolchain& toolchain() {
  static runtime::Toolchain shared(toolchain_options({"", TILEPILOT_KERNEL_CACHE, {}}));
  return shared;
}

}  // namespace

int64_t KernelText::line_of(const std::string& name) const {
  const size_t at = text.find("// " + name + "\n");
  EXPECT_NE(at, std::string::npos) << name;
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(at, text.size())), '\n');
}

KernelText KernelText::with(const std::string& before, const std::string& after) const {
  KernelText changed;
  size_t at = 0;
  for (size_t found = 0; (found = text.find(before, at)) != std::string::npos; at = found + before.size())
    changed.text += text.substr(at, found - at) + after;
  EXPECT_GT(at, 0U) << before;
  changed.text += text.substr(at);
  return changed;
}

Report run_kernel(const KernelText& kernel, const Setting& setting, const Buffers& buffers) {
  DiagnosticList warnings;
  const auto code = compile(with_lines(kernel.text), {"main_0"}, toolchain(), warnings);
  if (!code.ok()) {
    ADD_FAILURE() << code.error().message << (code.error().notes.empty() ? "" : code.error().notes[0].message);
    return {};
  }
  const EmulatedLaunch launch{
      "main_0", setting.grid, {setting.threads, 1, 1}, setting.shared_bytes, setting.cooperative, setting.cluster};
  auto report = run(**code, launch, {buffers.given(), setting.scalars, setting.maps}, setting.options);
  if (report.ok()) return *std::move(report);
  ADD_FAILURE() << report.error().message;
  return {};
}

std::vector<std::string> told(const Report& report) {
  std::vector<std::string> all;
  for (const Defect& defect : report.defects)
    all.push_back(
        fmt::format("{}: {} ({}, {})", name_of(defect.kind), defect.message, defect.first.line, defect.second.line));
  return all;
}

// Of numbers that half precision holds.
uint16_t to_half_bits(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) == 0) return static_cast<uint16_t>(bits >> 16);
  const uint32_t exponent = (bits >> 23 & 255u) - 112u;
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | exponent << 10 | (bits >> 13 & 0x3ffu));
}

float from_half_bits(uint16_t bits) {
  if ((bits & 0x7fffu) == 0) return 0;
  const uint32_t wide =
      (bits & 0x8000u) << 16 | ((bits >> 10 & 31u) + 112u) << 23 | static_cast<uint32_t>(bits & 0x3ffu) << 13;
  float x = 0;
  std::memcpy(&x, &wide, 4);
  return x;
}

}  // namespace tilepilot::emulator::testing
