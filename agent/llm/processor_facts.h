// Caches and cores of this machine's processor, as Linux describes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tilepilot::agent {

struct DataCache {
  int level = 0;
  int64_t bytes = 0;
  int threads = 1;  // that share it
};

struct ProcessorFacts {
  std::vector<DataCache> caches;  // of one thread, the nearest first; empty: not known
  int cores = 0;                  // 0: not known
};
ProcessorFacts processor_facts(const std::filesystem::path& folder = "/sys/devices/system/cpu");

// ", 48 KB of L1 for each thread, 32 MB of L3 for 16 threads"; empty: not known.
std::string caches_text(const ProcessorFacts& facts);

}  // namespace tilepilot::agent
