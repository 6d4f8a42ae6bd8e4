// A chat endpoint on this machine that gives prepared answers, one a request, and keeps what it was asked.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <chrono>
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
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  double pause_s = 0;                    // before the answer
  std::vector<std::string> pieces = {};  // sent one by one instead of the body
  double piece_pause_s = 0;              // before each
  bool breaks_off = false;               // the connection is closed after the last piece
};

class ChatServer {
 public:
  explicit ChatServer(std::deque<ServerAnswer> answers) : answers_(std::move(answers)) {
    server_.Post(".*",
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

  // A stream of these events, one a piece.
  static ServerAnswer stream(const std::vector<std::string>& events) {
    ServerAnswer answer{.content_type = "text/event-stream"};
    for (const std::string& event : events) answer.pieces.push_back(event + "\n\n");
    return answer;
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
  // Path and query of each request.
  std::vector<std::string> targets() const {
    std::lock_guard lock(mutex_);
    return targets_;
  }
  // Of the last request; empty: it had none of this name.
  std::string last_header(const std::string& name) const {
    std::lock_guard lock(mutex_);
    const auto found = headers_.back().find(name);
    return found == headers_.back().end() ? "" : found->second;
  }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    ServerAnswer next{.status = 500};
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(nlohmann::json::parse(request.body, nullptr, false));
      authorizations_.push_back(request.get_header_value("Authorization"));
      targets_.push_back(request.target);
      headers_.push_back(request.headers);
      if (!answers_.empty()) {
        next = answers_.front();
        answers_.pop_front();
      }
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(next.pause_s));
    response.status = next.status;
    if (!next.retry_after.empty()) response.set_header("Retry-After", next.retry_after);
    for (const auto& [name, value] : next.headers) response.set_header(name.c_str(), value);
    if (next.pieces.empty()) {
      response.set_content(next.body, next.content_type.c_str());
      return;
    }
    response.set_chunked_content_provider(next.content_type.c_str(), [next](size_t offset, httplib::DataSink& sink) {
      // `offset` counts bytes: the piece that begins there.
      size_t begin = 0, piece = 0;
      while (piece < next.pieces.size() && begin < offset) begin += next.pieces[piece++].size();
      if (piece == next.pieces.size()) {
        if (next.breaks_off) return false;
        sink.done();
        return true;
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(next.piece_pause_s));
      return sink.write(next.pieces[piece].data(), next.pieces[piece].size());
    });
  }

  mutable std::mutex mutex_;
  std::deque<ServerAnswer> answers_;
  std::vector<nlohmann::json> requests_;
  std::vector<std::string> authorizations_, targets_;
  std::vector<httplib::Headers> headers_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace tilepilot::testing
