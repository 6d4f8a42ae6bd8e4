#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "eval/diagnostic_json.h"
#include "eval/graph/argument_json.h"
#include "eval/judge.h"

namespace tilepilot::eval {
namespace {

Verdict sample() {
  Verdict verdict;
  verdict.outcome = Outcome::wrong_values;
  verdict.detail = "the output is wrong";
  verdict.target = "cuda:sm_90a";
  verdict.line = 12;
  verdict.diagnostics.push_back(
      Diagnostic{DiagnosticKind::shape_mismatch, {0, 3, 9}, "shapes differ"}.note({0, 1, 2}, "here").with_hint("pad"));
  verdict.rendered = {"text"};
  verdict.errors.push_back({1, 0, 0.5, std::numeric_limits<double>::infinity(), 1e-7, 1e-6, "[3]", "NaN", 0.25});
  verdict.candidate = Timing{10, 9, 11, 30};
  verdict.eager = Timing{20, 19, 21, 30};
  verdict.generated_share = 0.75;
  verdict.kernels = {"softmax"};
  verdict.notes = {"a note"};
  verdict.degenerate = true;
  verdict.kernelbench = KernelBenchRule{5, 4, 1e-4};
  verdict.kernelbench_timing = KernelBenchTiming{{6, 0.5, 5, 7, 100}, {2, 0.25, 1.5, 3, 100}};
  verdict.compiled = {{"default", {15, 14, 16, 30}, 1.5, 1.4, 1.6, 21},
                      {"max-autotune", {12, 11, 13, 30}, 1.2, 1.1, 1.3, 60}};
  verdict.launch_bound = true;
  verdict.paired = {{2, 1.25, 1.125, 1.5}};
  verdict.graph = GraphTiming{{2, 1, 3, 7}, {6, 5, 7, 7}, 2.5, 3.5};
  verdict.gpu_state = GpuState{1755, 1980, 3201, std::nullopt, 61, {"sw_power_cap"}, 7};
  return verdict;
}

TEST(VerdictJson, RoundTrip) {
  auto json = nlohmann::json::parse(to_json(sample()).dump());
  Verdict back = verdict_from_json(json);
  EXPECT_EQ(to_json(back).dump(), json.dump());
  EXPECT_EQ(back.outcome, Outcome::wrong_values);
  EXPECT_EQ(back.target, "cuda:sm_90a");
  EXPECT_EQ(back.diagnostics.at(0).kind, DiagnosticKind::shape_mismatch);
  EXPECT_EQ(back.diagnostics.at(0).notes.at(0).message, "here");
  EXPECT_EQ(back.errors.at(0).max_rel, std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(back.speedup(), 2);
  ASSERT_EQ(back.compiled.size(), 2u);
  EXPECT_EQ(back.best_compiled()->mode, "max-autotune");
  EXPECT_EQ(json["compiled"]["best"], "max-autotune");
  EXPECT_EQ(json["compiled"]["default"]["speedup_interval"][1], 1.6);
  EXPECT_EQ(back.compiled[0].compile_s, 21);
  EXPECT_TRUE(back.launch_bound);
  ASSERT_EQ(back.paired.size(), 1u);
  EXPECT_EQ(back.paired[0].other, 2u);
  EXPECT_EQ(back.paired[0].ratio, 1.25);
  EXPECT_EQ(back.paired[0].low, 1.125);
  EXPECT_EQ(back.paired[0].high, 1.5);
  ASSERT_TRUE(back.graph);
  EXPECT_EQ(back.graph->speedup_high, 3.5);
  EXPECT_EQ(json["graph"]["speedup"], 3);
  ASSERT_TRUE(back.kernelbench);
  EXPECT_EQ(back.kernelbench->passed, 4);
  ASSERT_TRUE(back.kernelbench_timing);
  EXPECT_EQ(back.kernelbench_timing->candidate.max_ms, 3);
  EXPECT_EQ(json["kernelbench_timing"]["speedup"], 3);
  ASSERT_TRUE(back.gpu_state);
  EXPECT_EQ(back.gpu_state->sm_mhz_low, 1755);
  EXPECT_FALSE(back.gpu_state->power_w);
}

TEST(VerdictJson, WhatWasNotTimedIsNotMentioned) {
  Verdict verdict = sample();
  verdict.compiled.clear();
  verdict.graph.reset();
  const auto json = to_json(verdict);
  EXPECT_TRUE(json["compiled"].is_null());
  EXPECT_FALSE(json.contains("graph"));
  EXPECT_EQ(verdict_from_json(json).best_compiled(), nullptr);
}

TEST(VerdictJson, ReadsTheOneModeOfEarlierStores) {
  auto json = to_json(sample());
  json["compiled"] = {{"median_us", 5}, {"low_us", 4}, {"high_us", 6}, {"samples", 30}};
  const auto compiled = verdict_from_json(json).compiled;
  ASSERT_EQ(compiled.size(), 1u);
  EXPECT_EQ(compiled[0].mode, "default");
  EXPECT_EQ(compiled[0].timing.median_us, 5);
}

TEST(VerdictJson, AGpuThatDoesNotTellIsNotMentioned) {
  Verdict verdict = sample();
  verdict.gpu_state.reset();
  EXPECT_FALSE(to_json(verdict).contains("gpu_state"));
  EXPECT_FALSE(verdict_from_json(to_json(verdict)).gpu_state);
}

TEST(VerdictJson, EveryOutcomeHasAName) {
  for (int i = 0; i <= static_cast<int>(Outcome::worker_failed); ++i) {
    auto outcome = static_cast<Outcome>(i);
    EXPECT_EQ(parse_outcome(to_string(outcome)), outcome) << i;
  }
  EXPECT_FALSE(parse_outcome("fine"));
}

TEST(ArgumentJson, RoundTrip) {
  for (auto text :
       {"null", "true", "3", "2.5", "\"mean\"", R"({"value":4})", R"({"dtype":"float32"})", R"({"device":"cpu"})",
        R"({"layout":"strided"})", R"({"memory_format":"channels_last"})", R"({"float":"inf"})", R"({"float":"-inf"})",
        R"({"float":"nan"})", R"([1,[2,null],{"value":0}])", R"({"dict":[["a",1],["b",[{"value":2}]]]})"}) {
    auto argument = argument_from_json(nlohmann::json::parse(text));
    ASSERT_TRUE(argument.ok()) << text;
    EXPECT_EQ(to_json(*argument).dump(), text);
  }
}

TEST(ArgumentJson, fail_UnknownTags) {
  EXPECT_FALSE(argument_from_json(nlohmann::json::parse(R"({"tensor":4})")).ok());
  EXPECT_FALSE(argument_from_json(nlohmann::json::parse(R"({"value":4,"dtype":"x"})")).ok());
  EXPECT_FALSE(argument_from_json(nlohmann::json::parse(R"({"float":"big"})")).ok());
}

}  // namespace
}  // namespace tilepilot::eval
