// The processes of the user's own Python that hold a model under `torch.compile`: one for each of its modes. They wait
// until the judge, which gets their sockets, asks for something (eval/worker/judge/timing/compiled_side.h). They run
// the user's model file as the exporter does, and end with this object.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "eval/graph/reference.h"
#include "eval/judge.h"
#include "eval/process/worker_process.h"

namespace tilepilot::eval {

// In a message to the judge: an object for each of the descriptors that come with it, with its mode and process.
inline constexpr const char* kCompiledProcesses = "compiled_processes";

class CompiledProcesses {
 public:
  // Errors: `worker_unavailable`.
  static Result<CompiledProcesses> start(const Reference& reference, const JudgeOptions& options);

  nlohmann::json description() const;
  std::vector<int> descriptors() const;

 private:
  std::vector<std::unique_ptr<WorkerProcess>> processes_;
};

}  // namespace tilepilot::eval
