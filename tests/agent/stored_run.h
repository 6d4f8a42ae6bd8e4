// A test with a run in a database of its own, and a look into that database.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "agent/store/run_store.h"

namespace tilepilot::agent {

class RunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tilepilot-run-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    auto store = RunStore::open(folder_ / "runs.db");
    ASSERT_TRUE(store.ok());
    store_ = std::move(*store);
    run_ = begin_run();
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  int64_t begin_run() {
    auto run = store_->begin_run({"model.py", "class Model: ...", "llm", "{}"});
    EXPECT_TRUE(run.ok());
    return run.ok() ? *run : 0;
  }

  // The first column of the first row, as another program would read it.
  std::string column(const std::string& query) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open_v2((folder_ / "runs.db").c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    std::string result = "(no row)";
    auto keep = [](void* text, int, char** values, char**) {
      *static_cast<std::string*>(text) = values[0] ? values[0] : "(null)";
      return 1;  // one row is enough
    };
    sqlite3_exec(database, query.c_str(), keep, &result, nullptr);
    sqlite3_close(database);
    return result;
  }

  std::filesystem::path folder_;
  std::unique_ptr<RunStore> store_;
  int64_t run_ = 0;
};

}  // namespace tilepilot::agent
