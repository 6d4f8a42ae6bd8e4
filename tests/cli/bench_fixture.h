// A set of four small problems, of which two can be verified, and what a batch over them leaves.
#pragma once

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace tilepilot {

using nlohmann::json;

class BenchTest : public CommandLine {
 protected:
  BenchTest() {
    std::filesystem::create_directories(folder_ / "set");
    add("1_double", "double");
    add("2_scale_softmax", "scale_softmax");
    std::ofstream(folder_ / "set/3_broken.py") << "class Model(:\n";
    add("4_only_sorts", "fail_only_sorts");
  }
  void add(const std::string& name, const std::string& of) const {
    std::filesystem::copy_file(model(of), folder_ / "set" / (name + ".py"));
  }
  std::vector<std::string> run_arguments() const {
    return {"bench", "run",      "--problems", (folder_ / "set").string(), "--attempts", "2", "--target",
            "cpu",   "--trials", "2"};
  }
  json report() { return answer({"bench", "report"}); }
  // `tilepilot` in the background, in silence, with this test's store. The environment of all that it starts names this
  // test's folder.
  pid_t start(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"env", "TILEPILOT_STORE=" + store().string(), "TMPDIR=" + folder_.string(),
                                         TILEPILOT_BINARY_DIR "/tilepilot"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t process = fork();
    if (process == 0) {
      if (freopen("/dev/null", "w", stderr) != nullptr && freopen("/dev/null", "w", stdout) != nullptr)
        execv("/usr/bin/env", argv.data());
      _exit(127);
    }
    return process;
  }
  // What a command that succeeds says as JSON.
  json answer(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
    arguments.emplace_back("--json");
    auto result = tilepilot(arguments, environment);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out, nullptr, /*allow_exceptions*/ false);
  }
  std::string set() const { return (folder_ / "set").string(); }
  // Each problem's ending and the number of its attempts.
  static std::vector<std::string> results_of(const json& report) {
    std::vector<std::string> results;
    for (const json& problem : report["problems"])
      results.push_back(problem["name"].get<std::string>() + " " + problem["ending"].get<std::string>() + " " +
                        problem["attempts"].dump());
    return results;
  }
  // Of the test's own store.
  int64_t number(const std::string& query) const { return number_in(store(), query); }
  static int64_t number_in(const std::filesystem::path& file, const std::string& query) {
    sqlite3* database = nullptr;
    sqlite3_stmt* statement = nullptr;
    int64_t found = -1;
    if (sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK &&
        sqlite3_busy_timeout(database, 2000) == SQLITE_OK &&
        sqlite3_prepare_v2(database, query.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
      found = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return found;
  }
};

}  // namespace tilepilot
