// Conversations with an endpoint on this machine, over HTTP: what is retried, what is given up, what is written down.
#include "agent/llm/chat.h"

#include <gmock/gmock.h>

#include "tests/agent/stored_run.h"
#include "tests/chat_server.h"

namespace tilepilot::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tilepilot::testing::ChatServer;
using tilepilot::testing::ServerAnswer;

class Chat : public RunTest {
 protected:
  std::unique_ptr<ChatClient> chat_with(const std::string& url) {
    options_.url = url;
    options_.key = "secret-key";
    options_.settings.model = "test-model";
    ChatServices services{curl_client(), [this](double seconds) { slept_.push_back(seconds); },
                          [this](const std::string& line) { progress_.push_back(line); }};
    auto chat = live_chat(options_, std::move(services), *store_, run_);
    EXPECT_TRUE(chat.ok());
    return std::move(*chat);
  }
  static std::vector<ChatMessage> hello() {
    return {{ChatMessage::Role::system, "be brief"}, {ChatMessage::Role::user, "hello"}};
  }

  ChatOptions options_;
  std::vector<double> slept_;
  std::vector<std::string> progress_;
};

TEST_F(Chat, SendsTheConversationAndChargesForIt) {
  ChatServer server({ChatServer::completion("hi")});
  options_.dollars_per_million_input = 2;
  options_.dollars_per_million_output = 10;
  auto chat = chat_with(server.url());
  auto reply = chat->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "hi");
  EXPECT_FALSE(reply->cut_off);
  auto request = server.requests().at(0);
  EXPECT_EQ(request["model"], "test-model");
  EXPECT_EQ(request["messages"][0]["role"], "system");
  EXPECT_EQ(request["messages"][1]["content"], "hello");
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer secret-key"));
  EXPECT_DOUBLE_EQ(chat->dollars_spent(), 1000 * 2e-6 + 500 * 10e-6);
  EXPECT_EQ(column("SELECT input_tokens FROM exchange"), "1000");
  EXPECT_EQ(column("SELECT count(*) FROM exchange WHERE request LIKE '%secret-key%'"), "0");
}

TEST_F(Chat, RetriesWhatMayPassAndStoresEachTry) {
  ChatServer server({{500, "oops"}, {429, "slow down", "7"}, {503, "busy"}, ChatServer::completion("at last")});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "at last");
  EXPECT_THAT(slept_, ElementsAre(1, 7, 4));
  EXPECT_THAT(progress_.at(1), HasSubstr("answered 429; trying again in 7 s"));
  auto exchanges = store_->exchanges(run_);
  ASSERT_TRUE(exchanges.ok());
  std::vector<int> statuses;
  for (const Exchange& exchange : *exchanges) statuses.push_back(exchange.status);
  EXPECT_THAT(statuses, ElementsAre(500, 429, 503, 200));
  EXPECT_EQ((*exchanges)[1].reply, "slow down");
}

TEST_F(Chat, FailAfterTheLastRetry) {
  options_.retries = 2;
  ChatServer server({});  // 500 for ever
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("answered 500"));
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST_F(Chat, FailAtOnceWhereARetryCannotHelp) {
  ChatServer server({{404, R"({"error": {"message": "no such model"}})"}});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("no such model"));
  EXPECT_THAT(slept_, IsEmpty());
}

// A wait that outlasts the run is not begun.
TEST_F(Chat, FailWaitBeyondTheTimeOfTheRun) {
  ChatServer server({{429, "come back tomorrow", "86400"}});
  auto chat = chat_with(server.url());
  chat->allow(60);
  auto reply = chat->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("429"));
  ASSERT_EQ(reply.error().notes.size(), 1u);
  EXPECT_THAT(reply.error().notes[0].message, HasSubstr("8.64e+04 s"));
  EXPECT_THAT(slept_, IsEmpty());
}

class RecordingEndpoint final : public HttpClient {
 public:
  explicit RecordingEndpoint(double& limit) : limit_(limit) {}
  HttpResponse post(const HttpRequest& request) override {
    limit_ = request.time_limit_s;
    return {200, ChatServer::completion("hi").body, "", -1};
  }

 private:
  double& limit_;
};

TEST_F(Chat, LimitsRequestsByTheTimeOfTheRun) {
  double limit = 0;
  ChatServices services{std::make_unique<RecordingEndpoint>(limit), [](double) {}, [](const std::string&) {}};
  auto chat = live_chat(options_, std::move(services), *store_, run_);
  ASSERT_TRUE(chat.ok());
  ASSERT_TRUE((*chat)->ask(hello()).ok());
  EXPECT_EQ(limit, options_.request_time_limit_s);
  (*chat)->allow(20);
  ASSERT_TRUE((*chat)->ask(hello()).ok());
  EXPECT_LE(limit, 20);
  EXPECT_GT(limit, 10);
}

TEST_F(Chat, FailNobodyListens) {
  options_.retries = 0;
  std::string url;
  { url = ChatServer({}).url(); }
  auto reply = chat_with(url)->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("no answer from"));
  EXPECT_NE(column("SELECT reply FROM exchange WHERE status IS NULL OR status = 0"), "(no row)");
}

// OpenAI's reasoning models know the limit by another name, and say so.
TEST_F(Chat, SpeaksTheDialectOfReasoningModels) {
  ServerAnswer refusal{400, R"({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this )"
                            R"(model. Use 'max_completion_tokens' instead.", "param": "max_tokens"}})"};
  ChatServer server({refusal, ChatServer::completion("one"), ChatServer::completion("two")});
  auto chat = chat_with(server.url());
  auto first = chat->ask(hello());
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->text, "one");
  ASSERT_TRUE(chat->ask(hello()).ok());
  auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_TRUE(requests[0].contains("max_tokens"));
  for (size_t later : {1, 2}) {
    EXPECT_TRUE(requests[later].contains("max_completion_tokens"));
    EXPECT_FALSE(requests[later].contains("max_tokens"));
  }
  EXPECT_THAT(slept_, IsEmpty());
}

TEST_F(Chat, TakesNoContentForAnAnswerThatWasCutOff) {
  ChatServer server({{200, R"({"choices": [{"message": {"role": "assistant", "content": null},)"
                           R"( "finish_reason": "length"}]})"}});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "");
  EXPECT_TRUE(reply->cut_off);
}

TEST_F(Chat, FailAnswerThatIsNoCompletion) {
  for (const char* body : {"<html>welcome</html>", "{}", R"({"choices": []})", R"({"choices": [{"message": 3}]})"}) {
    ChatServer server({{200, body}});
    auto reply = chat_with(server.url())->ask(hello());
    ASSERT_FALSE(reply.ok()) << body;
    EXPECT_THAT(reply.error().message, HasSubstr("not a chat completion"));
  }
}

// Replay

TEST_F(Chat, ReplaysWithoutNetwork) {
  {
    ChatServer server({{429, "wait"}, ChatServer::completion("one"), {500, "oops"}, ChatServer::completion("two")});
    auto chat = chat_with(server.url());
    ASSERT_TRUE(chat->ask(hello()).ok());
    ASSERT_TRUE(chat->ask(hello()).ok());
  }
  const int64_t later = begin_run();
  auto replayed = recorded_chat(*store_, run_, later, "openai");
  ASSERT_TRUE(replayed.ok());
  for (const char* text : {"one", "two"}) {
    auto reply = (*replayed)->ask(hello());
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply->text, text);
  }
  EXPECT_EQ((*replayed)->dollars_spent(), 0);
  auto end = (*replayed)->ask(hello());
  ASSERT_FALSE(end.ok());
  EXPECT_THAT(end.error().message, HasSubstr("no further replies"));
  // The replay is a run like any other: it can be replayed again.
  auto again = recorded_chat(*store_, later, begin_run(), "openai");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->ask(hello())->text, "one");
}

TEST_F(Chat, PaysOnceForWhatAnInterruptedRunWasTold) {
  options_.dollars_per_million_input = 2;
  double paid = 0;
  {
    ChatServer server({ChatServer::completion("one"), {500, "oops"}, ChatServer::completion("two")});
    auto chat = chat_with(server.url());
    ASSERT_TRUE(chat->ask(hello()).ok());
    ASSERT_TRUE(chat->ask(hello()).ok());
    paid = chat->dollars_spent();
  }
  ASSERT_TRUE(store_->save_exchange(run_, 3, {.request = "{}"}).ok());  // and killed while it waited for this one
  ChatServer server({ChatServer::completion("three")});
  auto chat = chat_with(server.url());
  EXPECT_EQ(chat->dollars_spent(), paid);
  for (const char* text : {"one", "two", "three"}) {
    auto reply = chat->ask(hello());
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply->text, text);
  }
  EXPECT_EQ(server.requests().size(), 1u);
  EXPECT_EQ(column("SELECT group_concat(number) FROM exchange"), "0,1,2,3,4");
}

TEST_F(Chat, ReplaysTheFailureThatEndedARun) {
  {
    ChatServer server({ChatServer::completion("one"), {401, R"({"error": {"message": "who are you"}})"}});
    auto chat = chat_with(server.url());
    ASSERT_TRUE(chat->ask(hello()).ok());
    ASSERT_FALSE(chat->ask(hello()).ok());
  }
  auto replayed = recorded_chat(*store_, run_, begin_run(), "openai");
  ASSERT_TRUE(replayed.ok());
  EXPECT_TRUE((*replayed)->ask(hello()).ok());
  auto end = (*replayed)->ask(hello());
  ASSERT_FALSE(end.ok());
  EXPECT_THAT(end.error().message, HasSubstr("401"));
}

TEST_F(Chat, FailReplayOfARunWithoutExchanges) {
  auto replayed = recorded_chat(*store_, run_, begin_run(), "openai");
  ASSERT_FALSE(replayed.ok());
  EXPECT_THAT(replayed.error().message, HasSubstr("recorded no exchanges"));
}

}  // namespace
}  // namespace tilepilot::agent
