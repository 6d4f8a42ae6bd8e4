// A batch as a report: text for a terminal, CSV and JSON for programs, one self-contained HTML page for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kernelbench/scores.h"

namespace tilepilot::kernelbench {

struct Report {
  Batch batch;
  std::optional<Batch> against;  // an earlier batch, for comparison
};

std::string report_text(const Report& report);
// A line for each problem, with a header; numbers as they are, texts quoted where they must be (RFC 4180).
std::string report_csv(const Report& report);
nlohmann::json report_json(const Report& report);

// A request to the language model: the last message that was sent, and what came back.
struct Talk {
  int attempt = 0;  // that was being written, from 0
  std::string asked, answered;
};

// What a page shows of a problem besides its row. `sources`: the programs of its attempts.
struct ProblemPage {
  std::vector<std::string> sources;
  std::vector<Talk> talks;
};
// `pages`: one for each problem of the batch, in order. The page loads nothing from anywhere.
std::string report_html(const Report& report, const std::vector<ProblemPage>& pages);

// Problems that both batches verified, with the ratio of their speed-ups (this over that), the worst first; then those
// that only one of them verified.
struct Change {
  Row now, then;
  double ratio() const { return now.verified() && then.verified() ? now.speedup / then.speedup : 0; }
};
std::vector<Change> changes_of(const Batch& batch, const Batch& against);

// What two batches do not have in common besides their results: options, versions, machine, the set of problems. A
// difference of their results may come from it.
struct Difference {
  std::string what;       // "the option `dtype`", "`gpu` of the environment", "the digest of the problems' files"
  std::string now, then;  // JSON, or a digest; empty: not said
};
std::vector<Difference> differences_of(const BatchHeader& batch, const BatchHeader& against);

}  // namespace tilepilot::kernelbench
