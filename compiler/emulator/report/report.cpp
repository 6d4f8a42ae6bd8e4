#include "compiler/emulator/report/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilepilot::emulator {
namespace {

constexpr size_t kMostCostlyLines = 10;

std::string instructions_of(const Counters& counters) {
  const std::pair<int64_t, const char*> classes[] = {{counters.mma, "mma"},
                                                     {counters.wgmma, "wgmma"},
                                                     {counters.ldmatrix, "ldmatrix"},
                                                     {counters.stmatrix, "stmatrix"},
                                                     {counters.shared_reads.instructions, "shared loads"},
                                                     {counters.shared_writes.instructions, "shared stores"},
                                                     {counters.global_reads.instructions, "global loads"},
                                                     {counters.global_writes.instructions, "global stores"},
                                                     {counters.async_copies, "cp.async"},
                                                     {counters.bulk_copies, "bulk copies"},
                                                     {counters.atomics, "atomics"},
                                                     {counters.shuffles, "shuffles"},
                                                     {counters.votes, "votes"},
                                                     {counters.warp_syncs, "warp barriers"},
                                                     {counters.block_syncs, "block barriers"}};
  std::string text;
  for (const auto& [count, name] : classes)
    if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text.empty() ? "none" : text;
}

// Lines with something to lose, the worst first.
template <class Lost>
std::vector<std::pair<SourceLine, Traffic>> worst(const std::map<SourceLine, Traffic>& lines, const Lost& lost) {
  std::vector<std::pair<SourceLine, Traffic>> found;
  for (const auto& [line, traffic] : lines)
    if (lost(traffic) > 0) found.emplace_back(line, traffic);
  std::stable_sort(found.begin(), found.end(),
                   [&](const auto& a, const auto& b) { return lost(a.second) > lost(b.second); });
  if (found.size() > kMostCostlyLines) found.resize(kMostCostlyLines);
  return found;
}

// "96 fp32, 32 comparison"; with `warps`: "96 fp32 (3), ...".
std::string operations_of(const targets::c::Operations& threads, const targets::c::Operations* warps) {
  std::string text;
  for (size_t k = 0; k < targets::c::kOperationClasses; ++k) {
    const auto operation = static_cast<targets::c::Operation>(k);
    if (threads[operation] == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", threads[operation], name_of(operation));
    if (warps != nullptr) text += fmt::format(" ({})", (*warps)[operation]);
  }
  return text;
}

std::string operations_of(const Counters& counters) {
  const std::string all = operations_of(counters.thread_operations, &counters.warp_operations);
  if (all.empty()) return "";
  std::string text = fmt::format("  operations of threads (of warps): {}\n", all);
  std::vector<std::pair<SourceLine, targets::c::Operations>> lines(counters.operation_lines.begin(),
                                                                   counters.operation_lines.end());
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.second.total() > b.second.total(); });
  if (lines.size() > kMostCostlyLines) lines.resize(kMostCostlyLines);
  for (const auto& [line, operations] : lines)
    text += fmt::format("  {}: {}\n", spelled(line), operations_of(operations, nullptr));
  return text;
}

}  // namespace

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

Counters& Counters::operator+=(const Counters& other) {
  for (Traffic Counters::*traffic :
       {&Counters::shared_reads, &Counters::shared_writes, &Counters::global_reads, &Counters::global_writes})
    this->*traffic += other.*traffic;
  for (int64_t Counters::*count : {&Counters::mma, &Counters::ldmatrix, &Counters::stmatrix, &Counters::async_copies,
                                   &Counters::atomics, &Counters::shuffles, &Counters::votes, &Counters::wgmma,
                                   &Counters::bulk_copies, &Counters::warp_syncs, &Counters::block_syncs})
    this->*count += other.*count;
  for (const auto& [line, traffic] : other.shared_lines) shared_lines[line] += traffic;
  for (const auto& [line, traffic] : other.global_lines) global_lines[line] += traffic;
  thread_operations.add(other.thread_operations);
  warp_operations.add(other.warp_operations);
  for (const auto& [line, operations] : other.operation_lines) operation_lines[line].add(operations);
  return *this;
}

void CostBook::add(const std::string& program, const std::string& identity, const Counters& counters) {
  const auto [place, is_new] = places_.try_emplace({program, identity}, costs_.size());
  if (is_new) {
    const auto same_name = [&](const Cost& cost) { return cost.program == program; };
    costs_.push_back({program, 1 + std::count_if(costs_.begin(), costs_.end(), same_name), 0, {}});
  }
  Cost& cost = costs_[place->second];
  ++cost.launches;
  cost.counters += counters;
}

std::string to_text(const Cost& cost) {
  const Counters& c = cost.counters;
  Traffic shared = c.shared_reads;
  shared += c.shared_writes;
  const std::string number = cost.number == 1 ? "" : fmt::format(" (program {} of this name)", cost.number);
  std::string text = fmt::format("`{}`{}, {} {}\n  instructions of warps: {}\n", cost.program, number, cost.launches,
                                 cost.launches == 1 ? "launch" : "launches", instructions_of(c));
  text += fmt::format("  shared memory: {} bytes read, {} written; {} wavefronts, {} of them for bank conflicts\n",
                      c.shared_reads.bytes, c.shared_writes.bytes, shared.shared_wavefronts, shared.bank_conflicts);
  text += fmt::format("  global memory: {} bytes read in {} sectors ({} would do), {} written in {} ({} would do)\n",
                      c.global_reads.bytes, c.global_reads.global_sectors, c.global_reads.least_sectors,
                      c.global_writes.bytes, c.global_writes.global_sectors, c.global_writes.least_sectors);
  for (const auto& [line, traffic] : worst(c.shared_lines, [](const Traffic& t) { return t.bank_conflicts; }))
    text += fmt::format("  {}: {} of {} wavefronts for bank conflicts\n", spelled(line), traffic.bank_conflicts,
                        traffic.shared_wavefronts);
  for (const auto& [line, traffic] :
       worst(c.global_lines, [](const Traffic& t) { return t.global_sectors - t.least_sectors; }))
    text += fmt::format("  {}: {} sectors where {} would do\n", spelled(line), traffic.global_sectors,
                        traffic.least_sectors);
  return text + operations_of(c);
}

}  // namespace tilepilot::emulator
