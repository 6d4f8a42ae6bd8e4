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
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ServerAnswer;

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
  EXPECT_THAT(progress_, ContainsRegex("answered 429; trying again in 1(\\.[0-9]+)? s"));
  EXPECT_THAT(outcomes(report), ElementsAre("compile_error", "wrong_values", "verified"));
  EXPECT_EQ(report["ending"], "nothing left to try");
  EXPECT_TRUE(report["added_to_corpus"]);
  EXPECT_EQ(text_of(folder_ / "out.py"), text_of(candidate("good_matmul")));

  // The server is gone: a replay needs none.
  json replayed = generate({model("matmul"), "-o", "again.py", "--replay", std::to_string(report["run"].get<int>())});
  EXPECT_THAT(outcomes(replayed), ElementsAre("compile_error", "wrong_values", "verified"));
  EXPECT_NE(replayed["run"], report["run"]);
  EXPECT_EQ(text_of(folder_ / "again.py"), text_of(candidate("good_matmul")));
  // Nor does it need the database of the run.
  const auto saved = tilepilot({"trace", std::to_string(report["run"].get<int>()), "--save", "run.json"});
  EXPECT_EQ(saved.exit_code, 0) << all(saved);
  json elsewhere = generate({model("matmul"), "-o", "third.py", "--store", "new.db", "--replay", "run.json"});
  EXPECT_THAT(outcomes(elsewhere), ElementsAre("compile_error", "wrong_values", "verified"));
  EXPECT_EQ(text_of(folder_ / "third.py"), text_of(candidate("good_matmul")));
}

TEST_F(LanguageModel, FailRefusedKey) {
  ChatServer server({{401, R"({"error": {"message": "Incorrect API key provided"}})"}});
  json report = generate({model("matmul"), "--quiet", "--llm-url", server.url(), "--llm-model", "test"}, 3);
  EXPECT_FALSE(report["ok"]);
  EXPECT_EQ(report["errors"][0]["kind"], "author_failed");
  EXPECT_THAT(progress_, AllOf(HasSubstr("Incorrect API key provided"), HasSubstr("TILEPILOT_API_KEY")));
}

TEST_F(LanguageModel, FailAddressesAtOnce) {
  for (const char* url : {"ftp://localhost/v1", "file:///etc/passwd", "localhost:8000/v1", "http://key@localhost/v1"}) {
    json report = generate({model("matmul"), "--quiet", "--llm-url", url, "--llm-model", "test"}, 2);
    EXPECT_EQ(report["errors"][0]["kind"], "bad_usage") << url;
  }
}

TEST_F(LanguageModel, StopsAtItsBudget) {
  ChatServer server(
      {program(candidate("fail_wrong_values")), program(candidate("fail_syntax")), program(candidate("good_matmul"))});
  ASSERT_TRUE(write_file(folder_ / "prices.json", R"({"te*": {"input": 10, "output": 200}})"));
  json report = generate({model("matmul"), "-o", "out.py", "--llm-url", server.url(), "--llm-model", "test",
                          "--llm-max-tokens", "1000", "--dollars", "0.3", "--prices", "prices.json"},
                         1);
  EXPECT_EQ(report["ending"], "money spent");
  EXPECT_THAT(outcomes(report), ElementsAre("wrong_values", "compile_error"));
  EXPECT_NEAR(report["dollars"], 2 * 0.11, 1e-9);  // a third answer of 500 tokens cannot be paid
}

TEST_F(LanguageModel, PingTellsWhatAnEndpointIs) {
  ChatServer server({{400, R"({"error": {"message": "stream_options: extra fields are not permitted"}})"},
                     ServerAnswer{.body = ChatServer::completion("pong").body,
                                  .headers = {{"x-ratelimit-remaining-requests", "17"}}}});
  auto told = tilepilot({"llm", "ping", "--llm-url", server.url(), "--llm-model", "test", "--price-in", "2"});
  EXPECT_EQ(told.exit_code, 0) << all(told);
  EXPECT_THAT(told.out, AllOf(HasSubstr("\"pong\""), HasSubstr("not streamed"), HasSubstr("1000 read, 500 written"),
                              HasSubstr("remaining-requests 17"), HasSubstr("`stream_options` is left out")));
  auto failed = tilepilot({"llm", "ping", "--llm-url", server.url(), "--llm-model", "test", "--json"});
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_THAT(failed.out, HasSubstr("the endpoint answered 500"));
}

TEST_F(LanguageModel, PromptIsWhatIsSent) {
  ChatServer server({ChatServer::completion("DONE"), ChatServer::completion("DONE")});
  auto printed = tilepilot(
      {"prompt", model("matmul"), "--target", "cpu", "--llm-url", server.url(), "--llm-model", "test", "--json"});
  ASSERT_EQ(printed.exit_code, 0) << all(printed);
  const json prompt = json::parse(printed.out);
  generate({model("matmul"), "-o", "out.py", "--llm-url", server.url(), "--llm-model", "test"}, 1);
  EXPECT_EQ(prompt["request"], server.requests().at(0));
  EXPECT_THAT(prompt["messages"][1]["content"].get<std::string>(),
              AllOf(HasSubstr("matmul("), HasSubstr("FLOP"), HasSubstr("The bound: whatever the program"),
                    HasSubstr("GB/s"), HasSubstr("a call of eager takes"), HasSubstr("% in `matmul`")));
  auto shorter = tilepilot({"prompt", model("matmul"), "--target", "cpu", "--llm-context", "14000", "--json"});
  EXPECT_GT(json::parse(shorter.out)["left_out"], 0);
}

TEST_F(LanguageModel, MixedAuthorGoesOnWhereTheBuiltinOneEndsAndIsTraced) {
  ChatServer server({ChatServer::completion("ask: language T.clear\nask: ir matmul(64, 64, 64)\nask: ir"),
                     program(candidate("good_matmul")), ChatServer::completion("DONE")});
  auto ran = tilepilot({"generate", model("matmul"), "-o", "out.py", "--llm-url", server.url(), "--llm-model", "test",
                        "--json", "--trials", "2", "--force"});
  EXPECT_EQ(ran.exit_code, 0) << all(ran);
  const json report = json::parse(ran.out);
  EXPECT_EQ(report["author"], "mixed");
  EXPECT_GE(report["attempts"].size(), 1u);
  EXPECT_EQ(server.requests().size(), 3u);
  const std::string answered = server.requests().at(1)["messages"].back()["content"];
  EXPECT_THAT(answered, AllOf(HasSubstr("`T.clear(buffer"), HasSubstr("ask: ir matmul(64, 64, 64)"),
                              HasSubstr("name the sizes with a call"), Not(HasSubstr("/asked.py"))));
  const std::string run = std::to_string(report["run"].get<int>());
  auto traced = tilepilot({"trace", run});
  EXPECT_EQ(traced.exit_code, 0) << all(traced);
  EXPECT_THAT(traced.out, AllOf(HasSubstr("3 requests, 0 failed"), HasSubstr("An attempt.")));
  EXPECT_EQ(tilepilot({"trace", run, "--html", "run.html"}).exit_code, 0);
  EXPECT_THAT(text_of(folder_ / "run.html"), HasSubstr("ask: language T.clear"));
  EXPECT_EQ(tilepilot({"trace", "export", "-o", "records.jsonl"}).exit_code, 0);
  EXPECT_THAT(text_of(folder_ / "records.jsonl"), HasSubstr("\"type\":\"attempt\""));
  EXPECT_EQ(tilepilot({"trace", "77"}).exit_code, 2);
  EXPECT_EQ(tilepilot({"trace"}).exit_code, 2);
}

// A model file that looks for the key wherever a process can look.
constexpr const char* kCuriousModel = R"(
import os, pathlib
import torch
import torch.nn as nn

def look(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return ""

pathlib.Path("FOUND").write_text(str(dict(os.environ)) + look(os.getppid()) + look("self"))

class Model(nn.Module):
    def forward(self, a):
        return torch.relu(a) * 2.0

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
)";

TEST_F(LanguageModel, LeavesTheKeyNowhere) {
  const std::string key = "sk-planted-5e1f0c9a";
  std::string curious = kCuriousModel;
  curious.replace(curious.find("FOUND"), 5, (folder_ / "found.txt").string());
  ASSERT_TRUE(write_file(folder_ / "curious.py", curious));
  ASSERT_TRUE(write_file(folder_ / "key", key + "\n"));
  std::filesystem::permissions(folder_ / "key", std::filesystem::perms::owner_read);
  for (const bool by_file : {false, true}) {
    ChatServer server({{500, "what do you want with " + key},
                       ChatServer::completion("I saw " + key + "\n```python\nclass ModelNew: pass\n```"),
                       {401, R"({"error": {"message": "Incorrect API key provided: )" + key + R"("}})"}});
    std::vector<std::string> arguments = {"generate",    (folder_ / "curious.py").string(),
                                          "--author",    "llm",
                                          "--llm-url",   server.url() + "?key=" + key,
                                          "--llm-model", "test",
                                          "-o",          "out.py",
                                          "--json"};
    if (by_file) arguments.insert(arguments.end(), {"--llm-key-file", "key"});
    auto ran = tilepilot(arguments, {by_file ? "OTHER=1" : "TILEPILOT_API_KEY=" + key,
                                     "TILEPILOT_CACHE=" + (folder_ / "cache").string()});
    EXPECT_EQ(server.last_header("Authorization"), "Bearer " + key);
    EXPECT_THAT(all(ran), AllOf(HasSubstr("[key]"), Not(HasSubstr(key))));
    auto shown = tilepilot({"runs", "show", "1", "--json"});
    EXPECT_THAT(all(shown), Not(HasSubstr(key)));
    EXPECT_THAT(text_of(folder_ / "found.txt"), AllOf(HasSubstr("PATH"), Not(HasSubstr(key))));
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (!entry.is_regular_file() || entry.path() == folder_ / "key") continue;
      ++files;
      EXPECT_THAT(text_of(entry.path()), Not(HasSubstr(key))) << entry.path();
    }
    EXPECT_GT(files, 2);
  }
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
