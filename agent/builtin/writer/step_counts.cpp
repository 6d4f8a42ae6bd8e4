#include "agent/builtin/writer/step_counts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tilepilot::agent::builtin {

StepCounts::StepCounts(const TilePlan& tiles, const LoopIndices& indices) : tiles_(tiles), indices_(indices) {
  for (auto& loop : indices.serial()) counts_[loop.loop] = loop.count;
}

bool StepCounts::is_ragged(int loop) const {
  const std::vector<int> ragged = tiles_.ragged();
  return std::count(ragged.begin(), ragged.end(), loop) > 0;
}

int StepCounts::inner_ragged() const {
  const auto& serial = indices_.serial();
  const auto found = std::find_if(serial.begin() + 1, serial.end(), [&](auto& loop) { return is_ragged(loop.loop); });
  return found == serial.end() ? -1 : found->loop;
}

std::string StepCounts::in_last_step(int loop) const {
  return fmt::format("{} < {}", indices_.index_at(loop, "(" + counts_.at(loop) + " - 1)"), tiles_.loop(loop).size);
}

std::string StepCounts::taken(bool without_last) const {
  std::string steps;
  for (auto& loop : indices_.serial()) {
    const std::string& count = counts_.at(loop.loop);
    const std::string outer = steps.size() > 1 ? "(" + steps + ")" : steps;
    const bool is_shorter = without_last && is_ragged(loop.loop);
    steps = steps.empty()
                ? loop.variable
                : fmt::format("{} * {} + {}", outer, is_shorter ? "(" + count + " - 1)" : count, loop.variable);
  }
  return steps + " + 1";
}

std::string StepCounts::in_all() const {
  std::vector<std::string> factors;
  for (auto& loop : indices_.serial()) {
    const std::string& count = counts_.at(loop.loop);
    factors.push_back(is_ragged(loop.loop)
                          ? fmt::format("T.if_then_else({}, {}, {} - 1)", in_last_step(loop.loop), count, count)
                          : count);
  }
  return fmt::format("{}", fmt::join(factors, " * "));
}

}  // namespace tilepilot::agent::builtin
