// What a batch comes to: KernelBench's fast_p and its means, quartiles, and what they hide. All speed-ups are ratios of
// medians over PyTorch's eager mode, or over the better mode of `torch.compile` where that was measured.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernelbench/batch_store.h"
#include "retrieval/neighbour.h"

namespace tilepilot::kernelbench {

// One problem as the report tells it. Numbers are 0 where they were not measured.
struct Row {
  int level = 0, id = 0;
  std::string name;
  bool done = false;
  Ending ending = Ending::not_judged;
  std::string reason;
  double speedup = 0, low = 0, high = 0;  // over eager, and its 95 % interval
  double compile_speedup = 0;             // over torch.compile
  double eager_us = 0, candidate_us = 0, compiled_us = 0;
  double roofline_us = 0;      // the least that the graph takes on the machine
  double headroom = 0;         // modelled eager over the roofline
  double generated_share = 0;  // of the time in generated kernels
  bool degenerate = false;     // a trivial answer passes
  bool shortcut = false;       // an exact algebraic identity removes work
  int attempts = 0;
  double seconds = 0, dollars = 0;
  int64_t run = 0;  // `tilepilot runs show RUN`
  // What of the corpus was nearest when the run began; nullopt: nothing was, or the run does not say
  // (`neighbour_known`).
  std::optional<retrieval::Neighbour> neighbour;
  bool neighbour_known = false;

  bool verified() const { return ending == Ending::verified; }
  double roofline_share() const { return candidate_us > 0 ? roofline_us / candidate_us : 0; }
};
std::vector<Row> rows_of(const Batch& batch);

enum class Baseline { eager, compile };

inline constexpr std::array<double, 5> kThresholds = {0, 0.8, 1, 1.5, 2};

// Of some of the rows. Failures and abstentions count as 1.0 in `mean_of_all`, and as no success in `fast`.
struct Scores {
  int problems = 0, verified = 0;
  // The share of all problems that are verified and faster than each of kThresholds (strictly, as KernelBench's
  // score.py has it).
  std::array<double, kThresholds.size()> fast{};
  double mean_of_all = 1;                                                // geometric means
  double mean_of_verified = 0;                                           // 0: none is verified
  double mean_of_faster = 0;                                             // of those verified and faster than 1
  double least = 0, first_quartile = 0, median = 0, third_quartile = 0;  // of the verified ones
  double seconds = 0, dollars = 0;
};
Scores score(const std::vector<Row>& rows, Baseline baseline = Baseline::eager);

// Of the verified rows that say it: how near the corpus was to their models.
struct Leakage {
  int verified = 0;    // all of them
  int known = 0;       // those that say it
  int same_graph = 0;  // an entry has the same graph
  int at_zero = 0;     // an entry is at distance 0, the ones above included
  int near = 0;        // an entry is nearer than retrieval::kNear, the ones above included
  double median = 1;   // of the distances; a model without a neighbour is at distance 1
};
Leakage leakage_of(const std::vector<Row>& rows);

// A selection of rows with its name, as reports list them: all, those done so far (if not all are), each level, without
// degenerate problems, without exact shortcuts.
struct Group {
  std::string name;
  std::vector<Row> rows;
};
std::vector<Group> groups_of(const std::vector<Row>& rows);

nlohmann::json to_json(const Row& row);
nlohmann::json to_json(const Scores& scores);
nlohmann::json to_json(const Leakage& leakage);

}  // namespace tilepilot::kernelbench
