#include "agent/export_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <utility>

#include "agent/exporter.h"
#include "compiler/runtime/process.h"

namespace tilepilot::agent {

ExportServer::ExportServer(std::string python, std::filesystem::path script)
    : python_(std::move(python)), script_(std::move(script)) {}

ExportServer::~ExportServer() {
  if (stop_[0] >= 0) close(stop_[0]);
  if (runs_.joinable()) runs_.join();
  if (stop_[1] >= 0) close(stop_[1]);
}

std::string ExportServer::variable() {
  const std::lock_guard lock(mutex_);
  if (name_.empty() && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stop_) == 0) {
    std::random_device random;
    name_ = fmt::format("tilepilot-export-{}-{:08x}{:08x}", getpid(), random(), random());
    runs_ = std::thread([this] {
      runtime::ProcessOptions process;
      process.abandon = stop_[1];
      process.output_limit = 0;
      // However it ends, exports go on without it.
      [[maybe_unused]] const auto ended = runtime::run_process({python_, script_.string(), "--serve", name_}, process);
    });
  }
  return fmt::format("{}={}", kExportServerVariable, name_);
}

}  // namespace tilepilot::agent
