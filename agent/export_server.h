// An exporter that has imported PyTorch once, for exports that are a fork of it each and so begin at once
// (scripts/tilepilot_export/server.py). `generate`, `check` and others find it by the name in an environment variable.
#pragma once

#include <atomic>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "compiler/runtime/stop_switch.h"

namespace tilepilot::agent {

class ExportServer {
 public:
  // Nothing is started yet. Of an interpreter without PyTorch there is no server, and exports run and fail by
  // themselves.
  ExportServer(std::string python, std::filesystem::path script);
  // It ends with this object, and with this process, however that ends.
  ~ExportServer();
  ExportServer(const ExportServer&) = delete;

  // Starts it, unless it was; exports wait until it is ready. Gives "NAME=value", for the environment of processes that
  // export. Any thread may ask.
  std::string variable();

 private:
  const std::string python_;
  const std::filesystem::path script_;
  std::mutex mutex_;
  std::string name_;  // of its abstract socket; empty: it was not started
  runtime::StopSwitch stop_;
  std::thread runs_;
  std::atomic<bool> has_ended_ = false;

  void wait_until_it_listens() const;
};

}  // namespace tilepilot::agent
