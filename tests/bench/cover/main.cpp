// How much of a model's patterns the retrieved programs show: bench_cover SEEDS GRAPHS [COUNT]
//
// GRAPHS holds exported references, a folder each (scripts/export_reference.py MODEL.py FOLDER --graph-only). For each
// graph COUNT programs (3) are chosen, first from the seeds alone, then from a corpus that also has an entry for every
// other graph, as a batch over the set leaves it; entries of the same graph are left out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "agent/generate/generate.h"
#include "retrieval/corpus.h"
#include "retrieval/patterns.h"
#include "retrieval/seeds.h"

namespace {

using namespace tilepilot;
using namespace tilepilot::retrieval;
namespace fs = std::filesystem;

constexpr double kSame = 1e-6;  // nearer than that is the same graph

template <class T>
T take(Result<T> result) {
  if (result.ok()) return *std::move(result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(3);
}

struct Graph {
  std::string name;
  Structure structure;
};

std::vector<Graph> read_graphs(const fs::path& folder) {
  std::vector<Graph> graphs;
  for (const auto& item : fs::directory_iterator(folder)) {
    const auto reference = eval::load_reference(item.path());
    if (reference.ok()) graphs.push_back({item.path().filename().string(), agent::structure_of(*reference)});
  }
  std::sort(graphs.begin(), graphs.end(), [](const Graph& a, const Graph& b) { return a.name < b.name; });
  return graphs;
}

void measure(const char* what, Corpus& corpus, const std::vector<Graph>& graphs, int count) {
  double sum = 0;
  int enough = 0;
  std::map<std::string, int> missing;
  for (const Graph& graph : graphs) {
    Query query{graph.structure};
    query.count = count;
    query.exclude_near = kSame;
    const Chosen chosen = take(choose_covering(corpus, query));
    sum += chosen.cover;
    enough += chosen.cover >= 0.8 ? 1 : 0;
    for (const std::string& pattern : chosen.uncovered) ++missing[pattern];
  }
  fmt::print("{}: {} programs cover {:.3f} of a graph's patterns on average of {} graphs; {} graphs reach 0.8\n", what,
             count, sum / static_cast<double>(graphs.size()), graphs.size(), enough);
  std::vector<std::pair<std::string, int>> most(missing.begin(), missing.end());
  std::sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (size_t i = 0; i < std::min<size_t>(12, most.size()); ++i)
    fmt::print("  no entry has `{}`, which {} graphs want\n", most[i].first, most[i].second);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_cover SEEDS GRAPHS [COUNT]\n");
    return 2;
  }
  const auto graphs = read_graphs(argv[2]);
  const int count = argc > 3 ? std::atoi(argv[3]) : 3;
  auto corpus = take(open_corpus(":memory:"));
  if (auto synced = sync_seeds(*corpus, argv[1]); !synced.ok()) {
    fmt::print(stderr, "{}\n", synced.error().message);
    return 3;
  }
  measure("seeds alone", *corpus, graphs, count);
  std::vector<Entry> entries;
  for (const Graph& graph : graphs) {
    Entry entry{.name = graph.name, .origin = "generated", .structure = graph.structure, .target = "cpu"};
    entry.source = fmt::format("number = {}\n", entries.size());
    entries.push_back(std::move(entry));
  }
  take(corpus->add_all(entries));
  measure("with the other graphs", *corpus, graphs, count);
  return 0;
}
