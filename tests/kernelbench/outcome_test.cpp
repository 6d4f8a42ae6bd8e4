// What the answer of `generate --json` means for a batch.
#include <gmock/gmock.h>

#include "kernelbench/generate_process.h"

namespace tilepilot::kernelbench {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* name;
  const char* text;
  Ending ending;
  const char* reason;
};

class Outcomes : public ::testing::TestWithParam<Case> {};

TEST_P(Outcomes, AreReadFromTheAnswer) {
  const Outcome outcome = outcome_of(GetParam().text, 1, "it ended with signal 11 (Segmentation fault)");
  EXPECT_EQ(outcome.ending, GetParam().ending) << to_string(outcome.ending);
  EXPECT_THAT(outcome.reason, HasSubstr(GetParam().reason));
}

constexpr Case kCases[] = {
    {"verified", R"({"ok": true, "run": 3, "ending": "nothing left to try", "verdict": {"given_inputs_only": false}})",
     Ending::verified, ""},
    {"given_inputs", R"({"ok": true, "ending": "nothing left to try", "verdict": {"given_inputs_only": true}})",
     Ending::given_inputs_only, "given inputs only"},
    {"failed",
     R"({"ok": false, "ending": "nothing left to try",
         "attempts": [{"verdict": {"outcome": "wrong_values", "detail": "output 0 differs"}}]})",
     Ending::failed, "none of 1 attempts: wrong_values: output 0 differs"},
    {"abstained", R"({"ok": false, "ending": "nothing left to try", "attempts": []})", Ending::abstained,
     "the author sees nothing"},
    {"beyond_the_author",
     R"({"ok": false, "author": "builtin", "ending": "the author failed", "attempts": [],
         "errors": [{"kind": "author_failed", "message": "`aten::sort` is not supported"}]})",
     Ending::abstained, "aten::sort"},
    {"endpoint_lost",
     R"({"ok": false, "author": "llm", "ending": "the author failed", "attempts": [],
         "errors": [{"kind": "author_failed", "message": "no answer"}]})",
     Ending::not_judged, "no answer"},
    {"worker_lost", R"({"ok": false, "ending": "the worker failed", "attempts": []})", Ending::not_judged, "worker"},
    {"broken_model", R"({"ok": false, "errors": [{"kind": "model_invalid", "message": "no class `Model`"}]})",
     Ending::not_loaded, "no class"},
    {"too_large", R"({"ok": false, "errors": [{"kind": "out_of_memory", "message": "needs 31 GB, 24 here"}]})",
     Ending::does_not_fit, "31 GB"},
    {"no_driver", R"({"ok": false, "errors": [{"kind": "driver_missing", "message": "no driver"}]})",
     Ending::not_judged, "no driver"},
    {"crash", "", Ending::not_judged, "signal 11"},
    {"another_form", R"({"ok": true})", Ending::not_judged, "another form"},
    {"wrong_type", R"({"ok": 3, "ending": 7})", Ending::not_judged, "another form"},
};

INSTANTIATE_TEST_SUITE_P(All, Outcomes, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Outcomes, KeepWhatWasSpent) {
  const Outcome outcome = outcome_of(R"({"ok": false, "run": 7, "dollars": 0.25, "ending": "money spent",
                                         "attempts": []})",
                                     1, "");
  EXPECT_EQ(outcome.run, 7);
  EXPECT_EQ(outcome.dollars, 0.25);
  EXPECT_TRUE(outcome.lacks_money);
  EXPECT_EQ(outcome.reason, "no candidate: money spent before there was one");
}

}  // namespace
}  // namespace tilepilot::kernelbench
