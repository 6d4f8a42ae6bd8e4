// The tools of `tilepilot mcp`, each once on the processor, and what clients do to them while they run.
#include <fstream>

#include "tests/chat_server.h"
#include "tests/cli/mcp_fixture.h"

namespace tilepilot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class McpTools : public Mcp {
 protected:
  void SetUp() override {
    start();
    begin_session();
  }
  void restart(const std::vector<std::string>& options) {
    close_input();
    status_at_end(10);
    close(out_);
    start(options);
    begin_session();
  }
  static constexpr const char* kMatmul = TILEPILOT_SOURCE_DIR "/examples/scripts/matmul.py";
  // The processes of a call once it exports its model.
  std::set<pid_t> exporting() const {
    std::set<pid_t> children;
    const auto exports = [](pid_t process) {
      return content_of(folder_of(process) / "cmdline").find("export_reference.py") != std::string::npos;
    };
    EXPECT_TRUE(comes_true(60, [&] {
      children = descendants();
      return std::any_of(children.begin(), children.end(), exports);
    }));
    return children;
  }
  // A model whose export never ends.
  json endless() const { return {{"program", candidate("good_matmul")}, {"model", model("fail_endless_import")}}; }
};

TEST_F(McpTools, CheckJudges) {
  const json right =
      call("check", {{"program", candidate("good_matmul")}, {"model", model("matmul")}, {"no_timing", true}});
  EXPECT_EQ(right["isError"], false);
  EXPECT_EQ(right["structuredContent"]["ok"], true);
  EXPECT_EQ(right["structuredContent"]["outcome"], "verified");
  EXPECT_THAT(text_of(right), AllOf(HasSubstr("verified"), HasSubstr("largest error")));
  // A program that is wrong is an answer, not a failure.
  const json wrong =
      call("check", {{"program", candidate("fail_wrong_values")}, {"model", model("matmul")}, {"no_timing", true}});
  EXPECT_EQ(wrong["isError"], false) << wrong;
  EXPECT_EQ(wrong["structuredContent"]["ok"], false);
  EXPECT_THAT(text_of(wrong), HasSubstr("largest error"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "good_matmul.cert.json"));
}

TEST_F(McpTools, CheckTakesTexts) {
  const json result = call("check", {{"program_source", text_of_file(candidate("fail_gemm_shape"))},
                                     {"model_source", text_of_file(model("matmul"))},
                                     {"no_timing", true}});
  EXPECT_EQ(result["isError"], false) << result;
  EXPECT_EQ(result["structuredContent"]["ok"], false);
  EXPECT_GT(result["structuredContent"]["line"].get<int>(), 0);
  EXPECT_THAT(text_of(result), AllOf(HasSubstr("^"), HasSubstr("[shape_mismatch]")));
  EXPECT_THAT(result.dump(), Not(HasSubstr("work/run-")));  // nobody can open that file
}

TEST_F(McpTools, CompileTellsErrorsWithLinesAndCarets) {
  const json result = call("compile", {{"program", candidate("fail_unknown_name")}, {"call", "matmul(64, 64, 64)"}});
  EXPECT_EQ(result["isError"], false);
  const json& error = result["structuredContent"]["errors"][0];
  EXPECT_GT(error["line"].get<int>(), 0);
  EXPECT_FALSE(error["message"].get<std::string>().empty());
  EXPECT_THAT(text_of(result), AllOf(HasSubstr("fail_unknown_name.py:"), HasSubstr("^")));
  EXPECT_EQ(result["structuredContent"]["rendered"][0], text_of(result));
}

TEST_F(McpTools, CompileReturnsSourceOnRequest) {
  const json arguments = {{"program", kMatmul}, {"call", "matmul(128, 128, 128)"}};
  const json quiet = call("compile", arguments);
  EXPECT_EQ(quiet["structuredContent"]["ok"], true) << quiet;
  EXPECT_FALSE(quiet["structuredContent"].contains("text"));
  EXPECT_THAT(text_of(quiet), HasSubstr("no errors"));
  json with_source = arguments;
  with_source.update({{"emit", "source"}, {"target", "cuda:sm_90a"}});
  const json source = call("compile", with_source);
  EXPECT_THAT(source["structuredContent"]["text"].get<std::string>(), HasSubstr("__global__"));
  EXPECT_THAT(text_of(source), HasSubstr("__global__"));
}

TEST_F(McpTools, ExplainTellsChoices) {
  const json result =
      call("explain", {{"program", kMatmul}, {"call", "matmul(1024, 1024, 1024)"}, {"target", "cuda:sm_90a"}});
  EXPECT_EQ(result["isError"], false) << result;
  EXPECT_THAT(text_of(result), HasSubstr("wgmma"));
}

TEST_F(McpTools, ProfileTellsWhereTimeGoes) {
  const json result = call("profile", {{"program", kMatmul}, {"call", "matmul(64, 64, 64)"}, {"bench_time", 20}});
  EXPECT_EQ(result["structuredContent"]["ok"], true) << result;
  EXPECT_TRUE(result["structuredContent"].contains("profile"));
  EXPECT_THAT(text_of(result), HasSubstr("matmul"));
  const json counted =
      call("profile", {{"program", kMatmul}, {"call", "matmul(64, 64, 64)"}, {"target", "emulate:sm_80"}});
  EXPECT_TRUE(counted["structuredContent"].contains("costs")) << counted;
  EXPECT_FALSE(text_of(counted).empty());
}

TEST_F(McpTools, CorpusIsSearchedAndShown) {
  const json found = call("search_corpus", {{"text", "softmax"}, {"count", 2}});
  const json& hits = found["structuredContent"]["hits"];
  ASSERT_FALSE(hits.empty()) << found;
  EXPECT_LE(hits.size(), 2u);
  const std::string name = hits[0]["entry"]["name"];
  EXPECT_THAT(text_of(found), HasSubstr(name));
  const json shown = call("show_program", {{"entry", name}});
  EXPECT_THAT(shown["structuredContent"]["entry"]["source"].get<std::string>(), HasSubstr("T.Kernel"));
  EXPECT_THAT(text_of(shown), HasSubstr("T.Kernel"));
  EXPECT_EQ(call("show_program", {{"entry", "no_such_entry"}})["isError"], true);
}

TEST_F(McpTools, WhatIsEmptyIsNotGiven) {
  const json result = call("search_corpus", {{"text", ""}, {"model", nullptr}, {"count", 2}});
  EXPECT_EQ(result["isError"], true);
  EXPECT_THAT(text_of(result), HasSubstr("nothing to search for"));
  EXPECT_THAT(text_of(call("language", {{"construct", ""}})), HasSubstr("T.copy"));
}

TEST_F(McpTools, AFailedGenerateSaysWhatWasTried) {
  const json result = call("generate", {{"model", model("fail_only_sorts")}, {"no_corpus", true}});
  EXPECT_EQ(result["isError"], false);
  EXPECT_EQ(result["structuredContent"]["ok"], false);
  EXPECT_THAT(text_of(result), AllOf(HasSubstr("no program"), HasSubstr("1 operators")));
  const std::string twice = text_of(call("generate", {{"model", model("matmul")}, {"output", "/nonexistent/x.py"}}));
  EXPECT_EQ(twice.find("cannot write"), twice.rfind("cannot write")) << twice;
}

TEST_F(McpTools, ProblemsAreShown) {
  const json result = call("show_problem", {{"model", model("matmul")}, {"graph_only", true}});
  EXPECT_EQ(result["structuredContent"]["ok"], true) << result;
  EXPECT_THAT(text_of(result), AllOf(HasSubstr("roofline"), HasSubstr("input")));
}

TEST_F(McpTools, LanguageIsTold) {
  EXPECT_THAT(text_of(call("language", {{"construct", "T.gemm"}})), HasSubstr("`T.gemm("));
  EXPECT_THAT(text_of(call("language", {{"construct", "gem"}})), HasSubstr("T.gemm"));
  EXPECT_THAT(text_of(call("language", json::object())), HasSubstr("T.copy"));
}

TEST_F(McpTools, GenerateReturnsAProgramOrWritesIt) {
  const json asked = {
      {"model_source", text_of_file(model("scale_softmax"))}, {"attempts", 1}, {"no_corpus", true}, {"trials", 2}};
  const json returned = call("generate", asked);
  ASSERT_EQ(returned["structuredContent"]["ok"], true) << returned;
  const std::string program = returned["structuredContent"]["program"];
  EXPECT_THAT(program, HasSubstr("class ModelNew"));
  EXPECT_EQ(returned["content"][1]["text"], program);
  EXPECT_THAT(returned["content"][0]["text"].get<std::string>(), HasSubstr("verified"));
  EXPECT_FALSE(returned["structuredContent"].contains("output"));
  json named = asked;
  named["output"] = "written.py";
  const json written = call("generate", named);
  EXPECT_EQ(written["structuredContent"]["output"], "written.py") << written;
  EXPECT_FALSE(written["structuredContent"].contains("program"));
  EXPECT_THAT(content_of(folder_ / "written.py"), HasSubstr("class ModelNew"));
  // What was not named is not written.
  for (const json& nothing : {json(), json("")}) {
    named["output"] = nothing;
    EXPECT_TRUE(call("generate", named)["structuredContent"].contains("program"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model_tilepilot.py"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "written.cert.json"));
}

TEST_F(McpTools, WrongArgumentsSayWhatIsExpected) {
  struct Case {
    const char* tool;
    json arguments;
    const char* message;
  };
  const std::string good = candidate("good_matmul"), matmul = model("matmul");
  const Case cases[] = {
      {"check", json::object(), "`program` or `program_source` is missing; `model` or `model_source` is missing"},
      {"check", {{"program", good}, {"program_source", "x"}, {"model", matmul}}, "are both given"},
      {"check", {{"progam", good}, {"model", matmul}}, "did you mean `program`?"},
      {"check", {{"program", 5}, {"model", matmul}}, "`program` is 5; it takes a string"},
      {"check", {{"program", good}, {"model", matmul}, {"trials", "many"}}, "it takes an integer"},
      {"check", {{"program", good}, {"model", matmul}, {"trials", 1.5}}, "it takes an integer"},
      {"check", {{"program", good}, {"model", matmul}, {"trials", 0}}, "--trials"},
      {"check", {{"program", good}, {"model", matmul}, {"no_timing", "yes"}}, "it takes a boolean"},
      {"check", {{"program", good}, {"model", matmul}, {"dtype", "fp8"}}, "it takes one of"},
      {"check", {{"program", good}, {"model", matmul}, {"target", "abacus"}}, "abacus"},
      {"check", {{"program", good}, {"model", matmul}, {"timeout_s", -1}}, "`timeout_s`"},
      {"check", {{"program", std::string("a\0b", 3)}, {"model", matmul}}, "zero byte"},
      {"check", {{"program", ""}, {"model", matmul}}, "`program_source` is missing"},
      {"check", {{"program", "no_such.py"}, {"model", matmul}}, "no_such.py"},
      {"check", {{"program", "--python=/bin/false"}, {"model", matmul}}, "./--python=/bin/false"},
      {"profile", {{"program", kMatmul}}, "`call` is missing"},
      {"show_program", {{"entry", "--store=x"}}, "is no name"},
      {"generate", {{"model", matmul}, {"author", "llm"}}, "this server has none"},
      {"generate", {{"model", matmul}, {"python", "/bin/false"}}, "there is no argument `python`"},
  };
  for (const Case& wrong : cases) {
    const json result = call(wrong.tool, wrong.arguments);
    EXPECT_EQ(result["isError"], true) << wrong.message << result;
    EXPECT_EQ(result["structuredContent"]["ok"], false);
    EXPECT_THAT(text_of(result), HasSubstr(wrong.message));
    EXPECT_THAT(text_of(result), Not(HasSubstr("--help"))) << "clients have none";
  }
}

TEST_F(McpTools, CallsAreCancelled) {
  send_call(1, "check", endless(), "token");
  const std::set<pid_t> children = exporting();
  // Others are answered meanwhile.
  EXPECT_EQ(ask(2, "ping")["result"], json::object());
  EXPECT_THAT(text_of(call("language", {{"construct", "T.copy"}})), HasSubstr("T.copy"));
  EXPECT_EQ(code_of(ask(1, "tools/call", {{"name", "language"}})), -32602);  // that id is under way
  send(
      {{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 1}, {"reason", "bored"}}}});
  EXPECT_TRUE(comes_true(20, [&] { return std::none_of(children.begin(), children.end(), is_alive); }));
  others_.clear();
  EXPECT_EQ(ask(3, "ping")["result"], json::object());
  EXPECT_TRUE(others_.empty()) << json(others_);  // neither an answer nor progress
  // The id is free again.
  send_call(1, "language", {{"construct", "T.copy"}});
  EXPECT_TRUE(answer_to(1).contains("result"));
}

TEST_F(McpTools, CallsEndAtTheirTimeLimit) {
  json arguments = endless();
  arguments["timeout_s"] = 2;
  const json result = call("check", arguments);
  EXPECT_EQ(result["isError"], true);
  EXPECT_THAT(text_of(result), AllOf(HasSubstr("within 2 seconds"), HasSubstr("`timeout_s`")));
}

TEST_F(McpTools, ProgressIsToldToThoseWhoAsk) {
  const json arguments = {{"program", candidate("good_matmul")}, {"model", model("matmul")}, {"no_timing", true}};
  send_call("a", "check", arguments, "the token");
  EXPECT_TRUE(answer_to("a").contains("result"));
  ASSERT_FALSE(others_.empty());
  double before = 0;
  for (const json& told : others_) {
    EXPECT_EQ(told["method"], "notifications/progress");
    EXPECT_EQ(told["params"]["progressToken"], "the token");
    EXPECT_GT(told["params"]["progress"].get<double>(), before);
    before = told["params"]["progress"];
    EXPECT_FALSE(told["params"]["message"].get<std::string>().empty());
  }
  others_.clear();
  call("check", arguments);
  EXPECT_TRUE(others_.empty()) << json(others_);
}

TEST_F(McpTools, LongCallsSayThatTheyGoOn) {
  send_call(1, "check", endless(), 7);
  for (std::string message; message.find("exporting") == std::string::npos || !message.ends_with(" s)");) {
    const auto told = receive(60);
    ASSERT_TRUE(told && told->contains("method")) << told.value_or(json());
    EXPECT_EQ(told->at("params").at("progressToken"), 7);
    message = told->at("params").at("message");
  }
}

TEST_F(McpTools, CallsRunSideBySide) {
  send_call("long", "check", endless());
  exporting();
  for (int i = 0; i < 3; ++i) send_call(i, "compile", {{"program", kMatmul}, {"call", "matmul(128, 128, 128)"}});
  std::set<int> answered;
  while (answered.size() < 3) {
    const auto message = receive(60);
    ASSERT_TRUE(message);
    EXPECT_EQ((*message)["result"]["structuredContent"]["ok"], true);
    answered.insert((*message)["id"].get<int>());
  }
  // Beyond a number, calls are refused until others have ended.
  for (int i = 10; i < 20; ++i) send_call(i, "check", endless());
  const auto refused = receive(30);
  ASSERT_TRUE(refused);
  EXPECT_EQ((*refused)["result"]["isError"], true);
  EXPECT_THAT(text_of((*refused)["result"]), HasSubstr("under way"));
}

TEST_F(McpTools, TheEndOfInputEndsWhatRuns) {
  send_call(1, "check", endless());
  exporting();
  const std::set<pid_t> children = all_descendants();
  close_input();
  const int status = status_at_end(10);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(comes_true(10, [&] { return std::none_of(children.begin(), children.end(), is_alive); }));
}

TEST_F(McpTools, SignalsEndWhatRuns) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    send_call(1, "check", endless());
    exporting();
    const std::set<pid_t> children = all_descendants();
    kill(server_, signal);
    const int status = status_at_end(10);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_TRUE(comes_true(10, [&] { return std::none_of(children.begin(), children.end(), is_alive); }));
    close_input();
    close(out_);
    start();
    begin_session();
  }
}

// The first answer of the language model is a program, and the second one never comes.
TEST_F(McpTools, ACancelledGenerateKeepsTheBestProgram) {
  const auto answer = testing::ChatServer::completion("```python\n" + content_of(candidate("good_matmul")) + "```\n");
  auto late = answer;
  late.pause_s = 20;
  testing::ChatServer model_server({answer, late});
  restart({"--target", "cpu", "--llm-url", model_server.url(), "--llm-model", "test"});
  send_call(1, "generate",
            {{"model", model("matmul")}, {"author", "llm"}, {"output", "best.py"}, {"no_corpus", true}, {"trials", 2}},
            "token");
  for (std::string message; message.find("attempt 1: verified") == std::string::npos;) {
    const auto told = receive(120);
    ASSERT_TRUE(told && told->contains("method")) << told.value_or(json());
    message = told->at("params").at("message");
  }
  send({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 1}}}});
  EXPECT_TRUE(comes_true(20, [&] { return std::filesystem::exists(folder_ / "best.py"); }));
  EXPECT_TRUE(comes_true(20, [&] { return descendants().empty(); }));
  EXPECT_EQ(content_of(folder_ / "best.py"), content_of(candidate("good_matmul")));
  EXPECT_THAT(model_server.authorizations(), ::testing::Each("Bearer the-key"));
}

// The key goes to `generate` with the endpoint that the server was started with, and to nobody else.
TEST_F(McpTools, TheKeyStaysWithTheEndpoint) {
  restart({"--target", "cpu", "--llm-url", "http://127.0.0.1:9/v1", "--llm-model", "none"});
  const auto has_key = [&] {
    for (const pid_t child : descendants())
      if (content_of(folder_of(child) / "environ").find("the-key") != std::string::npos) return true;
    return false;
  };
  send_call(1, "check", endless());
  EXPECT_GE(exporting().size(), 2u);
  EXPECT_FALSE(has_key());
  const json refused =
      call("generate", {{"model", model("matmul")}, {"author", "llm"}, {"llm_url", "http://elsewhere"}});
  EXPECT_THAT(text_of(refused), HasSubstr("there is no argument `llm_url`"));
}

}  // namespace
}  // namespace tilepilot
