// The index gives what the table has: approximately where it is large, and whatever was killed meanwhile.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <csignal>
#include <random>
#include <set>
#include <thread>

#include "retrieval/database.h"
#include "retrieval/index/embedding.h"
#include "retrieval/index/sparse_vector.h"
#include "retrieval/index/stored_index.h"
#include "tests/retrieval/corpus_fixture.h"
#include "tests/retrieval/synthetic_programs.h"

namespace tilepilot::retrieval {
namespace {

namespace fs = std::filesystem;
constexpr double kEqualScores = 1e-6;

class IndexTest : public CorpusFolder {
 protected:
  static void fill(Corpus& corpus, int64_t first, int64_t count) {
    SyntheticPrograms synthetic(static_cast<uint32_t>(first) + 1);
    std::vector<Entry> entries;
    for (int64_t i = 0; i < count; ++i) entries.push_back(synthetic.entry(first + i));
    ASSERT_EQ(*corpus.add_all(entries), count);
  }

  // Of the ten best scores of the table, the share that searches for so many have; programs of one score stand for one
  // another. A search for all compares all that the index knows exactly.
  double recall(Corpus& corpus, int queries, int64_t count = 10) const {
    auto database = *open_database(file(), /*read_only*/ true);
    SyntheticPrograms synthetic(77);
    double found = 0;
    for (int i = 0; i < queries; ++i) {
      Query query{synthetic.structure()};
      query.count = static_cast<int>(count);
      WeighedQuery weighed;
      weighed.structure = embed(query.structure);
      const auto exact = exact_nearest(*database, weighed, 10);
      const auto hits = *corpus.search(query);
      const auto right = std::count_if(hits.begin(), hits.end(),
                                       [&](const Hit& hit) { return hit.score >= exact.back().score - kEqualScores; });
      found += std::min(1.0, static_cast<double>(right) / static_cast<double>(exact.size()));
    }
    return found / queries;
  }
};

TEST_F(IndexTest, ChoosesItselfWhatKindItIs) {
  IndexOptions options;
  options.flat_most = 200;
  auto corpus = open(file(), options);
  fill(*corpus, 0, 200);
  EXPECT_EQ(corpus->update_index(false)->kind, "flat");
  EXPECT_FALSE(fs::exists(file("corpus.db.index")));
  EXPECT_EQ(recall(*corpus, 20), 1);
  fill(*corpus, 200, 200);
  ASSERT_TRUE(corpus->search(SyntheticPrograms(1).structure(), "", 5).ok());
  const IndexState state = *corpus->update_index(false);
  EXPECT_EQ(state.kind, "ivf");
  EXPECT_EQ(state.entries, 400);
  EXPECT_LT(state.structures, 400);
  EXPECT_EQ(state.tail, 0);
  EXPECT_TRUE(fs::exists(file("corpus.db.index")));
  // What comes later is found at once, and joins the file when there is much of it.
  ASSERT_TRUE(*corpus->add(entry("new", {"conv2d", "logsumexp", "triu", "conv2d"})));
  const auto hits = *corpus->search(chain({"conv2d", "logsumexp", "triu", "conv2d"}), "", 1);
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].entry.name, "new");
  EXPECT_EQ(corpus->update_index(false)->tail, 0);
}

// The small version of tests/bench/retrieval.
TEST_F(IndexTest, FindsTheNearestOfTwentyThousand) {
  IndexOptions options;
  options.flat_most = 5'000;
  auto corpus = open(file(), options);
  fill(*corpus, 0, 20'000);
  EXPECT_GE(recall(*corpus, 50), 0.95);
  const IndexState state = *corpus->update_index(false);
  EXPECT_EQ(state.kind, "ivf");
  EXPECT_LT(state.probes, state.clusters / 4);  // it does not look everywhere
}

TEST_F(IndexTest, LeavesOutWhatCannotRunIsInQuarantineOrTooNear) {
  IndexOptions options;
  options.flat_most = 100;
  auto corpus = open(file(), options);
  fill(*corpus, 0, 400);
  SyntheticPrograms synthetic(5);
  Query query{synthetic.structure()};
  query.count = 20;
  const auto all = *corpus->search(query);
  ASSERT_EQ(all.size(), 20u);
  ASSERT_TRUE(corpus->record_proof(all[0].entry.id, {false, "wrong values", "{}"}).ok());
  const auto without = *corpus->search(query);
  ASSERT_EQ(without.size(), 20u);
  for (const Hit& hit : without) EXPECT_NE(hit.entry.id, all[0].entry.id);
  EXPECT_EQ((*corpus->find(std::to_string(all[0].entry.id)))->quarantined, "wrong values");
  ASSERT_TRUE(corpus->record_proof(all[0].entry.id, {true, "", R"({"compiler":"c"})"}).ok());
  EXPECT_EQ((*corpus->search(query))[0].entry.id, all[0].entry.id);
  EXPECT_FALSE((*corpus->find(std::to_string(all[0].entry.id)))->verified.empty());
  query.exclude_near = 0.5;
  const auto far = *corpus->search(query);
  for (const Hit& hit : far) EXPECT_LE(hit.score, 0.5 + kEqualScores);
}

TEST_F(IndexTest, TakesNoFileOfAnotherDatabase) {
  IndexOptions options;
  options.flat_most = 100;
  auto other = open(file("other.db"), options);
  fill(*other, 1'000, 300);
  ASSERT_EQ(other->update_index(false)->kind, "ivf");
  auto corpus = open(file(), options);
  fill(*corpus, 0, 300);
  fs::copy_file(file("other.db.index"), file("corpus.db.index"), fs::copy_options::overwrite_existing);
  options.probes = 1'000;  // all
  EXPECT_EQ(recall(*open(file(), options), 20), 1);
  // Nor one that was cut off, or that is something else.
  fs::resize_file(file("corpus.db.index"), fs::file_size(file("corpus.db.index")) / 2);
  EXPECT_EQ(recall(*open(file(), options), 20), 1);
}

// An older copy of the database that has gone another way since: the file's last row is not this one's.
TEST_F(IndexTest, SeesThatADatabaseWasPutBack) {
  IndexOptions options;
  options.flat_most = 100;
  options.probes = 1'000;
  auto corpus = open(file(), options);
  fill(*corpus, 0, 150);
  fs::copy_file(file(), file("older.db"));
  fill(*corpus, 150, 150);
  ASSERT_EQ(corpus->update_index(true)->entries, 300);
  corpus.reset();
  fs::rename(file("older.db"), file());
  corpus = open(file(), options);
  EXPECT_EQ(recall(*corpus, 20), 1);
  fill(*corpus, 5'000, 200);
  corpus.reset();
  corpus = open(file(), options);
  EXPECT_EQ(recall(*corpus, 20), 1);
}

// Entries of one structure share a row of the index, and are all found, the oldest first.
TEST_F(IndexTest, FindsAllOfOneStructure) {
  auto corpus = open(file());
  std::vector<Entry> entries;
  for (int i = 0; i < 300; ++i) entries.push_back(entry("same_" + std::to_string(i), {"linear", "relu"}));
  entries[299].target = "cuda:sm_90a";
  entries[299].source = "def f(T, a, b, m):\n    T.copy_cluster(a, b, dst_block=m)\n";
  ASSERT_EQ(*corpus->add_all(entries), 300);
  EXPECT_EQ(corpus->update_index(false)->structures, 1);
  Query query{chain({"linear", "relu"})};
  query.count = 400;
  EXPECT_EQ(corpus->search(query)->size(), 300u);
  query.target = "cpu";
  EXPECT_EQ(corpus->search(query)->size(), 299u);
  query.count = 2;
  EXPECT_EQ((*corpus->search(query))[1].entry.name, "same_1");
  // Words decide between them.
  query.text = "same_123";
  EXPECT_EQ((*corpus->search(query))[0].entry.name, "same_123");
  // The first one goes; the others get rows anew when the database is opened next.
  SQLite::Database database(file().string(), SQLite::OPEN_READWRITE);
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("DELETE FROM corpus WHERE name = 'same_0'");
  query.text.clear();
  query.count = 400;
  query.target.clear();
  EXPECT_EQ(open(file())->search(query)->size(), 299u);
}

// Rows that are deleted are never found, and their numbers never come back as another entry.
TEST_F(IndexTest, ForgetsWhatTheTableHasNoMore) {
  IndexOptions options;
  options.flat_most = 100;
  options.probes = 1'000;
  auto corpus = open(file(), options);
  fill(*corpus, 0, 300);
  ASSERT_EQ(corpus->update_index(false)->kind, "ivf");
  SQLite::Database database(file().string(), SQLite::OPEN_READWRITE);
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("DELETE FROM corpus WHERE id > 250 OR id % 3 = 0");
  EXPECT_EQ(recall(*corpus, 20), 1);
  fill(*corpus, 9'000, 100);
  EXPECT_EQ(recall(*corpus, 20), 1);
  EXPECT_EQ(recall(*open(file(), options), 20), 1);
}

// This executable again, as a process of its own that runs one test of those below.
pid_t start_again(const std::string& test, const fs::path& database) {
  const pid_t child = fork();
  if (child != 0) return child;
  setenv("TILEPILOT_TEST_DATABASE", database.c_str(), 1);
  unsetenv("GTEST_TOTAL_SHARDS");  // of the tests that start it: its own test may lie in another part
  unsetenv("GTEST_SHARD_INDEX");
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  const std::string filter = "--gtest_filter=" + test;
  execl("/proc/self/exe", "test_retrieval", filter.c_str(), "--gtest_also_run_disabled_tests", nullptr);
  _exit(127);
}

// Adds, searches and makes the index anew, for ever. The programs of one process are unlike those of another.
TEST(ChildProcess, DISABLED_AddsAndSearches) {
  const char* database = std::getenv("TILEPILOT_TEST_DATABASE");
  if (database == nullptr) GTEST_SKIP() << "is for processes that other tests start";
  IndexOptions options;
  options.flat_most = 100;
  auto corpus = *open_corpus(database, false, options);
  const int64_t own = int64_t{getpid()} * 1'000'000;
  SyntheticPrograms synthetic(static_cast<uint32_t>(getpid()));
  for (int64_t i = 0;; ++i) {
    std::vector<Entry> entries;
    for (int64_t k = 0; k < 7; ++k) entries.push_back(synthetic.entry(own + 7 * i + k));
    ASSERT_TRUE(corpus->add_all(entries).ok());
    ASSERT_TRUE(corpus->search(entries[0].structure, "", 3).ok());
    if (i % 5 == 0 && !corpus->update_index(i % 10 == 0).ok()) return;
  }
}

TEST_F(IndexTest, IsRightAfterKillsAtAnyMoment) {
  constexpr int kKills = 12;
  IndexOptions options;
  options.flat_most = 100;
  options.probes = 1'000;
  fill(*open(file(), options), 0, 120);
  std::mt19937 random(4);
  int64_t before = 120;
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    const pid_t child = start_again("ChildProcess.DISABLED_AddsAndSearches", file());
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<>(50, 700)(random)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the process ended by itself: " << status;
    auto corpus = open(file(), options);
    const auto entries = static_cast<int64_t>(corpus->list()->size());
    EXPECT_EQ(recall(*corpus, 10, entries), 1) << "the index lacks rows after kill " << kill_number;
    EXPECT_GE(recall(*corpus, 10), 0.95) << "after kill " << kill_number;
    const IndexState state = *corpus->update_index(false);
    EXPECT_EQ(state.entries, entries);  // an embedding for each, no more
    EXPECT_GE(entries, before);         // nothing that was added is lost
    EXPECT_EQ((entries - 120) % 7, 0);  // all of a transaction, or nothing
    before = entries;
  }
  EXPECT_GT(before, 120);
  for (const auto& item : fs::directory_iterator(folder_))
    EXPECT_FALSE(item.path().string().ends_with(".tmp")) << item.path();
}

// Adds a hundred programs, of which a half is the same in all processes.
TEST(ChildProcess, DISABLED_AddsAHundred) {
  const char* database = std::getenv("TILEPILOT_TEST_DATABASE");
  if (database == nullptr) GTEST_SKIP() << "is for processes that other tests start";
  auto opened = open_corpus(database);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const auto corpus = *std::move(opened);
  SyntheticPrograms synthetic(9);
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t number = i % 2 == 0 ? i : int64_t{getpid()} * 1'000 + i;
    const auto added = corpus->add(synthetic.entry(number));
    ASSERT_TRUE(added.ok()) << added.error().message;
  }
}

// A database that another one is just making is not taken for one of another program.
TEST_F(IndexTest, SeveralMakeADatabaseAtOnce) {
  for (int round = 0; round < 30; ++round) {
    const fs::path made = file("made" + std::to_string(round) + ".db");
    std::barrier together(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        together.arrive_and_wait();
        const auto opened = open_corpus(made);
        EXPECT_TRUE(opened.ok()) << opened.error().message;
      });
    for (std::thread& each : threads) each.join();
  }
}

TEST_F(IndexTest, SeveralProcessesAddAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) children.push_back(start_again("ChildProcess.DISABLED_AddsAHundred", file()));
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  auto corpus = open(file());
  // The half in common once, whoever came first, of its target; the others from each.
  EXPECT_EQ(corpus->list()->size(), 50u + 3 * 50u);
  EXPECT_EQ(corpus->update_index(false)->entries, 200);
  std::set<std::string> names;
  const auto entries = *corpus->list();
  for (const Entry& entry : entries) EXPECT_TRUE(names.insert(entry.uid).second);
}

TEST(SparseVectors, GiveBackWhatWasPacked) {
  const StructureVector vector = embed({{"aten::linear", "aten::relu"}, {{"aten::linear", "aten::relu"}}});
  const std::string packed = pack(vector);
  EXPECT_LT(packed.size(), sizeof vector / 4);
  StructureVector back{};
  unpack(packed, back);
  EXPECT_EQ(back, vector);
  EXPECT_NEAR(inner_product(packed, vector), 1, 1e-6);
  // What is cut off or points beyond the end is left out.
  std::string damaged = packed + std::string("\xff\xff\0\0\x80\x3f\x01", 7);
  StructureVector same{};
  unpack(damaged, same);
  EXPECT_EQ(same, vector);
}

}  // namespace
}  // namespace tilepilot::retrieval
