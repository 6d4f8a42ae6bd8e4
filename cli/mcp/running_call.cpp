#include "cli/mcp/running_call.h"

#include <fmt/format.h>

#include <system_error>

namespace tilepilot::cli::mcp {

using nlohmann::json;

namespace {

constexpr std::chrono::milliseconds kLeastPause{100};
constexpr std::chrono::seconds kReminderPause{10};

}  // namespace

RunningCall::RunningCall(json id, json token, Outbox& outbox)
    : id_(std::move(id)), token_(std::move(token)), outbox_(outbox) {}

RunningCall::~RunningCall() {
  if (thread_.joinable()) thread_.join();
}

bool RunningCall::start(std::function<json(const CallWatch&)> work, Reply reply) {
  if (stop_.watched() < 0) return false;  // it could not be cancelled
  const CallWatch watch{stop_.watched(), [this](const std::string& line) { tell(line, /*is_reminder*/ false); }};
  try {
    thread_ = std::thread([this, work = std::move(work), reply = std::move(reply), watch] {
      json answer = work(watch);
      {
        std::lock_guard lock(progress_mutex_);
        is_answered_ = true;
      }
      reply(is_cancelled_ ? std::nullopt : std::optional<json>(std::move(answer)));
      has_ended_ = true;
    });
  } catch (const std::system_error&) { return false; }
  return true;
}

void RunningCall::cancel() {
  {
    std::lock_guard lock(progress_mutex_);
    is_answered_ = true;
  }
  is_cancelled_ = true;
  stop_.pull();
}

void RunningCall::remind() {
  std::string line;
  {
    std::lock_guard lock(progress_mutex_);
    line = last_line_.empty() ? "running" : last_line_;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin_).count();
  tell(fmt::format("{} ({} s)", line, seconds), /*is_reminder*/ true);
}

void RunningCall::tell(const std::string& line, bool is_reminder) {
  if (token_.is_null()) return;
  std::lock_guard lock(progress_mutex_);
  if (!is_reminder) last_line_ = line;
  const auto pause = Clock::now() - last_told_;
  const bool is_soon = is_reminder ? pause < kReminderPause : told_ > 0 && pause < kLeastPause;
  if (is_answered_ || is_soon) return;
  last_told_ += pause;
  outbox_.send(
      notification("notifications/progress", {{"progressToken", token_}, {"progress", ++told_}, {"message", line}}));
}

}  // namespace tilepilot::cli::mcp
