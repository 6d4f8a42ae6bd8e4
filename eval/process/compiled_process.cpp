#include "eval/process/compiled_process.h"

#include <fcntl.h>

#include <array>

namespace tilepilot::eval {
namespace {

using nlohmann::json;

constexpr std::array kModes = {"default", "max-autotune"};
constexpr const char* kFinder = "/usr/bin/env";  // looks for the interpreter on PATH

}  // namespace

Result<CompiledProcesses> CompiledProcesses::start(const Reference& reference, const JudgeOptions& options) {
  CompiledProcesses started;
  // What Inductor writes while it compiles and tunes is not for the user.
  const Descriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  for (const char* mode : kModes) {
    std::vector<std::string> arguments = {options.python,
                                          options.exporter.string(),
                                          reference.model_path,
                                          "--serve-compiled",
                                          mode,
                                          "--seed",
                                          std::to_string(reference.seed),
                                          "--threads",
                                          std::to_string(options.threads),
                                          "--dtype",
                                          options.dtype,
                                          "--device",
                                          options.target.starts_with("cuda") ? "cuda" : "cpu"};
    if (reference.scale != "1") arguments.insert(arguments.end(), {"--scale", reference.scale});
    started.processes_.push_back(TRY(WorkerProcess::start({.executable = kFinder,
                                                           .role = {},
                                                           .threads = options.threads,
                                                           .dies_with_thread = true,
                                                           .output = nowhere.number(),
                                                           .arguments = std::move(arguments)})));
  }
  return started;
}

json CompiledProcesses::description() const {
  json described = json::array();
  for (size_t i = 0; i < processes_.size(); ++i)
    described.push_back({{"mode", kModes[i]}, {"process", processes_[i]->pid()}});
  return described;
}

std::vector<int> CompiledProcesses::descriptors() const {
  std::vector<int> numbers;
  for (auto& process : processes_) numbers.push_back(process->wire().descriptor());
  return numbers;
}

}  // namespace tilepilot::eval
