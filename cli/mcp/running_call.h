// A call of a tool that is under way, on a thread of its own: it can be cancelled, and tells its progress.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "cli/mcp/channel.h"
#include "cli/mcp/tool_call.h"
#include "compiler/runtime/stop_switch.h"

namespace tilepilot::cli::mcp {

// Takes the answer to one request; nothing: it gets none. Called once for each.
using Reply = std::function<void(std::optional<nlohmann::json>)>;

class RunningCall {
 public:
  // `token`: what progress is told under; null: nobody asked for it.
  RunningCall(nlohmann::json id, nlohmann::json token, Outbox& outbox);
  ~RunningCall();  // waits for the end
  RunningCall(const RunningCall&) = delete;

  // `work` runs on the call's thread, and `reply` gets what it makes, unless the call is cancelled before. False: the
  // system gives no thread, or no descriptors.
  bool start(std::function<nlohmann::json(const CallWatch&)> work, Reply reply);
  // The command is ended, and there is no answer.
  void cancel();
  // Tells who waits that the call is still under way, if nothing was told for long.
  void remind();

  const nlohmann::json& id() const { return id_; }
  bool has_ended() const { return has_ended_; }
  bool is_cancelled() const { return is_cancelled_; }

 private:
  using Clock = std::chrono::steady_clock;
  void tell(const std::string& line, bool is_reminder);

  nlohmann::json id_, token_;
  Outbox& outbox_;
  runtime::StopSwitch stop_;  // of the command
  std::thread thread_;
  std::atomic<bool> is_cancelled_ = false, has_ended_ = false;
  std::mutex progress_mutex_;
  std::string last_line_;
  int told_ = 0;
  bool is_answered_ = false;  // nothing is told any more
  Clock::time_point begin_ = Clock::now(), last_told_ = begin_;
};

}  // namespace tilepilot::cli::mcp
