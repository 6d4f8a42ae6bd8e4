// What tuning has measured, kept between runs beside the compiled kernels: a text for each search. Files appear by
// rename, so readers never see half of one; of two writers at once the later wins, and the other one's measurements
// are made again one day.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime {

class TuningCache {
 public:
  // An empty folder: nothing is kept.
  explicit TuningCache(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}

  // `key` is everything that the measurements depend on, as text of any length.
  std::optional<std::string> find(const std::string& key) const;
  // Errors: cache_unwritable.
  Status keep(const std::string& key, const std::string& text) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tilepilot::runtime
