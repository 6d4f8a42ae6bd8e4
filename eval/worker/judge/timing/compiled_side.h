// A model under `torch.compile` in one of its modes, beside eager and the candidates: a process of the exporter's
// Python (scripts/tilepilot_export/compiled.py) that runs the same batches on the same inputs, with the judge's clock
// on a processor and events on a GPU. What fails there is no verdict: the side falls out, and why is told in a note.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval/process/wire.h"
#include "eval/worker/judge/call_source.h"

namespace tilepilot::eval {

struct CompiledLaunch {
  std::string mode;
  Descriptor socket;
  pid_t process = -1;  // ended when it does not answer in time
};

class CompiledSide {
 public:
  CompiledSide(CompiledLaunch launch, const ReferenceSide& side);

  const std::string& mode() const { return mode_; }
  // Empty: it answers.
  const std::string& trouble() const { return trouble_; }
  bool works() const { return trouble_.empty(); }
  // What is wrong with it from now on.
  void give_up(const std::string& why);
  double compile_seconds() const { return compile_seconds_; }

  struct Limits {
    double compile_s = 0, request_s = 0;
    std::function<void()> meanwhile = {};  // every second or so, while it compiles
  };
  // Loads weights. Unless that has been done, compiles for such inputs and warms up until calls become no faster.
  void get_ready(int weights, const std::vector<at::Tensor>& inputs, const Limits& limits);
  // `anew`: though it has them, as calls may have changed buffers.
  void load_weights(int set, bool anew);
  struct Ran {
    double seconds = 0;     // of the calls after the lead; on a processor with the round trip
    double round_trip = 0;  // of an empty batch
  };
  // The batch's calls, `after` each request that is timed. Nullopt: see trouble().
  std::optional<Ran> run(const PlannedBatch& planned, const CallSource& source, const std::function<void()>& after);
  // What a call of the batch returned, in the model's order.
  std::optional<std::vector<at::Tensor>> fetch(size_t call);
  // The batch is over.
  void rest();

 private:
  std::optional<Message> ask(nlohmann::json request, const std::vector<at::Tensor>* tensors, double limit_s,
                             const std::function<void()>& meanwhile = {});
  std::vector<at::Tensor> inputs_of_calls(const PlannedBatch& planned, const CallSource& source) const;

  std::string mode_;
  Wire wire_;
  pid_t process_;
  const ReferenceSide& side_;
  std::string trouble_;
  int weights_ = -1;  // the set that it has
  bool compiled_ = false;
  double compile_seconds_ = 0, request_limit_ = 0;
};

}  // namespace tilepilot::eval
