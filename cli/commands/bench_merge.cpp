// tilepilot bench merge: databases of several machines become one.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/flags/bench_flags.h"
#include "kernelbench/merge.h"

namespace tilepilot::cli {
namespace {

using namespace kernelbench;
using nlohmann::json;

constexpr size_t kMostDifferences = 20;  // that the text names one by one

json to_json(const MergeResult& result) {
  json object = {{"ok", true},
                 {"runs", result.runs},
                 {"corpus_entries", result.entries},
                 {"batches", json::array()},
                 {"differences", json::array()}};
  for (const MergedBatch& batch : result.batches)
    object["batches"].push_back({{"from", batch.from.string()},
                                 {"was", batch.was},
                                 {"batch", batch.batch},
                                 {"new", batch.begun},
                                 {"problems_taken", batch.taken}});
  for (const MergeDifference& difference : result.differences)
    object["differences"].push_back({{"batch", difference.batch},
                                     {"problem", difference.problem},
                                     {"kept", difference.kept},
                                     {"left", difference.left},
                                     {"from", difference.from.string()}});
  return object;
}

void tell(const Session& session, const MergeResult& result) {
  for (const MergedBatch& batch : result.batches)
    session.answer(fmt::format("{}: batch {} -> batch {}{}, {} results taken", batch.from.string(), batch.was,
                               batch.batch, batch.begun ? " (new)" : "", batch.taken));
  session.answer(fmt::format("{}: {} runs and {} programs of the corpus are new", session.store_file().string(),
                             result.runs, result.entries));
  if (result.differences.empty()) return;
  session.answer(fmt::format("{} problems were judged twice, with different results; what was begun first is kept:",
                             result.differences.size()));
  for (size_t i = 0; i < std::min(result.differences.size(), kMostDifferences); ++i) {
    const MergeDifference& each = result.differences[i];
    session.answer(fmt::format("  batch {}, {}: {}; left: {}", each.batch, each.problem, each.kept, each.left));
  }
  if (result.differences.size() > kMostDifferences)
    session.answer(fmt::format("  and {} more (`--json` has all)", result.differences.size() - kMostDifferences));
}

int run_merge(Session& session, const std::vector<std::string>& files) {
  auto result = merge_databases({files.begin(), files.end()}, session.store_file(),
                                [&session](const std::string& line) { session.progress(line); });
  if (!result) return session.fail(result.error());
  tell(session, *result);
  session.finish(to_json(*result));
  return kDone;
}

}  // namespace

void add_bench_merge(CLI::App& bench, Session& session) {
  auto files = std::make_shared<std::vector<std::string>>();
  auto* command = bench.add_subcommand("merge", "Join the databases of several machines in the one of `--store`");
  command->add_option("databases", *files, "Databases whose batches, runs and corpus are added; they stay as they are")
      ->type_name("FILE")
      ->required();
  command->footer("Example:\n  tilepilot bench merge batch/task-*.db --store batch/all.db");
  command->callback([&session, files] { session.run = [&session, files] { return run_merge(session, *files); }; });
}

}  // namespace tilepilot::cli
