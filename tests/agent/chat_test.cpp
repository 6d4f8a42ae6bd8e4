// Conversations with an endpoint on this machine, over HTTP: what is retried, what is given up, what is written down.
#include "agent/llm/endpoint/chat.h"

#include <gmock/gmock.h>

#include <deque>
#include <set>

#include "tests/agent/stored_run.h"
#include "tests/chat_server.h"

namespace tilepilot::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using tilepilot::testing::ChatServer;
using tilepilot::testing::ServerAnswer;

class Chat : public RunTest {
 protected:
  std::unique_ptr<ChatClient> chat_with(const std::string& url) {
    options_.endpoint.url = url;
    options_.endpoint.key = "secret-key";
    options_.settings.model = "test-model";
    ChatServices services{.http = curl_client(),
                          .sleep = [this](double seconds) { slept_.push_back(seconds); },
                          .progress = [this](const std::string& line) { progress_.push_back(line); },
                          .random = [this] { return random_; }};
    auto chat = live_chat(options_, std::move(services), *store_, run_);
    EXPECT_TRUE(chat.ok());
    return std::move(*chat);
  }
  static std::vector<ChatMessage> hello() {
    return {{ChatMessage::Role::system, "be brief"}, {ChatMessage::Role::user, "hello"}};
  }

  // The sum over all exchanges of the run, as the database has it.
  double stored_dollars() const { return std::stod(column("SELECT sum(dollars) FROM exchange")); }

  ChatOptions options_;
  double random_ = 0.5;  // delays as they are
  std::vector<double> slept_;
  std::vector<std::string> progress_;
};

TEST_F(Chat, SendsTheConversationAndChargesForIt) {
  ChatServer server({ChatServer::completion("hi")});
  options_.prices = {.input = 2, .output = 10};
  auto chat = chat_with(server.url());
  auto reply = chat->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "hi");
  EXPECT_EQ(reply->end, ChatReply::End::complete);
  auto request = server.requests().at(0);
  EXPECT_EQ(request["model"], "test-model");
  EXPECT_EQ(request["messages"][0]["role"], "system");
  EXPECT_EQ(request["messages"][1]["content"], "hello");
  EXPECT_THAT(server.authorizations(), ElementsAre("Bearer secret-key"));
  EXPECT_DOUBLE_EQ(chat->spending().dollars, 1000 * 2e-6 + 500 * 10e-6);
  EXPECT_EQ(column("SELECT input_tokens FROM exchange"), "1000");
  EXPECT_EQ(column("SELECT count(*) FROM exchange WHERE request LIKE '%secret-key%'"), "0");
}

TEST_F(Chat, RetriesWhatMayPassAndStoresEachTry) {
  ChatServer server({{500, "oops"}, {429, "slow down", "7"}, {503, "busy"}, ChatServer::completion("at last")});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "at last");
  EXPECT_THAT(slept_, ElementsAre(1, 7.35, 4));  // a little later than told, never earlier
  EXPECT_THAT(progress_.at(1), HasSubstr("answered 429; trying again in 7.35 s"));
  auto exchanges = store_->exchanges(run_);
  ASSERT_TRUE(exchanges.ok());
  std::vector<int> statuses;
  for (const Exchange& exchange : *exchanges) statuses.push_back(exchange.status);
  EXPECT_THAT(statuses, ElementsAre(500, 429, 503, 200));
  EXPECT_EQ((*exchanges)[1].reply, "slow down");
}

TEST_F(Chat, AsksForSeveralAnswersAtOnce) {
  ChatServer server({ChatServer::completion("one"), {500, "oops"}, ChatServer::completion("three")});
  options_.prices = {.input = 2, .output = 10};
  auto chat = chat_with(server.url());
  auto replies = chat->ask_each(hello(), 3);
  ASSERT_TRUE(replies.ok());
  std::vector<std::string> texts;
  for (const ChatReply& reply : *replies) texts.push_back(reply.text);
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre("one", "three"));
  EXPECT_EQ(server.requests().size(), 3u);
  EXPECT_EQ(column("SELECT count(*) FROM exchange"), "3");
  EXPECT_EQ(column("SELECT count(*) FROM exchange WHERE status IS NULL"), "0");
  EXPECT_DOUBLE_EQ(chat->spending().dollars, 2 * (1000 * 2e-6 + 500 * 10e-6));
  EXPECT_DOUBLE_EQ(stored_dollars(), chat->spending().dollars);
}

TEST_F(Chat, AsksForNoMoreAnswersThanTheLimitsPayFor) {
  options_.prices = {.input = 0, .output = 10};
  options_.settings.max_output_tokens = 2000;
  options_.limits.dollars = 0.05;  // two of the longest answers, and half of a third
  ChatServer server(std::deque<ServerAnswer>(3, ChatServer::completion("yes")));
  auto replies = chat_with(server.url())->ask_each(hello(), 8);
  ASSERT_TRUE(replies.ok());
  EXPECT_EQ(replies->size(), 3u);
  std::multiset<int> longest;
  for (const auto& request : server.requests()) longest.insert(request.value("max_tokens", 0));
  EXPECT_THAT(longest, ElementsAre(1000, 2000, 2000));
}

TEST_F(Chat, TriesAgainAloneWhatFailedTogether) {
  ChatServer server({{503, "busy"}, {503, "busy"}, ChatServer::completion("at last")});
  auto replies = chat_with(server.url())->ask_each(hello(), 2);
  ASSERT_TRUE(replies.ok());
  ASSERT_EQ(replies->size(), 1u);
  EXPECT_EQ(replies->front().text, "at last");
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
    return {.status = 200, .body = ChatServer::completion("hi").body};
  }

 private:
  double& limit_;
};

TEST_F(Chat, LimitsRequestsByTheTimeOfTheRun) {
  double limit = 0;
  ChatServices services{std::make_unique<RecordingEndpoint>(limit), [](double) {}, [](const std::string&) {}};
  options_.endpoint.url = "http://localhost:1/v1";
  auto chat = live_chat(options_, std::move(services), *store_, run_);
  ASSERT_TRUE(chat.ok());
  ASSERT_TRUE((*chat)->ask(hello()).ok());
  EXPECT_GT(limit, options_.endpoint.request_time_limit_s);  // of a stream only silence has another limit
  options_.settings.stream = false;
  ChatServices whole{std::make_unique<RecordingEndpoint>(limit), [](double) {}, [](const std::string&) {}};
  run_ = begin_run();
  chat = live_chat(options_, std::move(whole), *store_, run_);
  ASSERT_TRUE(chat.ok() && (*chat)->ask(hello()).ok());
  EXPECT_EQ(limit, options_.endpoint.request_time_limit_s);
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
  EXPECT_THAT(column("SELECT failure FROM exchange WHERE status IS NULL"), HasSubstr("no answer from"));
  EXPECT_EQ(column("SELECT input_tokens + output_tokens FROM exchange"), "0");  // nobody was there to bill it
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
  EXPECT_EQ(reply->end, ChatReply::End::cut_off);
}

TEST_F(Chat, FailAnswerThatIsNoCompletion) {
  for (const char* body : {"<html>welcome</html>", "{}", R"({"choices": []})", R"({"choices": [{"message": 3}]})"}) {
    ChatServer server({{200, body}});
    auto reply = chat_with(server.url())->ask(hello());
    ASSERT_FALSE(reply.ok()) << body;
    EXPECT_THAT(reply.error().message, HasSubstr("not a chat completion"));
  }
}

// Streams

std::string chunk(const std::string& text, const char* reason = nullptr) {
  nlohmann::json event = {{"choices", {{{"delta", {{"content", text}}}, {"finish_reason", nullptr}}}}};
  if (reason != nullptr) event["choices"][0]["finish_reason"] = reason;
  return "data: " + event.dump();
}

TEST_F(Chat, ReadsAStreamForAsLongAsItIsAlive) {
  options_.endpoint.idle_limit_s = 2;
  auto answer = ChatServer::stream(
      {": keep-alive", ": keep-alive", ": keep-alive", chunk("h"), chunk("i"), chunk("", "stop"),
       R"(data: {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 2}})", "data: [DONE]"});
  answer.piece_pause_s = 0.4;  // 3.2 s in all
  ChatServer server({answer});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "hi");
  EXPECT_EQ(reply->usage.input, 20);
  EXPECT_EQ(server.requests().at(0)["stream"], true);
  EXPECT_EQ(nlohmann::json::parse(column("SELECT reply FROM exchange"))["choices"][0]["message"]["content"], "hi");
}

TEST_F(Chat, GivesUpASilentStreamAndChargesWhatItCanHaveCost) {
  options_.endpoint.idle_limit_s = 1;
  options_.prices.output = 10;
  options_.settings.max_output_tokens = 1000;
  auto silent = ChatServer::stream({chunk("h"), chunk("i", "stop")});
  silent.piece_pause_s = 3;
  ChatServer server({silent, ChatServer::completion("hi")});
  auto chat = chat_with(server.url());
  auto reply = chat->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "hi");
  EXPECT_THAT(progress_.at(0), HasSubstr("nothing came for 1 s"));
  EXPECT_DOUBLE_EQ(chat->spending().dollars, (1000 + 500) * 10e-6);
  EXPECT_EQ(column("SELECT estimated FROM exchange WHERE number = 0"), "1");
}

TEST_F(Chat, TriesAgainWhatEndedBeforeItWasComplete) {
  auto broken = ChatServer::stream({chunk("h")});
  broken.breaks_off = true;
  ChatServer server({broken,
                     ChatServer::stream({chunk("h")}),
                     {200, R"({"choices": [{"mess)"},
                     {200, ""},
                     ChatServer::completion("hi")});
  options_.prices.output = 1;
  auto chat = chat_with(server.url());
  auto reply = chat->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->text, "hi");
  EXPECT_EQ(slept_.size(), 4u);
  EXPECT_NEAR(chat->spending().dollars, (4 * 16'000 + 500) * 1e-6, 1e-9);
  EXPECT_NEAR(stored_dollars(), chat->spending().dollars, 1e-9);
}

TEST_F(Chat, TellsAnErrorInsideAStreamOrA200) {
  const std::string words = R"({"error": {"type": "overloaded_error", "message": "too many of you"}})";
  ChatServer server({{200, words},
                     ChatServer::stream({chunk("h"), "data: " + words}),
                     {200, R"({"error": {"message": "no such model"}})"}});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(progress_.at(0), HasSubstr("too many of you"));
  EXPECT_THAT(progress_.at(1), HasSubstr("too many of you"));
  EXPECT_THAT(reply.error().message, HasSubstr("no such model"));
}

TEST_F(Chat, FailRedirectWithoutFollowingIt) {
  ChatServer elsewhere({ChatServer::completion("hi")});
  ChatServer server({{.status = 307, .headers = {{"Location", elsewhere.url() + "/chat/completions"}}}});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, AllOf(HasSubstr("307, a redirect"), HasSubstr(elsewhere.url())));
  EXPECT_THAT(elsewhere.requests(), IsEmpty());
}

TEST_F(Chat, FailAnswersWithoutEnd) {
  options_.retries = 0;
  ChatServer server({{200, std::string(100'000'000, 'x')}});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("larger than 64 MB"));
}

TEST_F(Chat, SendsTheKeyWhereAnEndpointWantsIt) {
  ChatServer server({ChatServer::completion("hi"),
                     ChatServer::completion("hi"),
                     {200, R"({"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"})"}});
  options_.endpoint.key_header = "api-key";
  ASSERT_TRUE(chat_with(server.url() + "?api-version=2024-10-21")->ask(hello()).ok());
  EXPECT_EQ(server.last_header("api-key"), "secret-key");
  EXPECT_EQ(server.last_header("Authorization"), "");
  EXPECT_EQ(server.targets().at(0), "/v1/chat/completions?api-version=2024-10-21");
  options_.endpoint.key_header = "";
  run_ = begin_run();  // else what this one was told comes first
  ASSERT_TRUE(chat_with(server.url())->ask(hello()).ok());
  EXPECT_EQ(server.last_header("Authorization"), "Bearer secret-key");
  options_.endpoint.form = "anthropic";
  run_ = begin_run();
  ASSERT_TRUE(chat_with(server.url())->ask(hello()).ok());
  EXPECT_EQ(server.last_header("x-api-key"), "secret-key");
  EXPECT_EQ(server.last_header("anthropic-version"), "2023-06-01");
  EXPECT_EQ(server.targets().at(2), "/v1/messages");
}

TEST_F(Chat, LeavesTheKeyOutOfWhatAnEndpointSays) {
  ChatServer server({{401, R"({"error": {"message": "the key secret-key is not valid"}})"}});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("the key [key] is not valid"));
  ChatServer moved({{.status = 302, .headers = {{"Location", "http://localhost/?key=secret-key"}}}});
  reply = chat_with(moved.url())->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("?key=[key]"));
  EXPECT_EQ(column("SELECT count(*) FROM exchange WHERE reply || failure LIKE '%secret-key%'"), "0");
}

TEST_F(Chat, FailWhatNoRequestCanCarry) {
  auto error = [&] {
    auto chat = live_chat(options_, {curl_client(), [](double) {}, [](const std::string&) {}}, *store_, run_);
    return chat.ok() ? "" : std::string(chat.error().message);
  };
  options_.endpoint.url = "ftp://host/v1";
  EXPECT_THAT(error(), HasSubstr("scheme `ftp`"));
  options_.endpoint.url = "http://host/v1";
  options_.endpoint.form = "telnet";
  EXPECT_THAT(error(), HasSubstr("unknown form"));
  options_.endpoint.form = "";
  options_.endpoint.key = "one\ntwo";
  EXPECT_THAT(error(), HasSubstr("line break"));
  options_.endpoint.key = "";
  options_.endpoint.key_header = "X: y\nZ";
  EXPECT_THAT(error(), HasSubstr("no name of a header"));
}

// Limits

TEST_F(Chat, AsksNothingForNoMoneyWherePricesAreNotKnown) {
  options_.limits.dollars = 0;
  ChatServer server({ChatServer::completion("one")});
  auto chat = chat_with(server.url());
  auto reply = chat->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->end, ChatReply::End::unaffordable);
  EXPECT_EQ(chat->spending().over, Spending::Over::dollars);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Chat, StopsBeforeTheRequestThatCouldExceedTheBudget) {
  options_.prices = {.input = 1, .output = 10};
  options_.limits.dollars = 0.03;
  options_.settings.max_output_tokens = 2000;
  ChatServer server({{200, R"({"choices": [{"message": {"content": "no count"}, "finish_reason": "stop"}]})"},
                     {504, "too late"},
                     ChatServer::completion("one"),
                     ChatServer::completion("two"),
                     ChatServer::completion("three"),
                     ChatServer::completion("four"),
                     ChatServer::completion("five")});
  auto chat = chat_with(server.url());
  double before = 0;
  for (int i = 0; i < 10; ++i) {
    auto reply = chat->ask(hello());
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_LE(chat->spending().dollars, 0.03);
    if (reply->end == ChatReply::End::unaffordable) break;
    before = chat->spending().dollars;
  }
  EXPECT_EQ(chat->spending().over, Spending::Over::dollars);
  EXPECT_EQ(chat->spending().dollars, before);
  EXPECT_NEAR(stored_dollars(), before, 1e-9);
  // What is left pays for less than half an answer.
  EXPECT_LT(0.03 - before, 0.02);
  for (const auto& request : server.requests()) EXPECT_GE(request["max_tokens"], 1000);
}

// A server that is killed, or one that we are killed while waiting for, may send a bill.
TEST_F(Chat, CountsARequestThatWasUnderWayWhenTheRunWasKilled) {
  options_.prices.output = 10;
  ASSERT_TRUE(store_->save_exchange(run_, 0, {.request = "{}", .output_tokens = 16'000, .dollars = 0.16}).ok());
  auto chat = chat_with("http://localhost:1/v1");
  EXPECT_EQ(chat->spending().dollars, 0.16);
}

TEST_F(Chat, WaitsUntilALimitIsReset) {
  ChatServer server(
      {ServerAnswer{.body = ChatServer::completion("one").body,
                    .headers = {{"x-ratelimit-remaining-requests", "0"}, {"x-ratelimit-reset-requests", "1m30s"}}},
       ChatServer::completion("two")});
  auto chat = chat_with(server.url());
  ASSERT_TRUE(chat->ask(hello()).ok());
  EXPECT_THAT(slept_, IsEmpty());
  ASSERT_TRUE(chat->ask(hello()).ok());
  ASSERT_EQ(slept_.size(), 1u);
  EXPECT_NEAR(slept_[0], 90, 1);
}

TEST_F(Chat, TellsAConversationThatIsTooLong) {
  const nlohmann::json refusal = {
      {"error",
       {{"code", 400},
        {"type", "exceed_context_size_error"},
        {"n_ctx", 8192},
        {"message", "request (9412 tokens) exceeds the available context size (8192 tokens)"}}}};
  ChatServer server({{400, refusal.dump()}});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->end, ChatReply::End::too_long);
  EXPECT_EQ(reply->context_tokens, 8192);
}

TEST_F(Chat, AllowsLongerAnswersUnlessTheEndpointSaysHowLong) {
  options_.settings.max_output_tokens = 2000;
  ChatServer server({ChatServer::completion("one"),
                     {400, R"({"error": {"message": "max_tokens: 4000 > 3000"}})"},
                     ChatServer::completion("two")});
  auto chat = chat_with(server.url());
  ASSERT_TRUE(chat->ask(hello()).ok());
  EXPECT_TRUE(chat->allow_longer_answers());
  ASSERT_TRUE(chat->ask(hello()).ok());
  EXPECT_EQ(server.requests().at(2)["max_tokens"], 3000);
  EXPECT_FALSE(chat->allow_longer_answers());
}

TEST_F(Chat, NeverWaitsForMoneyThatIsNotThere) {
  ChatServer server({{429, R"({"error": {"type": "insufficient_quota", "message": "you have no credit"}})"}});
  auto reply = chat_with(server.url())->ask(hello());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message, HasSubstr("you have no credit"));
  EXPECT_THAT(slept_, IsEmpty());
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
  auto replayed = recorded_chat(**load_recording(*store_, run_), *store_, later);
  ASSERT_TRUE(replayed.ok());
  for (const char* text : {"one", "two"}) {
    auto reply = (*replayed)->ask(hello());
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply->text, text);
  }
  EXPECT_EQ((*replayed)->spending().dollars, 0);
  auto end = (*replayed)->ask(hello());
  ASSERT_FALSE(end.ok());
  EXPECT_THAT(end.error().message, HasSubstr("no further replies"));
  // The replay is a run like any other: it can be replayed again.
  auto again = recorded_chat(**load_recording(*store_, later), *store_, begin_run());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->ask(hello())->text, "one");
}

TEST_F(Chat, PaysOnceForWhatAnInterruptedRunWasTold) {
  options_.prices.input = 2;
  double paid = 0;
  {
    ChatServer server({ChatServer::completion("one"), {500, "oops"}, ChatServer::completion("two")});
    auto chat = chat_with(server.url());
    ASSERT_TRUE(chat->ask(hello()).ok());
    ASSERT_TRUE(chat->ask(hello()).ok());
    paid = chat->spending().dollars;
  }
  ASSERT_TRUE(store_->save_exchange(run_, 3, {.request = "{}"}).ok());  // and killed while it waited for this one
  ChatServer server({ChatServer::completion("three")});
  auto chat = chat_with(server.url());
  EXPECT_EQ(chat->spending().dollars, paid);
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
  auto replayed = recorded_chat(**load_recording(*store_, run_), *store_, begin_run());
  ASSERT_TRUE(replayed.ok());
  EXPECT_TRUE((*replayed)->ask(hello()).ok());
  auto end = (*replayed)->ask(hello());
  ASSERT_FALSE(end.ok());
  EXPECT_THAT(end.error().message, HasSubstr("401"));
}

TEST_F(Chat, FailReplayOfARunWithoutExchanges) {
  auto replayed = recorded_chat(**load_recording(*store_, run_), *store_, begin_run());
  ASSERT_FALSE(replayed.ok());
  EXPECT_THAT(replayed.error().message, HasSubstr("had no exchanges"));
}

}  // namespace
}  // namespace tilepilot::agent
