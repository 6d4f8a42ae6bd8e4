#include "agent/export_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <utility>

#include "agent/exporter.h"
#include "compiler/runtime/abstract_address.h"
#include "compiler/runtime/process.h"

namespace tilepilot::agent {

ExportServer::ExportServer(std::string python, std::filesystem::path script)
    : python_(std::move(python)), script_(std::move(script)) {}

ExportServer::~ExportServer() {
  stop_.pull();
  if (runs_.joinable()) runs_.join();
}

// It does so before it imports anything. An export that finds nobody is done by itself.
void ExportServer::wait_until_it_listens() const {
  constexpr int kLooks = 500;
  constexpr auto kPause = std::chrono::milliseconds(10);
  const runtime::AbstractAddress address(name_);
  for (int i = 0; i < kLooks && !has_ended_; ++i) {
    const int asks = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool listens = connect(asks, address.get(), address.length()) == 0;
    close(asks);
    if (listens) return;
    std::this_thread::sleep_for(kPause);
  }
}

std::string ExportServer::variable() {
  const std::lock_guard lock(mutex_);
  if (name_.empty() && stop_.watched() >= 0) {
    std::random_device random;
    name_ = fmt::format("tilepilot-export-{}-{:08x}{:08x}", getpid(), random(), random());
    runs_ = std::thread([this] {
      runtime::ProcessOptions process;
      process.abandon = stop_.watched();
      process.output_limit = 0;
      // However it ends, exports go on without it.
      [[maybe_unused]] const auto ended = runtime::run_process({python_, script_.string(), "--serve", name_}, process);
      has_ended_ = true;
    });
    wait_until_it_listens();
  }
  return fmt::format("{}={}", kExportServerVariable, name_);
}

}  // namespace tilepilot::agent
