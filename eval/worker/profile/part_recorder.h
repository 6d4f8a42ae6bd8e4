// Records which parts of a call take how long: generated kernels and the operators of ATen that the program itself
// calls. Unless told otherwise it only looks at the first call, in which kernels compile and caches fill.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "compiler/stage/python/interpreter.h"
#include "eval/profile/profile_record.h"
#include "eval/worker/profile/operator_watch.h"
#include "eval/worker/profile/part_clock.h"

namespace tilepilot::eval {

class PartRecorder final : public OperatorObserver {
 public:
  // `warms_up`: the first call does not count.
  explicit PartRecorder(c10::Device device, bool warms_up = true) : clock_(part_clock_for(device)), warm_(!warms_up) {}
  // Where the program is when it calls an operator, for lines: offsets in file 0 of `sources`. Both must outlive it.
  PartRecorder& knows_lines(const SourceMap& sources, const stage::StatementMarker& place);

  // Watches a call, which is made in this thread. Gives what `call` gives.
  Status watch(const std::function<Status()>& call);
  bool is_watching() const { return watching_; }

  // Parts are added once, and then named by their number.
  size_t add(PartRecord part);
  PartRecord& part(size_t number) { return record_.parts[number]; }
  // What stands within another part counts as that.
  void begin_part(size_t number);
  void end_part();
  // After the call, as it takes time.
  void later(std::function<void()> work) { later_.push_back(std::move(work)); }

  void begin_operator(std::string_view name) override;
  void end_operator() override { end_part(); }

  // By the name that a GPU knows a kernel's part by.
  void set_function(size_t part, std::string function);

  // The counted calls, with the parts that ran in them.
  CallsRecord record() const;
  // The same with what the GPU itself says of the kernels in `calls` calls, which `work` makes; as it was where it
  // says nothing.
  Result<CallsRecord> record_by_device(size_t calls, const std::function<Status()>& work) const;

 private:
  void count();

  std::unique_ptr<PartClock> clock_;
  const SourceMap* sources_ = nullptr;
  const stage::StatementMarker* place_ = nullptr;
  CallsRecord record_;
  std::map<std::pair<std::string, uint32_t>, size_t> operators_;  // by name and offset
  std::map<size_t, std::string> functions_;                       // by part
  std::vector<size_t> order_;                                     // of the call's parts
  std::vector<std::function<void()>> later_;
  double host_seconds_ = 0;  // of the last call
  int depth_ = 0;
  bool watching_ = false, warm_;
};

}  // namespace tilepilot::eval
