#include "retrieval/corpus.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "retrieval/database.h"
#include "retrieval/neighbour.h"
#include "retrieval/network_file_system.h"
#include "retrieval/seeds.h"

namespace tilepilot::retrieval {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() : folder_(fs::temp_directory_path() / ("tilepilot-corpus-" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~CorpusTest() override { fs::remove_all(folder_); }

  fs::path file() const { return folder_ / "corpus.db"; }
  std::unique_ptr<Corpus> open() {
    auto corpus = open_corpus(file());
    EXPECT_TRUE(corpus.ok()) << (corpus.ok() ? "" : corpus.error().message);
    return std::move(*corpus);
  }
  static Entry entry(const std::string& name, std::vector<std::string> ops, const std::string& source) {
    Entry entry{.name = name, .origin = "generated", .summary = "about " + name, .source = source, .target = "cpu"};
    entry.structure.ops = std::move(ops);
    for (size_t i = 1; i < entry.structure.ops.size(); ++i)
      entry.structure.edges.emplace_back(entry.structure.ops[i - 1], entry.structure.ops[i]);
    return entry;
  }

  fs::path folder_;
};

TEST_F(CorpusTest, AddsAProgramOnce) {
  auto corpus = open();
  EXPECT_TRUE(*corpus->add(entry("one", {"aten::add"}, "def f(a, b):\n    return a + b\n")));
  EXPECT_FALSE(*corpus->add(entry("two", {"aten::add"}, "# another name\ndef g(x, y):\n    return x + y  # sum\n")));
  EXPECT_TRUE(*corpus->add(entry("three", {"aten::sub"}, "def f(a, b):\n    return a - b\n")));
  EXPECT_EQ(corpus->list()->size(), 2u);
}

TEST_F(CorpusTest, KeepsAProgramForEveryTargetThatVerifiedIt) {
  auto corpus = open();
  Entry both = entry("sum", {"aten::add"}, "def f(a, b):\n    return a + b\n");
  EXPECT_TRUE(*corpus->add(both));
  both.target = "cuda:sm_90a";
  EXPECT_TRUE(*corpus->add(both));
  EXPECT_FALSE(*corpus->add(both));
  ASSERT_EQ(corpus->list()->size(), 2u);
  EXPECT_EQ((*corpus->list())[1].target, "cuda:sm_90a");
  EXPECT_EQ(corpus->search(both.structure, "", 5)->size(), 1u);
}

// Files of the first version hold each program once.
TEST_F(CorpusTest, ReadsFilesOfTheFirstVersion) {
  {
    SQLite::Database old(file().string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    old.exec(
        "CREATE TABLE corpus (id INTEGER PRIMARY KEY, name TEXT NOT NULL, origin TEXT NOT NULL, summary TEXT NOT NULL, "
        "tags TEXT NOT NULL, structure TEXT NOT NULL, source TEXT NOT NULL, fingerprint TEXT NOT NULL UNIQUE, "
        "speedup REAL NOT NULL DEFAULT 0, target TEXT NOT NULL, created TEXT NOT NULL)");
    old.exec(
        "INSERT INTO corpus VALUES (7, 'kept', 'generated', 's', '[\"t\"]', "
        "'{\"ops\":[\"aten::add\"],\"edges\":[],\"dtype\":\"float32\",\"largest_elements\":4}', 'x = 1', 'print', 1.5, "
        "'cpu', 'now')");
    old.exec("CREATE TABLE run (id INTEGER PRIMARY KEY, model_source TEXT NOT NULL)");
    old.exec("CREATE TABLE attempt (run INTEGER NOT NULL, source TEXT NOT NULL)");
    old.exec("CREATE TABLE exchange (run INTEGER, number INTEGER, request TEXT, status INTEGER, reply TEXT)");
    old.exec("INSERT INTO exchange VALUES (1, 0, '{}', NULL, 'no answer'), (1, 1, '{}', 200, 'hello')");
    old.exec("PRAGMA application_id = 1416188009");
    old.exec("PRAGMA user_version = 1");
    old.exec("INSERT INTO run VALUES (1, 'its model'), (2, 'another')");
    old.exec("INSERT INTO attempt VALUES (2, 'x = 2'), (1, 'x = 1')");
  }
  // Who may only read gets a copy that is up to date, and leaves the file as it is.
  EXPECT_TRUE((*(*open_corpus(file(), /*read_only*/ true))->find("kept")).has_value());
  EXPECT_EQ(SQLite::Database(file().string()).execAndGet("PRAGMA user_version").getInt(), 1);
  auto found = *open()->find("kept");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->id, 7);
  EXPECT_EQ(found->speedup, 1.5);
  EXPECT_EQ(found->target, "cpu");
  EXPECT_EQ(found->created, "now");
  // The run that found the program tells its model; the rest follows from what is there.
  EXPECT_EQ(found->model_source, "its model");
  EXPECT_EQ(found->graph, graph_fingerprint(found->structure));
  EXPECT_EQ(found->uid.size(), 32u);
  EXPECT_EQ(open()->search({{"aten::add"}}, "", 1)->size(), 1u);
  // Each run of an earlier version has got a name of its own.
  EXPECT_EQ(SQLite::Database(file().string()).execAndGet("SELECT count(DISTINCT uid) FROM run").getInt(), 2);
  // Why there is no reply stood in its place.
  const auto told = [&](const char* column) {
    return SQLite::Database(file().string())
        .execAndGet(std::string("SELECT group_concat(") + column + ", ';') FROM exchange")
        .getString();
  };
  EXPECT_EQ(told("failure"), "no answer;");
  EXPECT_EQ(told("reply"), ";hello");
}

TEST_F(CorpusTest, KeepsWhatWasStored) {
  Entry stored = entry("norm", {"aten::pow", "aten::mean"}, "x = 1\n");
  stored.tags = {"norm", "row"};
  stored.speedup = 2.5;
  ASSERT_TRUE(*open()->add(stored));
  auto found = *open()->find("norm");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->tags, stored.tags);
  EXPECT_EQ(found->structure.ops, stored.structure.ops);
  EXPECT_EQ(found->structure.edges, stored.structure.edges);
  EXPECT_EQ(found->source, stored.source);
  EXPECT_EQ(found->speedup, 2.5);
  EXPECT_TRUE((*open()->find(std::to_string(found->id))).has_value());
  EXPECT_FALSE((*open()->find("absent")).has_value());
}

TEST_F(CorpusTest, FindsByStructureAndSaysWhy) {
  auto corpus = open();
  ASSERT_TRUE(corpus->add(entry("softmax", {"aten::softmax"}, "a = 1\n")).ok());
  ASSERT_TRUE(corpus->add(entry("linear_relu", {"aten::linear", "aten::relu"}, "a = 2\n")).ok());
  ASSERT_TRUE(corpus->add(entry("pooling", {"aten::max_pool2d"}, "a = 3\n")).ok());
  auto hits = *corpus->search({{"aten::addmm", "aten::relu"}, {{"aten::addmm", "aten::relu"}}}, "", 2);
  ASSERT_FALSE(hits.empty());
  EXPECT_EQ(hits[0].entry.name, "linear_relu");
  EXPECT_THAT(hits[0].reason, HasSubstr("shares relu"));
  EXPECT_GT(hits[0].score, 0.4);
  EXPECT_LE(hits[0].score, 1.0);
}

TEST_F(CorpusTest, FindsByText) {
  auto corpus = open();
  ASSERT_TRUE(corpus->add(entry("softmax rows", {"aten::softmax"}, "a = 1\n")).ok());
  ASSERT_TRUE(corpus->add(entry("pooling", {"aten::max_pool2d"}, "a = 3\n")).ok());
  auto hits = *corpus->search({}, "pooling windows", 1);
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].entry.name, "pooling");
  EXPECT_THAT(hits[0].reason, HasSubstr("description matches"));
}

TEST_F(CorpusTest, KnowsTheNearestEntry) {
  auto corpus = open();
  const Entry chain = entry("linear_relu", {"aten::linear", "aten::relu"}, "a = 1\n");
  EXPECT_FALSE(nearest_neighbour(*corpus, chain.structure)->has_value());
  ASSERT_TRUE(corpus->add(entry("pooling", {"aten::max_pool2d"}, "a = 2\n")).ok());
  EXPECT_GT((*nearest_neighbour(*corpus, chain.structure))->distance, 0.9);  // no more than the dtype in common
  ASSERT_TRUE(corpus->add(entry("linear_gelu", {"aten::linear", "aten::gelu"}, "a = 3\n")).ok());
  auto related = *nearest_neighbour(*corpus, chain.structure);
  ASSERT_TRUE(related.has_value());
  EXPECT_EQ(related->name, "linear_gelu");
  EXPECT_GT(related->distance, 0.1);
  EXPECT_LT(related->distance, 1);
  EXPECT_FALSE(related->same_graph);
  // In place or not, and sizes, make no difference; the dtype does.
  ASSERT_TRUE(corpus->add(entry("known", {"aten::linear", "aten::relu_"}, "a = 4\n")).ok());
  Structure larger = chain.structure;
  larger.largest_elements = 1 << 20;
  auto known = *nearest_neighbour(*corpus, larger);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->name, "known");
  EXPECT_EQ(known->distance, 0);
  EXPECT_TRUE(known->same_graph);
  larger.dtype = "bfloat16";
  EXPECT_FALSE((*nearest_neighbour(*corpus, larger))->same_graph);
}

// Operators and pairs of them may be the same, and the graphs may not be.
TEST_F(CorpusTest, PrefersTheSameGraphAtOneDistance) {
  auto corpus = open();
  Entry swapped = entry("swapped", {"aten::relu", "aten::linear"}, "a = 1\n");
  swapped.structure.edges = {{"aten::linear", "aten::relu"}};
  ASSERT_TRUE(corpus->add(swapped).ok());
  const Entry same = entry("same", {"aten::linear", "aten::relu"}, "a = 2\n");
  auto before = *nearest_neighbour(*corpus, same.structure);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(before->distance, 0);
  EXPECT_FALSE(before->same_graph);
  ASSERT_TRUE(corpus->add(same).ok());
  auto after = *nearest_neighbour(*corpus, same.structure);
  EXPECT_EQ(after->name, "same");
  EXPECT_TRUE(after->same_graph);
  const auto read = neighbour_from_json(to_json(*after));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(to_json(*read), to_json(*after));
  EXPECT_FALSE(neighbour_from_json(nullptr).has_value());
}

TEST_F(CorpusTest, RejectsAProgramThatDoesNotParse) {
  auto added = open()->add(entry("broken", {"aten::add"}, "def f(:\n"));
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().kind, DiagnosticKind::syntax_error);
}

TEST_F(CorpusTest, FailNotADatabase) {
  std::ofstream(file()) << "this is a text file that is long enough to be taken for something else\n";
  auto corpus = open_corpus(file());
  ASSERT_FALSE(corpus.ok());
  EXPECT_EQ(corpus.error().kind, DiagnosticKind::store_unusable);
  EXPECT_THAT(corpus.error().message, HasSubstr("is not a database"));
}

TEST_F(CorpusTest, FailDatabaseOfAnotherProgram) {
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE t (x)");
  auto corpus = open_corpus(file());
  ASSERT_FALSE(corpus.ok());
  EXPECT_THAT(corpus.error().message, HasSubstr("another program"));
}

TEST_F(CorpusTest, FailNewerVersion) {
  open();
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
  auto corpus = open_corpus(file());
  ASSERT_FALSE(corpus.ok());
  EXPECT_THAT(corpus.error().message, HasSubstr("newer TilePilot"));
}

TEST_F(CorpusTest, FailReadOnly) {
  open();
  auto corpus = open_corpus(file(), /*read_only*/ true);
  ASSERT_TRUE(corpus.ok());
  EXPECT_TRUE((*corpus)->list().ok());
  auto added = (*corpus)->add(entry("x", {"aten::add"}, "a = 1\n"));
  ASSERT_FALSE(added.ok());
  EXPECT_THAT(added.error().message, HasSubstr("read-only"));
}

// A child whose files may not grow stands for a full disk: the program is refused, the database stays whole.
TEST_F(CorpusTest, FailDiskFull) {
  ASSERT_TRUE(open()->add(entry("kept", {"aten::add"}, "a = 1\n")).ok());
  auto size = static_cast<rlim_t>(fs::file_size(file()));
  pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{size, size};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto corpus = open_corpus(file());
    bool refused =
        corpus.ok() && !(*corpus)->add(entry("big", {"aten::mul"}, "a = '" + std::string(1 << 16, 'x') + "'\n")).ok();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  auto entries = *open()->list();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "kept");
}

TEST(SharedFileSystems, AreKnownByTheirNumbers) {
  EXPECT_EQ(shared_file_system(0x6969), "NFS");
  EXPECT_EQ(shared_file_system(0x65735546), "FUSE");
  EXPECT_EQ(shared_file_system(0xffffffffff534d42u), "CIFS");  // sign-extended
  EXPECT_EQ(shared_file_system(0xef53), std::nullopt);         // ext4
  EXPECT_EQ(shared_file_system(0x01021994), std::nullopt);     // tmpfs
  EXPECT_EQ(shared_file_system_of("/proc/no/such/file.db"), std::nullopt);
  EXPECT_EQ(shared_file_system_of(""), shared_file_system_of("./x.db"));
}

TEST(FingerprintTest, IgnoresLayoutCommentsDocstringsAndOwnNames) {
  std::string one =
      *fingerprint("\"\"\"Title.\"\"\"\nimport torch\n\ndef f(a, b=2):\n    c = torch.exp(a)\n    return c * b\n");
  EXPECT_EQ(one, *fingerprint(
                     "import torch\ndef add(x, scale=2):\n\n    # why\n    y = torch.exp(x)\n    return y * scale\n"));
  EXPECT_NE(one, *fingerprint("import torch\ndef f(a, b=3):\n    c = torch.exp(a)\n    return c * b\n"));
  EXPECT_NE(one, *fingerprint("import torch\ndef f(a, b=2):\n    c = torch.log(a)\n    return c * b\n"));
  EXPECT_NE(one, *fingerprint("import torch\ndef f(a, b=2):\n    c = torch.exp(a)\n    return c * a\n"));
}

TEST_F(CorpusTest, SeedsHaveMetadataAndEnterOnce) {
  auto corpus = open();
  const fs::path seeds = fs::path(TILEPILOT_SOURCE_DIR) / "seeds";
  ASSERT_TRUE(sync_seeds(*corpus, seeds).ok());
  ASSERT_TRUE(sync_seeds(*corpus, seeds).ok());
  auto entries = *corpus->list();
  EXPECT_GE(entries.size(), 12u);
  for (const Entry& entry : entries) {
    EXPECT_FALSE(entry.summary.empty()) << entry.name;
    EXPECT_FALSE(entry.structure.ops.empty()) << entry.name;
    EXPECT_FALSE(entry.tags.empty()) << entry.name;
    // A search for exactly this structure finds it, or one that is just like it.
    auto hits = *corpus->search(entry.structure, "", 1);
    ASSERT_EQ(hits.size(), 1u) << entry.name;
    EXPECT_GT(hits[0].score, 0.99) << entry.name;
  }
}

}  // namespace
}  // namespace tilepilot::retrieval
