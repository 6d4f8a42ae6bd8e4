// A chat endpoint on this machine that gives prepared answers, one a request, and keeps what it was asked.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace tilepilot::testing {

struct ServerAnswer {
  int status = 200;
  std::string body;
  std::string retry_after = {};  // the header, if not empty
};

class ChatServer {
 public:
  explicit ChatServer(std::deque<ServerAnswer> answers) : answers_(std::move(answers)) {
    server_.Post("/v1/chat/completions",
                 [this](const httplib::Request& request, httplib::Response& response) { answer(request, response); });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();  // `stop` before that would be lost
  }
  ~ChatServer() {
    server_.stop();
    thread_.join();
  }

  // A completion as OpenAI's servers word it.
  static ServerAnswer completion(const std::string& text) {
    nlohmann::json body = {
        {"choices", {{{"message", {{"role", "assistant"}, {"content", text}}}, {"finish_reason", "stop"}}}},
        {"usage", {{"prompt_tokens", 1000}, {"completion_tokens", 500}}}};
    return {200, body.dump()};
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }
  std::vector<nlohmann::json> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<std::string> authorizations() const {
    std::lock_guard lock(mutex_);
    return authorizations_;
  }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    std::lock_guard lock(mutex_);
    requests_.push_back(nlohmann::json::parse(request.body, nullptr, false));
    authorizations_.push_back(request.get_header_value("Authorization"));
    if (answers_.empty()) {
      response.status = 500;
      return;
    }
    ServerAnswer next = answers_.front();
    answers_.pop_front();
    response.status = next.status;
    if (!next.retry_after.empty()) response.set_header("Retry-After", next.retry_after);
    response.set_content(next.body, "application/json");
  }

  mutable std::mutex mutex_;
  std::deque<ServerAnswer> answers_;
  std::vector<nlohmann::json> requests_;
  std::vector<std::string> authorizations_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace tilepilot::testing
