// Profiles on the processor and in the emulator, through the commands that tell them.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"
#include "tests/golden.h"

namespace tilepilot {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// The line, from 1 on, that ends with this comment.
int line_with(const std::string& file, const std::string& comment) {
  std::ifstream stream(file);
  int number = 0;
  for (std::string line; std::getline(stream, line);)
    if (++number; line.find("# " + comment) != std::string::npos) return number;
  return 0;
}

const json* find_part(const json& parts, const std::string& name) {
  for (const json& part : parts)
    if (part.at("name") == name) return &part;
  return nullptr;
}

double sum_of_shares(const json& profile) {
  double sum = profile.at("host_share");
  for (const char* kind : {"kernels", "operators"})
    for (const json& part : profile.at(kind)) sum += part.at("share").get<double>();
  return sum;
}

class Profiles : public CommandLine {
 protected:
  runtime::ProcessResult profile(const std::string& file, const std::string& call, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"profile", file, "--call", call, "--bench-time", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return tilepilot(std::move(arguments));
  }
  const std::string script_ = TILEPILOT_SOURCE_DIR "/examples/scripts/matmul.py";
};

TEST_F(Profiles, ACheckTellsKernelsAndOperators) {
  const std::string program = candidate("good_three_parts");
  auto result = tilepilot({"check", program, "-r", model("three_parts"), "--profile", "--json", "--no-cert"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json answer = json::parse(result.out);
  ASSERT_TRUE(answer.contains("profile")) << answer["notes"];
  const json& profile = answer["profile"];
  EXPECT_EQ(profile["target"], "cpu");
  EXPECT_EQ(profile["method"], "clock");
  EXPECT_GE(profile["call"]["samples"], 1);
  ASSERT_EQ(profile["kernels"].size(), 2u);
  const json* waves = find_part(profile["kernels"], "waves_kernel");
  const json* affine = find_part(profile["kernels"], "affine_kernel");
  ASSERT_TRUE(waves && affine) << profile["kernels"];
  EXPECT_EQ((*waves)["line"], line_with(program, "waves"));
  EXPECT_EQ((*affine)["line"], line_with(program, "affine"));
  EXPECT_EQ((*waves)["launches"], 1.0);
  EXPECT_EQ((*affine)["launches"], 1.0);
  const double elements = 256 * 512;
  EXPECT_EQ((*affine)["work"]["other_flops"], 2 * elements);
  EXPECT_EQ((*affine)["work"]["least_bytes"], 2 * 4 * elements);
  EXPECT_EQ((*waves)["work"]["other_flops"], 10 * elements);
  EXPECT_EQ((*waves)["work"]["functions"], 10 * elements);
  EXPECT_EQ((*waves)["work"]["exact"], true);
  EXPECT_EQ((*waves)["cpu"]["checked_lines"], json::array());
  EXPECT_GT((*waves)["us"], (*affine)["us"]) << "ten times the work";
  EXPECT_EQ(profile["kernels"][0]["name"], "waves_kernel");
  const json* softmax = find_part(profile["operators"], "aten::softmax");
  ASSERT_TRUE(softmax) << profile["operators"];
  EXPECT_EQ((*softmax)["count"], 1.0);
  EXPECT_EQ((*softmax)["line"], line_with(program, "softmax"));
  EXPECT_NEAR(sum_of_shares(profile), 1, 0.01);
  const json* sin = find_part(profile["eager"]["operators"], "aten::sin");
  ASSERT_TRUE(sin) << profile["eager"];
  EXPECT_EQ((*sin)["count"], 10.0);
  EXPECT_GT(profile["eager"]["call"]["median_us"], 0.0);
}

TEST_F(Profiles, ACheckTellsThemInWords) {
  auto result = tilepilot(
      {"check", candidate("good_three_parts"), "-r", model("three_parts"), "--profile", "--no-cert", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("profile on cpu, "), ContainsRegex("kernel `waves_kernel`, line [0-9]+: 1 launch"),
                    HasSubstr("of the roofline"), HasSubstr("aten::softmax, line"), HasSubstr("eager: a call takes"),
                    HasSubstr("aten::sin: 10 calls")));
}

// What is not asked for is not made.
TEST_F(Profiles, AreNotPartOfOtherChecks) {
  auto result = tilepilot({"check", candidate("good_three_parts"), "-r", model("three_parts"), "--json", "--no-cert"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_FALSE(json::parse(result.out).contains("profile"));
}

TEST_F(Profiles, StayWithWhatWasGenerated) {
  auto result = tilepilot({"generate", model("scale_softmax"), "-o", "fast.py", "--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json answer = json::parse(result.out);
  ASSERT_TRUE(answer["verdict"].contains("profile")) << answer["verdict"]["notes"];
  EXPECT_GE(answer["verdict"]["profile"]["kernels"].size(), 1u);
  EXPECT_NEAR(sum_of_shares(answer["verdict"]["profile"]), 1, 0.01);
  auto shown = tilepilot({"runs", "show", std::to_string(answer["run"].get<int>()), "--json"});
  EXPECT_THAT(shown.out, HasSubstr("\"kernels\"")) << all(shown);
}

TEST_F(Profiles, OfACallOnTheProcessor) {
  auto text = profile(script_, "matmul(64, 64, 64)");
  ASSERT_EQ(text.exit_code, 0) << all(text);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("profile on cpu, "), ContainsRegex("kernel `matmul_kernel`, line [0-9]+: 1 launch"),
                    HasSubstr("524 kFLOP"), Not(HasSubstr("eager"))));
  auto result = profile(script_, "matmul(64, 64, 64)", {"--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json answer = json::parse(result.out);
  EXPECT_EQ(answer["ok"], true);
  EXPECT_EQ(answer["call"], "matmul(64, 64, 64)");
  const json& kernel = answer["profile"]["kernels"][0];
  EXPECT_EQ(kernel["work"]["product_flops"], 2 * 64 * 64 * 64);
  EXPECT_GT(kernel["time"]["median_us"], 0.0);
  EXPECT_NEAR(sum_of_shares(answer["profile"]), 1, 0.01);
}

// Any call: what it does besides is told, too.
TEST_F(Profiles, OfAFunctionThatCallsKernels) {
  auto result = profile(script_, "main(64, 64, 64)", {"--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json profile = json::parse(result.out)["profile"];
  ASSERT_EQ(profile["kernels"].size(), 1u);
  EXPECT_EQ(profile["kernels"][0]["launches"], 1.0);
  EXPECT_TRUE(find_part(profile["operators"], "aten::randn")) << profile["operators"];
  EXPECT_TRUE(find_part(profile["operators"], "aten::matmul")) << profile["operators"];
}

TEST_F(Profiles, InTheEmulatorAreCounts) {
  auto text = profile(script_, "matmul(64, 64, 64)", {"--target", "emulate:sm_90a"});
  ASSERT_EQ(text.exit_code, 0) << all(text);
  EXPECT_THAT(text.out, AllOf(HasSubstr("matmul_kernel"), HasSubstr("sectors"), HasSubstr("conflicts"),
                              HasSubstr("1 launch a call"), HasSubstr("has TMA"), Not(HasSubstr(" us"))));
  auto result = profile(script_, "matmul(64, 64, 64)", {"--target", "emulate:sm_90a", "--json"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  const json answer = json::parse(result.out);
  EXPECT_EQ(answer["costs"][0]["program"], "matmul_kernel");
  EXPECT_GT(answer["costs"][0]["global_reads"]["global_sectors"], 0);
  const json& kernel = answer["profile"]["kernels"][0];
  EXPECT_EQ(kernel["time"]["median_us"], 0.0) << "times tell nothing there";
  EXPECT_FALSE(kernel["choices"].empty());
  EXPECT_FALSE(kernel.contains("gpu")) << "there is no driver to say it";
}

TEST_F(Profiles, fail_WhatCannotBeProfiled) {
  const auto refused = [&](const std::string& call, const std::string& message) {
    auto result = profile(script_, call);
    EXPECT_EQ(result.exit_code, 2) << call << all(result);
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  refused("matmull(32, 32, 32)", "matmull");
  refused("matmul(32, ", "no Python expression");
  refused("", "what is profiled is a call");
  refused("import tilelang", "what is profiled is a call");
  auto missing = profile("nowhere.py", "f()");
  EXPECT_EQ(missing.exit_code, 2) << all(missing);
  auto raises = profile(script_, "matmul(0, 'a', 1)");
  EXPECT_EQ(raises.exit_code, 1) << all(raises);
  auto json_answer = profile(script_, "matmull(1)", {"--json"});
  EXPECT_EQ(json_answer.exit_code, 2);
  EXPECT_EQ(json::parse(json_answer.out)["ok"], false);
  EXPECT_THAT(profile(script_, "matmul(32, 32, 32)", {"--dtype", "fp16"}).err, HasSubstr("no use for `--dtype`"));
}

TEST_F(Profiles, fail_ChecksThatTellNoTimes) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--no-timing"}, {"--target", "emulate:sm_80"}}) {
    std::vector<std::string> arguments = {"check", candidate("good_three_parts"), "-r", model("three_parts"),
                                          "--profile"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto result = tilepilot(arguments);
    EXPECT_EQ(result.exit_code, 2) << all(result);
    EXPECT_THAT(result.err, HasSubstr("`--profile` measures"));
  }
}

}  // namespace
}  // namespace tilepilot
