// Entries move between databases, with all that is known of them and once each.
#include "retrieval/corpus_file.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "retrieval/patterns.h"
#include "tests/retrieval/corpus_fixture.h"

namespace tilepilot::retrieval {
namespace {

using ::testing::HasSubstr;

class CorpusFileTest : public CorpusFolder {
 protected:
  Error import_error(const std::string& text) {
    std::ofstream(file("given.jsonl")) << text;
    auto imported = import_corpus(*open(file()), file("given.jsonl"));
    EXPECT_FALSE(imported.ok());
    return std::move(imported).take_error();
  }
  static Entry full_entry() {
    Entry full = entry("full", {"linear", "relu"});
    full.tags = {"a", "b"};
    full.speedup = 2.5;
    full.compile_speedup = 1.25;
    full.roofline = 0.5;
    full.inputs = {{"float32", {16, 32}}, {"int64", {}}};
    full.outputs = {{"float32", {16, 8}}};
    full.licence = "MIT";
    full.model_source = "class Model(nn.Module): pass\n";
    full.task = R"({"seed":42})";
    full.lineage = R"({"attempt":3,"run":"0123"})";
    full.toolchain = R"({"compiler":"g++ 12"})";
    full.certificate = R"({"format":"tilepilot-certificate"})";
    full.verified = "2026-01-02T03:04:05Z";
    full.created = "2026-01-01T00:00:00Z";
    return full;
  }
};

TEST_F(CorpusFileTest, KeepsAllThatIsKnown) {
  auto corpus = open(file());
  ASSERT_TRUE(*corpus->add(full_entry()));
  ASSERT_TRUE(*corpus->add(entry("failed", {"conv2d"})));
  ASSERT_TRUE(corpus->record_proof((*corpus->find("failed"))->id, {false, "it crashed", "{}"}).ok());
  EXPECT_EQ(*export_corpus(*corpus, file("corpus.jsonl")), 2);
  auto other = open(file("other.db"));
  ASSERT_TRUE(*other->add(entry("first", {"gelu"})));
  EXPECT_EQ((*import_corpus(*other, file("corpus.jsonl"))).added, 2);
  auto before = **corpus->find("full"), after = **other->find("full");
  EXPECT_NE(before.id, after.id);
  EXPECT_EQ(after.verified, "");  // not here
  before.verified.clear();
  EXPECT_EQ(to_json(before), to_json(after));
  EXPECT_EQ(after.licence, "MIT");
  EXPECT_EQ(after.inputs[0].extents, (std::vector<int64_t>{16, 32}));
  EXPECT_EQ((*other->find("failed"))->quarantined, "it crashed");
  EXPECT_EQ((*other->search(before.structure, "", 1))[0].entry.name, "full");
}

TEST_F(CorpusFileTest, MergesWithoutDuplicates) {
  auto corpus = open(file());
  ASSERT_TRUE(*corpus->add(full_entry()));
  ASSERT_TRUE(*corpus->add(entry("only here", {"mm"})));
  ASSERT_TRUE(export_corpus(*corpus, file("one.jsonl")).ok());
  auto other = open(file("other.db"));
  // The same program under another name, and another number.
  Entry same = full_entry();
  same.name = "same";
  same.speedup = 9;
  ASSERT_TRUE(*other->add(entry("only there", {"bmm"})));
  ASSERT_TRUE(*other->add(same));
  const Imported first = *import_corpus(*other, file("one.jsonl"));
  EXPECT_EQ(first.added, 1);
  EXPECT_EQ(first.known, 1);
  EXPECT_EQ((*import_corpus(*other, file("one.jsonl"))).added, 0);
  EXPECT_EQ(other->list()->size(), 3u);
  EXPECT_EQ((*other->find("same"))->speedup, 9);
}

TEST_F(CorpusFileTest, FailWrongFiles) {
  EXPECT_THAT(import_error("hello\n")->message, HasSubstr("is no exported corpus"));
  EXPECT_THAT(import_error("")->message, HasSubstr("is no exported corpus"));
  EXPECT_THAT(import_error("{\"format\":\"tilepilot-corpus\",\"version\":2}\n")->message,
              HasSubstr("newer TilePilot (version 2"));
  const std::string header = "{\"format\":\"tilepilot-corpus\",\"version\":1}\n";
  EXPECT_THAT(import_error(header + "{}\n")->message, HasSubstr("has no entry in line 2"));
  auto corpus = open(file());
  std::ofstream(file("empty.jsonl")) << header;
  EXPECT_EQ(import_corpus(*corpus, file("empty.jsonl"))->added, 0);
  EXPECT_EQ(import_corpus(*corpus, file("absent")).error().kind, DiagnosticKind::file_not_found);
}

TEST_F(CorpusFileTest, FailOneWrongLineTakesNothing) {
  auto corpus = open(file());
  ASSERT_TRUE(*corpus->add(full_entry()));
  ASSERT_TRUE(export_corpus(*corpus, file("one.jsonl")).ok());
  nlohmann::json broken = to_json(entry("broken", {"mm"}));
  broken["source"] = "def f(:\n";
  std::ofstream(file("one.jsonl"), std::ios::app) << broken.dump() << "\n";
  auto other = open(file("other.db"));
  const auto imported = import_corpus(*other, file("one.jsonl"));
  ASSERT_FALSE(imported.ok());
  EXPECT_THAT(imported.error().message, HasSubstr("line 3 that does not parse"));
  EXPECT_TRUE(other->list()->empty());
}

}  // namespace
}  // namespace tilepilot::retrieval
