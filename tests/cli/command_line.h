// A test that calls the program as its users do, in a folder and with a store of its own.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "compiler/runtime/process.h"

namespace tilepilot {

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() : folder_(std::filesystem::temp_directory_path() / ("tilepilot-cli-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~CommandLine() override { std::filesystem::remove_all(folder_); }

  // Runs `tilepilot` with a store of this test's own, on the processor unless the test says where: `auto` is the GPU on
  // a machine that has one. `environment` are extra NAME=value pairs.
  runtime::ProcessResult tilepilot(std::vector<std::string> arguments,
                                   const std::vector<std::string>& environment = {}) {
    std::vector<std::string> argv = {"/usr/bin/env", "TILEPILOT_STORE=" + store().string(), "TILEPILOT_API_KEY="};
    argv.insert(argv.end(), environment.begin(), environment.end());
    argv.push_back(TILEPILOT_BINARY_DIR "/tilepilot");
    const auto is = [&](const char* command) { return !arguments.empty() && arguments.front() == command; };
    const bool says_where =
        std::any_of(arguments.begin(), arguments.end(), [](const auto& each) { return each.starts_with("--target"); });
    const bool runs_kernels =
        arguments.size() > 1 && (is("check") || is("generate") || is("run") || is("tune") || is("profile"));
    if (runs_kernels && !says_where) arguments.insert(arguments.begin() + 1, {"--target", "cpu"});
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    auto result = runtime::run_process(argv, {.time_limit_s = 300, .working_directory = folder_.string()});
    EXPECT_TRUE(result.ok());
    return std::move(*result);
  }
  runtime::ProcessResult check(const std::string& name, std::vector<std::string> more = {},
                               const std::vector<std::string>& environment = {}) {
    std::vector<std::string> arguments = {"check", candidate(name), "-r", model("matmul"), "--no-timing"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return tilepilot(arguments, environment);
  }
  static std::string candidate(const std::string& name) { return (tests() / "candidates" / (name + ".py")).string(); }
  static std::filesystem::path tests() { return std::filesystem::path(TILEPILOT_SOURCE_DIR) / "tests/cli"; }
  static std::string model(const std::string& name) { return (tests() / "models" / (name + ".py")).string(); }
  static std::string all(const runtime::ProcessResult& result) { return result.out + result.err; }
  std::filesystem::path store() const { return folder_ / "store.db"; }

  std::filesystem::path folder_;
};

}  // namespace tilepilot
