// A scripted client of `tilepilot mcp`: starts the server, writes lines to it and reads what it answers.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/cli/command_line.h"
#include "tests/cli/process_tree.h"

namespace tilepilot {

class Mcp : public CommandLine {
 protected:
  using json = nlohmann::json;

  ~Mcp() override {
    if (server_ <= 0) return;
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
    close_input();
    close(out_);
  }

  // The server, on the processor; its standard error goes to a file.
  void start(std::vector<std::string> more = {"--target", "cpu"}) {
    std::vector<std::string> words = {"/usr/bin/env", "TILEPILOT_STORE=" + store().string(),
                                      "TILEPILOT_API_KEY=the-key", TILEPILOT_BINARY_DIR "/tilepilot", "mcp"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    int to[2], from[2];
    ASSERT_EQ(pipe2(to, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(from, O_CLOEXEC), 0);
    server_ = fork();
    if (server_ == 0) {
      const int errors = open((folder_ / "server.err").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
      dup2(to[0], 0);
      dup2(from[1], 1);
      dup2(errors, 2);
      if (chdir(folder_.c_str()) == 0) execv(pointers[0], pointers.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in_ = to[1];
    out_ = from[0];
  }

  // False if the server reads no more.
  bool send_text(const std::string& text) const {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = write(in_, text.data() + sent, text.size() - sent);
      if (count <= 0) return false;
      sent += static_cast<size_t>(count);
    }
    return true;
  }
  void send(const json& message) const { ASSERT_TRUE(send_text(message.dump() + "\n")); }
  void close_input() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }

  // The next message; nothing if the server closes its output or says nothing for so long. What is no JSON fails.
  std::optional<json> receive(double seconds = 120) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (size_t line_end; (line_end = pending_.find('\n')) == std::string::npos;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd waiting{out_, POLLIN, 0};
      if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return std::nullopt;
      char buffer[1 << 16];
      const ssize_t count = read(out_, buffer, sizeof buffer);
      if (count <= 0) return std::nullopt;
      pending_.append(buffer, static_cast<size_t>(count));
    }
    const size_t line_end = pending_.find('\n');
    json message = json::parse(pending_.substr(0, line_end), nullptr, false);
    EXPECT_FALSE(message.is_discarded()) << pending_.substr(0, line_end);
    pending_.erase(0, line_end + 1);
    return message;
  }

  // The answer with this id; notifications that come before it are kept.
  json answer_to(const json& id, double seconds = 120) {
    for (;;) {
      auto message = receive(seconds);
      if (!message) {
        ADD_FAILURE() << "no answer to " << id << "; " << content_of(folder_ / "server.err");
        return json::object();
      }
      if (message->is_object() && message->contains("id") && message->at("id") == id) return *message;
      others_.push_back(*message);
    }
  }

  json ask(const json& id, const std::string& method, json params = json::object()) {
    send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
    return answer_to(id);
  }
  void send_call(const json& id, const std::string& tool, json arguments, json token = nullptr) {
    json params = {{"name", tool}, {"arguments", std::move(arguments)}};
    if (!token.is_null()) params["_meta"] = {{"progressToken", token}};
    send({{"jsonrpc", "2.0"}, {"id", id}, {"method", "tools/call"}, {"params", std::move(params)}});
  }
  // The result of a tool.
  json call(const std::string& tool, json arguments) {
    const json id = "call " + std::to_string(++number_);
    send_call(id, tool, std::move(arguments));
    json answer = answer_to(id);
    EXPECT_TRUE(answer.contains("result")) << answer;
    return answer.value("result", json::object());
  }
  static std::string text_of(const json& result) {
    std::string text;
    for (const json& part : result.value("content", json::array())) text += part.at("text").get<std::string>();
    return text;
  }

  json begin_session(const std::string& revision = "2025-11-25") {
    json answer = ask("begin", "initialize",
                      {{"protocolVersion", revision},
                       {"capabilities", json::object()},
                       {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
    send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
    return answer.value("result", json::object());
  }
  static json modern(json params = json::object(), const std::string& revision = "2026-07-28") {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = revision;
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json::object();
    return params;
  }
  static int code_of(const json& answer) { return answer.contains("error") ? answer["error"].value("code", 0) : 0; }

  // The exit status of the server, which ends within the seconds.
  int status_at_end(double seconds) {
    int status = -1;
    EXPECT_TRUE(comes_true(seconds, [&] { return waitpid(server_, &status, WNOHANG) == server_; })) << "it goes on";
    server_ = -1;
    return status;
  }
  std::set<pid_t> all_descendants() const {
    std::set<pid_t> found;
    collect_descendants(server_, found);
    return found;
  }
  // Without the one that exports for all calls, and stays.
  std::set<pid_t> descendants() const {
    std::set<pid_t> found = all_descendants();
    const std::string ours = " " + std::to_string(server_) + " ";
    std::erase_if(found, [&](pid_t process) {
      const std::string stat = content_of(folder_of(process) / "stat");
      const bool is_child = stat.find(ours, stat.rfind(')')) == stat.rfind(')') + 3;
      return is_child && content_of(folder_of(process) / "cmdline").find("--serve") != std::string::npos;
    });
    return found;
  }

  static std::string text_of_file(const std::string& file) { return content_of(file); }

  pid_t server_ = -1;
  int in_ = -1, out_ = -1;
  std::vector<json> others_;

 private:
  std::string pending_;
  int number_ = 0;
};

}  // namespace tilepilot
