// What searches of a large corpus take and find: bench_retrieval FOLDER [PROGRAMS [QUERIES [PROBES]]]
//
// Fills FOLDER/corpus.db with synthetic programs (what is there already stays), builds the index, and compares searches
// with the exact ones over the whole table. Recall@10: of the ten best scores of the table, how many the search has;
// programs of equal score stand for one another.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "retrieval/corpus.h"
#include "retrieval/database.h"
#include "retrieval/index/stored_index.h"
#include "tests/retrieval/synthetic_programs.h"

namespace {

using namespace tilepilot;
using namespace tilepilot::retrieval;
namespace fs = std::filesystem;

constexpr int kNearest = 10;
constexpr int64_t kTogether = 20'000;
constexpr double kEqual = 1e-6;  // scores closer than that are the same

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// That this thread has computed: what others do on the same cores is not in it.
double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

template <class T>
T take(Result<T> result) {
  if (result.ok()) return *std::move(result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(3);
}

void fill(const fs::path& file, int64_t programs) {
  IndexOptions none;
  none.flat_most = programs + 1;
  auto corpus = take(open_corpus(file, false, none));
  SyntheticPrograms synthetic(1);
  const double begin = now();
  int64_t added = 0;
  for (int64_t at = 0; at < programs; at += kTogether) {
    std::vector<Entry> entries;
    for (int64_t i = at; i < std::min(programs, at + kTogether); ++i) entries.push_back(synthetic.entry(i));
    added += take(corpus->add_all(entries));
  }
  fmt::print("database: {} programs added in {:.1f} s, {:.0f} MiB\n", added, now() - begin,
             static_cast<double>(fs::file_size(file)) / (1 << 20));
}

void measure(const fs::path& file, int queries, const IndexOptions& options) {
  double begin = now();
  auto corpus = take(open_corpus(file, false, options));
  SyntheticPrograms synthetic(2);
  take(corpus->search(synthetic.structure(), "", kNearest));
  fmt::print("opening and the first search: {:.1f} ms\n", 1e3 * (now() - begin));
  auto database = take(open_database(file, true));
  std::vector<double> times;
  std::vector<Query> asked;
  std::vector<std::vector<Hit>> answers;
  double computed = 0;
  for (int i = 0; i < queries; ++i) {
    asked.push_back({synthetic.structure()});
    asked.back().count = kNearest;
    begin = now();
    const double computed_before = processor_time();
    answers.push_back(take(corpus->search(asked.back())));
    computed += processor_time() - computed_before;
    times.push_back(now() - begin);
  }
  double found = 0, tied = 0, exact_s = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    begin = now();
    WeighedQuery exact_query;
    exact_query.structure = embed(asked[i].structure);
    const auto exact = exact_nearest(*database, exact_query, kNearest + 1);
    exact_s += now() - begin;
    const double worst = exact[std::min<size_t>(kNearest, exact.size()) - 1].score;
    const auto right = std::count_if(answers[i].begin(), answers[i].end(),
                                     [&](const Hit& hit) { return hit.score >= worst - kEqual; });
    found += static_cast<double>(right) / static_cast<double>(std::min<size_t>(kNearest, exact.size()));
    tied += exact.size() > kNearest && exact[kNearest].score > worst - kEqual ? 1 : 0;
  }
  std::sort(times.begin(), times.end());
  auto at = [&](double share) {
    return 1e3 * times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
  };
  fmt::print(
      "search: median {:.2f} ms, 95 % below {:.2f} ms, longest {:.2f} ms; on average {:.2f} ms of "
      "processor time; exact over the table: {:.0f} ms\n",
      at(0.5), at(0.95), at(1), 1e3 * computed / queries, 1e3 * exact_s / queries);
  fmt::print("recall@{}: {:.4f} of {} queries; {:.0f} % of them have an eleventh that is as good as the tenth\n",
             kNearest, found / queries, queries, 100 * tied / queries);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_retrieval FOLDER [PROGRAMS [QUERIES [PROBES]]]\n");
    return 2;
  }
  const fs::path file = fs::path(argv[1]) / "corpus.db";
  const int64_t programs = argc > 2 ? std::atoll(argv[2]) : 1'000'000;
  const int queries = argc > 3 ? std::atoi(argv[3]) : 200;
  IndexOptions options;
  options.probes = argc > 4 ? std::atoi(argv[4]) : 0;
  fs::create_directories(argv[1]);
  fill(file, programs);
  const double begin = now();
  const IndexState state = take(take(open_corpus(file, false, options))->update_index(/*anew*/ argc <= 4));
  fmt::print(
      "index: {}, {} programs with {} structures, {} clusters of which {} are looked at; built in {:.1f} s, {:.0f} MiB "
      "on disk\n",
      state.kind, state.entries, state.structures, state.clusters, state.probes, now() - begin,
      static_cast<double>(state.bytes) / (1 << 20));
  measure(file, queries, options);
  fmt::print("memory: {:.0f} MiB at most\n", peak_mib());
  return 0;
}
