// The judge's hold on one candidate's process: requests with a deadline, and what the process's end means.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "eval/judge.h"
#include "eval/worker/shared_crumb.h"
#include "eval/worker/tensor_passage.h"
#include "eval/worker_process.h"

namespace tilepilot::eval {

class CandidateLink {
 public:
  // `source` is the candidate's text, to turn the place of a crash into a line.
  static Result<std::unique_ptr<CandidateLink>> start(const std::filesystem::path& executable, int threads,
                                                      const std::string& source);

  // All requests until the next call share `seconds` of the candidate's own time: neither what the judge does in
  // between counts, nor compiling kernels and waiting for a processor, up to kPatience times as long.
  void set_limit(double seconds) { limit_ = left_ = seconds; }
  // Sends the request; tensors go beside it, one file an entry. Nullopt: see failure().
  std::optional<Message> ask(const nlohmann::json& request, const std::vector<std::vector<at::Tensor>>& files = {});
  // A verdict of the outcome that ended the last request.
  const Verdict& failure() const { return failure_; }

 private:
  CandidateLink() = default;
  double spared_seconds() const;
  void explain_end();
  std::string place() const;

  std::unique_ptr<WorkerProcess> process_;
  std::unique_ptr<CrumbPage> crumb_;
  SourceMap sources_;
  double limit_ = 0, left_ = 0;
  Verdict failure_;
};

}  // namespace tilepilot::eval
