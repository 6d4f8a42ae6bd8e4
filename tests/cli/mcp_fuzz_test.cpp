// Mutations of valid messages: `tilepilot mcp` neither dies nor stops answering, and says nothing that is no message.
#include <random>

#include "tests/cli/mcp_fixture.h"
#include "tests/rounds.h"

namespace tilepilot {
namespace {

class McpFuzz : public Mcp {
 protected:
  // What a client sends, with no tool that takes long.
  static std::vector<std::string> valid_messages() {
    const json capabilities = {{"io.modelcontextprotocol/protocolVersion", "2026-07-28"},
                               {"io.modelcontextprotocol/clientCapabilities", json::object()}};
    std::vector<std::string> messages;
    const auto add = [&](const json& message) { messages.push_back(message.dump()); };
    const auto request = [&](const char* method, json params) {
      return json{{"jsonrpc", "2.0"}, {"id", messages.size()}, {"method", method}, {"params", std::move(params)}};
    };
    add(request("initialize", {{"protocolVersion", "2025-03-26"}, {"capabilities", {{"roots", json::object()}}}}));
    add({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
    add(request("ping", json::object()));
    add(request("tools/list", {{"cursor", nullptr}}));
    add(request("server/discover", {{"_meta", capabilities}}));
    add(request("resources/list", {{"_meta", capabilities}}));
    add(request("resources/read", {{"uri", "tilepilot://language/cpu"}}));
    add(request("tools/call", {{"name", "language"}, {"arguments", {{"construct", "T.gemm"}, {"target", "cpu"}}}}));
    add(request("tools/call", {{"name", "compile"},
                               {"arguments", {{"program_source", "x = (1,"}, {"call", "x"}, {"timeout_s", 5}}},
                               {"_meta", {{"progressToken", 7}}}}));
    add({{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 7}, {"reason", "no"}}}});
    add(json::array({request("ping", json::object()), request("no/such", json::object())}));
    add({{"jsonrpc", "2.0"}, {"id", "x"}, {"result", json::object()}});
    return messages;
  }

  std::string mutated(std::string text, const std::vector<std::string>& messages) {
    static constexpr std::string_view kPieces[] = {
        "{",    "}",       "[",       "]",    "\"", ":",  ",",        "null", "-1",      "1e999",
        "true", "\\u0000", "\\ud800", "\xff", "\r", "{}", "[[[[[[[[", "\\",   "\"id\":", "18446744073709551616"};
    const auto below = [&](size_t count) { return random_() % std::max<size_t>(count, 1); };
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      const size_t at = below(text.size());
      switch (below(6)) {
        case 0:
          if (!text.empty()) text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2:
          text.insert(at, kPieces[below(std::size(kPieces))]);
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), 1 + below(20)));
          break;
        case 4:
          text.resize(at);
          break;
        default:
          const std::string& other = messages[below(messages.size())];
          text = text.substr(0, at) + other.substr(below(other.size()));
      }
    }
    return text;
  }

  // Another value, or none, in place of one of the message's: still JSON, so that it comes further.
  std::string of_another_shape(const std::string& text, const std::vector<std::string>& messages) {
    const json kValues[] = {nullptr,
                            true,
                            -1,
                            1.5,
                            1e300,
                            "",
                            "\u0000",
                            std::string(3000, 'x'),
                            "../../etc",
                            json::array({1, 2, {}}),
                            {},
                            "tools/call",
                            "notifications/cancelled",
                            "2026-07-28",
                            "generate"};
    json message = json::parse(text);
    const json places = message.flatten();
    const auto chosen = [&](const json& from) {
      return json::json_pointer(std::next(from.begin(), static_cast<long>(random_() % from.size())).key());
    };
    json::json_pointer place = chosen(places);
    while (!place.parent_pointer().empty() && random_() % 3 == 0) place = place.parent_pointer();
    switch (random_() % 3) {
      case 0:
        message[place] = kValues[random_() % std::size(kValues)];
        break;
      case 1: {
        const json other = json::parse(messages[random_() % messages.size()]);
        message[place] = other[chosen(other.flatten())];
        break;
      }
      default:
        if (json& above = message[place.parent_pointer()]; above.is_object()) {
          json value = above[place.back()];
          above.erase(place.back());
          if (random_() % 2 == 0) above[place.back() + "s"] = std::move(value);
        }
    }
    return message.dump();
  }

  std::mt19937 random_{static_cast<uint32_t>(from_environment("TILEPILOT_FIRST_SEED", 2024))};
};

TEST_F(McpFuzz, MutationsOfMessagesDoNoHarm) {
  constexpr int kBetweenPings = 50;
  const int count = from_environment("TILEPILOT_ROUNDS", 2000);
  start();
  begin_session("2025-03-26");
  const std::vector<std::string> messages = valid_messages();
  int errors = 0, results = 0;
  for (int i = 1; i <= count; ++i) {
    const std::string& valid = messages[random_() % messages.size()];
    const std::string sent = i % 2 == 0 ? mutated(valid, messages) : of_another_shape(valid, messages);
    ASSERT_TRUE(send_text(sent + "\n")) << "after " << i;
    if (i % kBetweenPings != 0) continue;
    // Unlike the ids of all others.
    const json id = "ping " + std::to_string(i);
    ASSERT_EQ(ask(id, "ping").value("result", json()), json::object()) << "after " << i;
    for (const json& other : others_) {
      errors += other.contains("error") ? 1 : 0;
      results += other.contains("result") ? 1 : 0;
    }
    others_.clear();
  }
  // Both sides of the checks were reached.
  EXPECT_GT(errors, count / 4);
  EXPECT_GT(results, count / 20);
  close_input();
  const int status = status_at_end(20);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << "; " << content_of(folder_ / "server.err");
  // Nothing is on standard error, where complaints of the program would be.
  EXPECT_EQ(content_of(folder_ / "server.err"), "");
}

}  // namespace
}  // namespace tilepilot
