// A folder of its own for a test's database, and small entries for it.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

class CorpusFolder : public ::testing::Test {
 protected:
  CorpusFolder()
      : folder_(std::filesystem::temp_directory_path() / ("tilepilot-retrieval-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CorpusFolder() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file(const std::string& name = "corpus.db") const { return folder_ / name; }

  static std::unique_ptr<Corpus> open(const std::filesystem::path& database, const IndexOptions& options = {}) {
    auto corpus = open_corpus(database, /*read_only*/ false, options);
    EXPECT_TRUE(corpus.ok()) << (corpus.ok() ? "" : corpus.error().message);
    return std::move(*corpus);
  }

  // A chain of operators.
  static Structure chain(const std::vector<std::string>& ops) {
    Structure structure;
    for (const std::string& op : ops) structure.ops.push_back("aten::" + op);
    for (size_t i = 1; i < ops.size(); ++i) {
      structure.edges.emplace_back(structure.ops[i - 1], structure.ops[i]);
      structure.links.emplace_back(static_cast<int>(i) - 1, static_cast<int>(i));
    }
    return structure;
  }

  static Entry entry(const std::string& name, const std::vector<std::string>& ops) {
    Entry entry{.name = name, .origin = "generated", .summary = "about " + name, .target = "cpu"};
    entry.structure = chain(ops);
    entry.source = "name = '" + name + "'\n";
    return entry;
  }

  std::filesystem::path folder_;
};

}  // namespace tilepilot::retrieval
