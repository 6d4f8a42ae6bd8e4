// `generate --author llm` against an endpoint on this machine.
#include <nlohmann/json.hpp>

#include "compiler/source/file.h"
#include "tests/chat_server.h"
#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::ChatServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(const std::filesystem::path& file) {
  std::string text;
  EXPECT_TRUE(read_file(file, text)) << file;
  return text;
}

testing::ServerAnswer program(const std::filesystem::path& file) {
  return ChatServer::completion("An attempt.\n```python\n" + text_of(file) + "```\n");
}

class LanguageModel : public CommandLine {
 protected:
  json generate(std::vector<std::string> options, int exit_code = 0) {
    std::vector<std::string> arguments = {"generate", "--author", "llm", "--json", "--trials", "2"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    auto result = tilepilot(arguments, {"TILEPILOT_API_KEY=secret-key"});
    EXPECT_EQ(result.exit_code, exit_code) << all(result);
    progress_ = result.err;
    json report = json::parse(result.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << result.out;
    return report;
  }
  static std::vector<std::string> outcomes(const json& report) {
    std::vector<std::string> names;
    for (const json& attempt : report.at("attempts")) names.push_back(attempt.at("verdict").at("outcome"));
    return names;
  }
  std::string progress_;
};

TEST_F(LanguageModel, MendsItsMistakesAndCanBeReplayed) {
  json report;
  {
    ChatServer server({program(candidate("fail_syntax")),
                       {429, "slow down", "1"},
                       program(candidate("fail_wrong_values")),
                       program(candidate("good_matmul")),
                       ChatServer::completion("DONE")});
    report = generate({model("matmul"), "-o", "out.py", "--llm-url", server.url(), "--llm-model", "test"});
    auto requests = server.requests();
    ASSERT_EQ(requests.size(), 5u);
    auto last_words = [&](size_t request) {
      return requests[request]["messages"].back()["content"].get<std::string>();
    };
    EXPECT_THAT(last_words(0), AllOf(HasSubstr("return a @ b"), HasSubstr("A verified program that may help")));
    EXPECT_THAT(last_words(1), AllOf(HasSubstr("compile_error at line 22"), HasSubstr("^")));
    EXPECT_EQ(requests[1], requests[2]);
    EXPECT_THAT(last_words(3), HasSubstr("wrong_values"));
    EXPECT_THAT(last_words(4), HasSubstr("times as fast"));
    EXPECT_THAT(server.authorizations(), ::testing::Each("Bearer secret-key"));
  }
  EXPECT_THAT(progress_, HasSubstr("answered 429; trying again in 1 s"));
  EXPECT_THAT(outcomes(report), ElementsAre("compile_error", "wrong_values", "verified"));
  EXPECT_EQ(report["ending"], "nothing left to try");
  EXPECT_TRUE(report["added_to_corpus"]);
  EXPECT_EQ(text_of(folder_ / "out.py"), text_of(candidate("good_matmul")));

  // The server is gone: a replay needs none.
  json replayed = generate({model("matmul"), "-o", "again.py", "--replay", std::to_string(report["run"].get<int>())});
  EXPECT_THAT(outcomes(replayed), ElementsAre("compile_error", "wrong_values", "verified"));
  EXPECT_NE(replayed["run"], report["run"]);
  EXPECT_EQ(text_of(folder_ / "again.py"), text_of(candidate("good_matmul")));
}

TEST_F(LanguageModel, FailRefusedKey) {
  ChatServer server({{401, R"({"error": {"message": "Incorrect API key provided"}})"}});
  json report = generate({model("matmul"), "--quiet", "--llm-url", server.url(), "--llm-model", "test"}, 3);
  EXPECT_FALSE(report["ok"]);
  EXPECT_EQ(report["errors"][0]["kind"], "author_failed");
  EXPECT_THAT(progress_, AllOf(HasSubstr("Incorrect API key provided"), HasSubstr("TILEPILOT_API_KEY")));
}

// A program that passes only because the model does nothing is written, but teaches nobody.
TEST_F(LanguageModel, KeepsDegenerateProgramsOutOfTheCorpus) {
  const std::filesystem::path torch = std::filesystem::path(TILEPILOT_SOURCE_DIR) / "tests/torch";
  ChatServer server({program(torch / "candidates/honest_copy_is_degenerate.py"), ChatServer::completion("DONE")});
  json report = generate({(torch / "models/copies.py").string(), "-o", "copy.py", "--llm-url", server.url(),
                          "--llm-model", "test", "--dollars", "1"});
  EXPECT_THAT(outcomes(report), ElementsAre("verified"));
  EXPECT_TRUE(report["attempts"][0]["verdict"]["degenerate"]);
  EXPECT_FALSE(report["added_to_corpus"]);
  EXPECT_THAT(progress_, HasSubstr("`--dollars` limits nothing without `--price-in`"));
  EXPECT_THAT(tilepilot({"corpus", "list"}).out, Not(HasSubstr("generated")));

  auto told = tilepilot({"generate", (torch / "models/copies.py").string(), "-o", "copy.py", "--author", "llm",
                         "--replay", std::to_string(report["run"].get<int>())});
  EXPECT_THAT(told.out, AllOf(HasSubstr("verified, but degenerate"), HasSubstr("  note  ")));
}

}  // namespace
}  // namespace tilepilot
