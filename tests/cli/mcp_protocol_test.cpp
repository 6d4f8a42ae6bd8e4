// The protocol of `tilepilot mcp`: handshakes of both kinds, errors, batches, and what ends the server.
#include "tests/cli/mcp_fixture.h"

namespace tilepilot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class McpProtocol : public Mcp {};

TEST_F(McpProtocol, AgreesOnARevision) {
  start();
  for (const char* known : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
    EXPECT_EQ(begin_session(known)["protocolVersion"], known);
  for (const char* unknown : {"1999-01-01", "2026-07-28", "2099-01-01", ""})
    EXPECT_EQ(begin_session(unknown)["protocolVersion"], "2025-11-25") << unknown;
  const json result = begin_session();
  EXPECT_EQ(result["serverInfo"]["name"], "tilepilot");
  EXPECT_TRUE(result["capabilities"].contains("tools"));
  EXPECT_THAT(result["instructions"].get<std::string>(), HasSubstr("`check`"));
  EXPECT_EQ(code_of(ask(1, "initialize")), -32602);
}

TEST_F(McpProtocol, ServesRequestsThatNameTheirRevision) {
  start();
  const json found = ask(1, "server/discover", modern())["result"];
  EXPECT_EQ(found["supportedVersions"],
            json::array({"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}));
  EXPECT_EQ(found["resultType"], "complete");
  EXPECT_EQ(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "tilepilot");
  const json listed = ask(2, "tools/list", modern())["result"];
  EXPECT_GT(listed["ttlMs"].get<int>(), 0);
  EXPECT_EQ(listed["cacheScope"], "public");
  const json called = ask(3, "tools/call", modern({{"name", "language"}, {"arguments", {{"construct", "T.gemm"}}}}));
  EXPECT_EQ(called["result"]["resultType"], "complete");
  EXPECT_FALSE(called["result"].contains("ttlMs"));
  // What belongs to sessions is gone there.
  EXPECT_EQ(code_of(ask(4, "ping", modern())), -32601);
  EXPECT_EQ(code_of(ask(5, "initialize", modern({{"protocolVersion", "2025-11-25"}}))), -32601);
  const json refused = ask(6, "tools/list", modern({}, "1900-01-01"));
  EXPECT_EQ(code_of(refused), -32022);
  EXPECT_EQ(refused["error"]["data"]["requested"], "1900-01-01");
  EXPECT_EQ(refused["error"]["data"]["supported"], found["supportedVersions"]);
  EXPECT_EQ(code_of(ask(7, "tools/list", {{"_meta", {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"}}}})),
            -32602);
  // A session beside them changes nothing for them.
  begin_session("2024-11-05");
  EXPECT_TRUE(ask(8, "tools/list", modern())["result"].contains("ttlMs"));
  EXPECT_FALSE(ask(9, "tools/list")["result"].contains("ttlMs"));
}

TEST_F(McpProtocol, WantsAHandshakeOrARevision) {
  start();
  EXPECT_EQ(ask(1, "ping")["result"], json::object());
  const json early = ask(2, "tools/list");
  EXPECT_EQ(code_of(early), -32602);
  EXPECT_THAT(early["error"]["message"].get<std::string>(), HasSubstr("`initialize`"));
  begin_session();
  EXPECT_EQ(code_of(ask(3, "tools/list")), 0);
}

TEST_F(McpProtocol, GivesEachRevisionWhatItKnows) {
  start();
  const auto first_tool = [&](const char* revision) {
    begin_session(revision);
    return ask(1, "tools/list")["result"]["tools"][0];
  };
  EXPECT_FALSE(first_tool("2024-11-05").contains("annotations"));
  EXPECT_TRUE(first_tool("2025-03-26").contains("annotations"));
  EXPECT_FALSE(first_tool("2025-03-26").contains("outputSchema"));
  EXPECT_TRUE(first_tool("2025-06-18").contains("outputSchema"));
  begin_session("2025-03-26");
  EXPECT_FALSE(call("language", {{"construct", "T.copy"}}).contains("structuredContent"));
  begin_session("2025-06-18");
  EXPECT_TRUE(call("language", {{"construct", "T.copy"}}).contains("structuredContent"));
}

TEST_F(McpProtocol, AnswersWhatIsWrong) {
  start();
  begin_session();
  struct Case {
    const char* line;
    int code;
    json id;
  };
  const Case cases[] = {
      {"{", -32700, nullptr},
      {"hello", -32700, nullptr},
      {"\"\xff\"", -32700, nullptr},
      {"5", -32600, nullptr},
      {"[]", -32600, nullptr},
      {R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", -32600, nullptr},  // this revision has no batches
      {R"({"id":1,"method":"ping"})", -32600, 1},
      {R"({"jsonrpc":"1.0","id":1,"method":"ping"})", -32600, 1},
      {R"({"jsonrpc":"2.0","id":1})", -32600, 1},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", -32600, nullptr},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", -32600, nullptr},
      {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", -32600, nullptr},
      {R"({"jsonrpc":"2.0","id":"a","method":7})", -32600, "a"},
      {R"({"jsonrpc":"2.0","id":"a","method":"ping","params":[1]})", -32602, "a"},
      {R"({"jsonrpc":"2.0","id":"a","method":"no/such"})", -32601, "a"},
      {R"({"jsonrpc":"2.0","id":"a","method":"server/discover"})", -32601, "a"},
      {R"({"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"x"}})", -32602, "a"},
      {R"({"jsonrpc":"2.0","id":"a","method":"tools/call"})", -32602, "a"},
      {R"({"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"nothing"}})", -32602, "a"},
      {R"({"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"check","arguments":[]}})", -32602, "a"},
      {R"({"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"file:///etc/passwd"}})", -32602, "a"},
  };
  for (const Case& wrong : cases) {
    ASSERT_TRUE(send_text(std::string(wrong.line) + "\n"));
    const auto answer = receive(20);
    ASSERT_TRUE(answer) << wrong.line;
    EXPECT_EQ(code_of(*answer), wrong.code) << wrong.line << ": " << *answer;
    EXPECT_EQ(answer->at("id"), wrong.id) << wrong.line;
  }
  // Blank lines, notifications that nobody knows and answers that nobody asked for are passed over.
  ASSERT_TRUE(
      send_text("\n  \r\n"
                R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}})"
                "\n"
                R"({"jsonrpc":"2.0","method":"notifications/cancelled"})"
                "\n"
                R"({"jsonrpc":"2.0","method":"notifications/new"})"
                "\n"
                R"({"jsonrpc":"2.0","id":5,"result":{}})"
                "\r\n"));
  EXPECT_EQ(ask("last", "ping")["result"], json::object());
  EXPECT_TRUE(others_.empty()) << json(others_);
}

TEST_F(McpProtocol, RefusesEndlessMessages) {
  start();
  const std::string deep(500, '[');
  ASSERT_TRUE(send_text(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":)" + deep + "\n"));
  EXPECT_EQ(code_of(receive(20).value_or(json())), -32600);
  ASSERT_TRUE(send_text(std::string(size_t{17} << 20, 'x') + "\n"));
  EXPECT_EQ(code_of(receive(20).value_or(json())), -32600);
  EXPECT_EQ(ask("after", "ping")["result"], json::object());
}

TEST_F(McpProtocol, AnswersBatchesOfTheRevisionsThatHaveThem) {
  start();
  begin_session("2025-03-26");
  send(json::array({{{"jsonrpc", "2.0"}, {"id", 1}, {"method", "ping"}},
                    {{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}},
                    {{"jsonrpc", "2.0"},
                     {"id", 2},
                     {"method", "tools/call"},
                     {"params", {{"name", "language"}, {"arguments", {{"construct", "T.copy"}}}}}},
                    5,
                    {{"jsonrpc", "2.0"}, {"id", 3}, {"method", "no/such"}}}));
  const auto answers = receive(30);
  ASSERT_TRUE(answers && answers->is_array()) << answers.value_or(json());
  std::map<std::string, json> by_id;
  for (const json& answer : *answers) by_id[answer["id"].dump()] = answer;
  EXPECT_EQ(by_id.size(), 4u);
  EXPECT_EQ(by_id["1"]["result"], json::object());
  EXPECT_TRUE(by_id["2"]["result"].contains("content"));
  EXPECT_EQ(code_of(by_id["3"]), -32601);
  EXPECT_EQ(code_of(by_id["null"]), -32600);
  // One of nothing but notifications has no answer.
  send(json::array({{{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}}));
  EXPECT_EQ(ask("after", "ping")["result"], json::object());
  EXPECT_TRUE(others_.empty()) << json(others_);
}

TEST_F(McpProtocol, DescribesItsTools) {
  start();
  begin_session();
  const json tools = ask(1, "tools/list")["result"]["tools"];
  std::vector<std::string> names;
  for (const json& tool : tools) {
    names.push_back(tool["name"]);
    EXPECT_FALSE(tool["description"].get<std::string>().empty());
    EXPECT_EQ(tool["inputSchema"]["type"], "object");
    EXPECT_EQ(tool["inputSchema"]["additionalProperties"], false);
    EXPECT_FALSE(tool["inputSchema"].contains("anyOf"));
    EXPECT_EQ(tool["outputSchema"]["type"], "object");
    EXPECT_EQ(tool["annotations"]["readOnlyHint"], tool["name"] != "generate") << tool["name"];
    for (const auto& [name, schema] : tool["inputSchema"]["properties"].items())
      EXPECT_FALSE(schema["description"].get<std::string>().empty()) << tool["name"] << " " << name;
  }
  EXPECT_THAT(names, ElementsAre("generate", "check", "compile", "explain", "profile", "search_corpus", "show_program",
                                 "show_problem", "language"));
  // From the options of the command line: types, values, bounds, defaults.
  const json check = tools[1]["inputSchema"]["properties"], generate = tools[0]["inputSchema"]["properties"];
  EXPECT_EQ(check["trials"]["type"], "integer");
  EXPECT_EQ(check["trials"]["minimum"], 1);
  EXPECT_EQ(check["trials"]["default"], 5);
  EXPECT_EQ(check["no_timing"]["type"], "boolean");
  EXPECT_EQ(check["dtype"]["enum"], json::array({"model", "fp32", "fp16", "bf16"}));
  EXPECT_EQ(generate["author"]["enum"], json::array({"builtin", "llm", "mixed"}));
  EXPECT_EQ(generate["minutes"]["type"], "number");
  EXPECT_EQ(check["target"]["default"], "cpu");  // as the server was started
  EXPECT_THAT(generate["output"]["description"].get<std::string>(), HasSubstr("comes back as text"));
  EXPECT_EQ(tools[4]["inputSchema"]["required"], json::array({"call"}));
  // Nothing that would let a client choose programs, databases or where a key goes.
  for (const json& tool : tools)
    for (const char* name : {"python", "store", "llm_url", "llm_key_file", "allow_foreign", "memory"})
      EXPECT_FALSE(tool["inputSchema"]["properties"].contains(name)) << tool["name"] << " " << name;
}

TEST_F(McpProtocol, LetsTheLanguageBeRead) {
  start();
  begin_session();
  const json listed = ask(1, "resources/list")["result"]["resources"];
  ASSERT_EQ(listed.size(), 2u);
  for (const json& resource : listed) {
    const json read = ask(2, "resources/read", {{"uri", resource["uri"]}})["result"]["contents"][0];
    EXPECT_EQ(read["uri"], resource["uri"]);
    EXPECT_THAT(read["text"].get<std::string>(), HasSubstr("`T.gemm("));
  }
  EXPECT_EQ(ask(3, "resources/templates/list")["result"]["resourceTemplates"], json::array());
}

TEST_F(McpProtocol, EndsWithItsInput) {
  start();
  begin_session();
  ASSERT_TRUE(send_text(R"({"jsonrpc":"2.0","id":9,"method":"ping"})"));  // the last line need not end
  close_input();
  EXPECT_EQ(answer_to(9)["result"], json::object());
  const int status = status_at_end(10);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(McpProtocol, RefusesOptionsThatNobodyCouldUse) {
  auto result = tilepilot({"mcp", "--target", "abacus"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(result.out.empty());
  result = tilepilot({"mcp", "--llm-model", "m"});
  EXPECT_EQ(result.exit_code, 2) << all(result);
  EXPECT_THAT(result.err, HasSubstr("`--llm-url`"));
  EXPECT_TRUE(result.out.empty());
}

}  // namespace
}  // namespace tilepilot
