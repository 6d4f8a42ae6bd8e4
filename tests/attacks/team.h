// The catalogue and the red team as the tests use them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/red_team.h"

namespace tilepilot::agent {

inline const std::vector<Attack>& catalogue() {
  static const std::vector<Attack> attacks = [] {
    auto read = read_catalogue(std::filesystem::path(TILEPILOT_SOURCE_DIR) / "tests/attacks");
    EXPECT_TRUE(read.ok()) << read.error().message;
    return read.ok() ? *std::move(read) : std::vector<Attack>();
  }();
  return attacks;
}

inline const Attack& attack_called(const std::string& name) {
  for (const Attack& attack : catalogue())
    if (attack.name == name) return attack;
  ADD_FAILURE() << "no attack is called " << name;
  return catalogue().front();
}

// Enough to catch what is to be caught: the models are small.
inline RedTeamOptions red_team_options() {
  const std::filesystem::path root = TILEPILOT_SOURCE_DIR, build = TILEPILOT_BINARY_DIR;
  RedTeamOptions options;
  options.judge.worker = build / "tilepilot-worker";
  options.judge.python = TILEPILOT_PYTHON;
  options.judge.trials = 4;
  options.judge.timing_samples = 9;
  options.judge.timing_budget_s = 0.3;
  options.judge.time_limit_s = 20;
  options.judge.memory_limit_bytes = int64_t{2} << 30;
  options.judge.cache = TILEPILOT_KERNEL_CACHE;
  options.catalogue = root / "tests/attacks";
  options.exporter = root / "scripts/export_reference.py";
  options.many = root / "tests/torch/export_models.py";
  options.references = build / "exported/attacks";
  return options;
}

}  // namespace tilepilot::agent
