// Databases that are written down here become one.
#include "kernelbench/merge.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>

#include "agent/store/run_store.h"
#include "kernelbench/batch_store.h"
#include "retrieval/corpus.h"
#include "tests/kernelbench/temporary_folder.h"

namespace tilepilot::kernelbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

class Merges : public FolderTest {
 protected:
  fs::path file(const std::string& name) const { return folder_ / (name + ".db"); }
  static std::vector<Problem> problems() {
    std::vector<Problem> list;
    for (int id = 1; id <= 4; ++id) list.push_back({1, id, "p" + std::to_string(id), "", "text " + std::to_string(id)});
    return list;
  }
  // A batch of four problems that waits.
  int64_t begin(const std::string& name, const std::string& options = "{}", const std::string& digest = "digest",
                const std::string& environment = R"({"host":"one"})") const {
    return *(*BatchStore::open(file(name)))->begin({"/problems", digest, options, environment}, problems());
  }
  // Problem `id` ends, with a run of its own that has an attempt.
  int64_t end(const std::string& name, int64_t batch, int id, Ending ending, double speedup = 2) const {
    auto runs = *agent::RunStore::open(file(name));
    const int64_t run = *runs->begin_run({"m.py", "text", "builtin", "{}", batch});
    EXPECT_TRUE(runs->save_attempt(run, 0, {"program of " + name, "summary"}, std::nullopt));
    EXPECT_TRUE(runs->save_exchange(run, 0, {.request = "{}", .status = 200, .reply = "reply"}));
    EXPECT_TRUE(runs->finish_run(run, "nothing left to try", std::nullopt));
    auto store = *BatchStore::open(file(name));
    const Problem problem = problems()[static_cast<size_t>(id) - 1];
    Outcome outcome;
    outcome.ending = ending;
    outcome.run = run;
    outcome.seconds = 10;
    outcome.record = {{"run", run}, {"speedup", speedup}};
    EXPECT_TRUE(store->set_running(batch, problem));
    EXPECT_TRUE(store->set_done(batch, problem, outcome));
    return run;
  }
  void begun_at(const std::string& name, int id, const std::string& time) const {
    SQLite::Database(file(name).string(), SQLite::OPEN_READWRITE)
        .exec("UPDATE batch_problem SET started = '" + time + "' WHERE problem = " + std::to_string(id));
  }
  Result<MergeResult> merge(const std::vector<std::string>& names, const HoldTimes& times = {0.05, 0.2}) {
    std::vector<fs::path> files;
    for (const std::string& name : names) files.push_back(file(name));
    return merge_databases(
        files, file("all"), [this](const std::string& line) { waits_.push_back(line); }, times);
  }
  MergeResult merged(const std::vector<std::string>& names) {
    auto result = merge(names);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result ? *std::move(result) : MergeResult();
  }
  Batch batch(int64_t id = 0) const { return **(*BatchStore::open(file("all"), true))->load(id); }
  // The ending of each problem of a batch.
  std::vector<std::string> endings(int64_t id = 0) const {
    std::vector<std::string> texts;
    for (const BatchProblem& each : batch(id).problems)
      texts.emplace_back(each.state == State::done ? to_string(each.outcome.ending) : "waiting");
    return texts;
  }
  int64_t count(const std::string& table) const {
    SQLite::Database database(file("all").string());
    return database.execAndGet("SELECT count(*) FROM " + table).getInt64();
  }
  std::string dump() const {
    SQLite::Database database(file("all").string());
    std::string text;
    for (const char* table : {"batch", "batch_problem", "run", "attempt", "exchange", "corpus"}) {
      SQLite::Statement rows(database, std::string("SELECT * FROM ") + table);
      while (rows.executeStep())
        for (int i = 0; i < rows.getColumnCount(); ++i) text += rows.getColumn(i).getString() + "|";
    }
    return text;
  }

  std::vector<std::string> waits_;
};

TEST_F(Merges, JoinSharesOfOneBatch) {
  const int64_t one = begin("one");
  end("one", one, 1, Ending::verified);
  end("one", one, 3, Ending::failed);
  // Numbers of runs and batches overlap.
  begin("two", R"({"dtype":"bf16"})");
  const int64_t two = begin("two", "{}", "digest", R"({"host":"two"})");
  end("two", two, 2, Ending::abstained);
  end("two", two, 4, Ending::verified, 3);
  const MergeResult result = merged({"one", "two"});
  EXPECT_THAT(result.differences, IsEmpty());
  EXPECT_THAT(result.batches, SizeIs(3));
  EXPECT_THAT(endings(1), ElementsAre("verified", "abstained", "failed", "verified"));
  EXPECT_EQ(count("batch"), 2);
  EXPECT_EQ(count("batch_problem"), 8);
  EXPECT_EQ(count("run"), 4);
  EXPECT_NE(batch(1).finished, "");
  EXPECT_EQ(batch(2).finished, "");
  EXPECT_THAT(batch(1).header.environment, HasSubstr(R"("machines":[{"host":"one"},{"host":"two"}])"));
  // Each problem's run is its own.
  auto runs = *agent::RunStore::open(file("all"));
  for (const BatchProblem& problem : batch(1).problems) {
    EXPECT_EQ(problem.outcome.record["run"], problem.outcome.run);
    const auto run = *runs->find(problem.outcome.run);
    ASSERT_TRUE(run.has_value());
    EXPECT_EQ(run->attempts.front().candidate.source,
              problem.problem.id % 2 == 1 ? "program of one" : "program of two");
    EXPECT_THAT(*runs->exchanges(problem.outcome.run), SizeIs(1));
  }
}

TEST_F(Merges, AddNothingTheSecondTime) {
  const int64_t one = begin("one");
  end("one", one, 1, Ending::verified);
  const int64_t two = begin("two");
  end("two", two, 2, Ending::verified);
  merged({"one", "two"});
  const std::string before = dump();
  const MergeResult again = merged({"two", "one", "two"});
  EXPECT_EQ(again.runs, 0);
  EXPECT_EQ(again.entries, 0);
  EXPECT_THAT(again.differences, IsEmpty());
  EXPECT_EQ(dump(), before);
}

TEST_F(Merges, GoOnAfterAnEarlierMerge) {
  const int64_t one = begin("one");
  auto runs = *agent::RunStore::open(file("one"));
  const int64_t run = *runs->begin_run({"m.py", "text 1", "builtin", "{}", one});
  ASSERT_TRUE(runs->save_attempt(run, 0, {"first", "s"}, std::nullopt));
  auto store = *BatchStore::open(file("one"));
  ASSERT_TRUE(store->set_running(one, problems()[0]));
  merged({"one"});
  EXPECT_THAT(endings(), ElementsAre("waiting", "waiting", "waiting", "waiting"));
  // What was interrupted goes on in the store.
  EXPECT_TRUE((*(*agent::RunStore::open(file("all")))->find_interrupted(batch().id, "text 1")).has_value());

  ASSERT_TRUE(runs->save_attempt(run, 1, {"second", "s"}, std::nullopt));
  ASSERT_TRUE(runs->finish_run(run, "nothing left to try", 1));
  Outcome outcome;
  outcome.ending = Ending::verified;
  outcome.run = run;
  ASSERT_TRUE(store->set_done(one, problems()[0], outcome));
  merged({"one"});
  EXPECT_EQ(endings()[0], "verified");
  EXPECT_EQ(count("run"), 1);
  EXPECT_EQ(count("attempt"), 2);
  EXPECT_EQ((*(*agent::RunStore::open(file("all")))->find(batch().problems[0].outcome.run))->best, 1u);
}

TEST_F(Merges, PreferWhatIsJudged) {
  const int64_t one = begin("one"), two = begin("two");
  end("one", one, 1, Ending::not_judged);
  end("two", two, 1, Ending::failed);
  end("one", one, 2, Ending::verified);
  end("two", two, 2, Ending::not_judged);
  end("two", two, 3, Ending::not_judged);
  const MergeResult result = merged({"one", "two"});
  EXPECT_THAT(endings(), ElementsAre("failed", "verified", "not_judged", "waiting"));
  EXPECT_THAT(result.differences, IsEmpty());
}

// Whatever the order of databases, the result that was begun first stays, and the other one is told.
TEST_F(Merges, KeepTheEarlierOfTwoResults) {
  for (const auto& order : {std::vector<std::string>{"one", "two"}, {"two", "one"}}) {
    for (const char* name : {"one", "two", "all"}) fs::remove(file(name));
    const int64_t one = begin("one"), two = begin("two");
    end("one", one, 1, Ending::verified, 2);
    end("two", two, 1, Ending::failed);
    begun_at("one", 1, "2026-01-01T00:00:00Z");
    begun_at("two", 1, "2026-01-02T00:00:00Z");
    const MergeResult result = merged(order);
    EXPECT_EQ(endings()[0], "verified");
    ASSERT_THAT(result.differences, SizeIs(1));
    EXPECT_EQ(result.differences[0].problem, "level 1 #1");
    EXPECT_THAT(result.differences[0].kept, HasSubstr("verified, 2.00x"));
    EXPECT_THAT(result.differences[0].left, HasSubstr("failed"));
    EXPECT_EQ(count("run"), 2);  // both are kept
    EXPECT_THAT(merged(order).differences, SizeIs(1));
    EXPECT_EQ(endings()[0], "verified");
  }
}

TEST_F(Merges, KeepOtherSetsOptionsAndRepetitionsApart) {
  begin("one");
  begin("one");  // once more, with `--new`
  begin("two", "{}", "another digest");
  begin("two", R"({"dtype":"fp16"})");
  begin("two");
  merged({"one", "two"});
  EXPECT_EQ(count("batch"), 4);
}

TEST_F(Merges, CarryTheCorpusOver) {
  retrieval::Entry entry{.name = "a", .origin = "generated", .summary = "s", .source = "x = 1\n", .target = "cpu"};
  ASSERT_TRUE(*(*retrieval::open_corpus(file("one")))->add(entry));
  ASSERT_TRUE(*(*retrieval::open_corpus(file("two")))->add(entry));
  entry.source = "x = 2\n";
  ASSERT_TRUE(*(*retrieval::open_corpus(file("two")))->add(entry));
  EXPECT_EQ(merged({"one", "two"}).entries, 2);
  EXPECT_EQ(count("corpus"), 2);
}

// Runs that were answered from an earlier run name it by its number.
TEST_F(Merges, RemapReplayedRuns) {
  {
    auto store = *agent::RunStore::open(file("all"));
    ASSERT_TRUE(store->begin_run({"m.py", "", "llm", "{}"}));
    auto runs = *agent::RunStore::open(file("one"));
    ASSERT_EQ(*runs->begin_run({"m.py", "", "llm", "{}"}), 1);
    ASSERT_EQ(*runs->begin_run({"m.py", "", "llm", R"({"replay":1})"}), 2);
  }
  merged({"one"});
  EXPECT_EQ((*(*agent::RunStore::open(file("all")))->find(3))->options, R"({"replay":2})");
}

TEST_F(Merges, ReadSourcesThatMayNotChange) {
  const int64_t one = begin("one");
  end("one", one, 1, Ending::verified);
  fs::permissions(file("one"), fs::perms::owner_read);
  fs::path before = folder_ / "before.db";
  fs::copy_file(file("one"), before);
  merged({"one"});
  std::ifstream now(file("one")), then(before);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(now), {}),
            std::string(std::istreambuf_iterator<char>(then), {}));
}

TEST_F(Merges, FailWithoutAChange) {
  const int64_t one = begin("one");
  end("one", one, 1, Ending::verified);
  begin("all");
  std::ofstream(folder_ / "text.db") << "this is a text file that is long enough to be taken for something else\n";
  begin("newer");
  SQLite::Database(file("newer").string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
  const std::string before = dump();
  struct Case {
    std::vector<std::string> names;
    const char* words;
  };
  for (const Case& each : {Case{{}, "there is nothing to merge"}, Case{{"one", "nowhere"}, "there is no database"},
                           Case{{"one", "all"}, "is the database that the others are merged into"},
                           Case{{"one", "text"}, "is not a database"}, Case{{"one", "newer"}, "newer TilePilot"}}) {
    auto result = merge(each.names);
    ASSERT_FALSE(result.ok()) << each.words;
    EXPECT_THAT(result.error().message, HasSubstr(each.words));
    EXPECT_EQ(dump(), before) << each.words;
  }
}

TEST_F(Merges, LeaveBatchesAloneThatAreBeingRun) {
  const int64_t one = begin("one"), all = begin("all");
  const auto ignore = [](const std::string&) {};
  {
    auto hold = BatchHold::take(file("one"), one, ignore);
    ASSERT_TRUE(hold.ok());
    auto result = merge({"one"});
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message, HasSubstr("is being run by process"));
  }
  {
    auto hold = BatchHold::take(file("all"), all, ignore);
    ASSERT_TRUE(hold.ok());
    EXPECT_FALSE(merge({"one"}).ok());
  }
  EXPECT_TRUE(merge({"one"}).ok());
  EXPECT_THAT(waits_, IsEmpty());
  // One that was killed on another machine.
  SQLite::Database(file("one").string(), SQLite::OPEN_READWRITE)
      .exec(R"(UPDATE batch SET holder = '{"host":"far","boot":"b","process":7}', heartbeat = 3)");
  EXPECT_TRUE(merge({"one"}).ok());
  EXPECT_THAT(waits_, SizeIs(1));
}

}  // namespace
}  // namespace tilepilot::kernelbench
