#include "eval/worker/profile/part_recorder.h"

#include <algorithm>
#include <utility>

#include "eval/host/device_times.h"
#include "eval/host/edge.h"
#include "eval/process/wire.h"

namespace tilepilot::eval {

PartRecorder& PartRecorder::knows_lines(const SourceMap& sources, const stage::StatementMarker& place) {
  sources_ = &sources;
  place_ = &place;
  return *this;
}

Status PartRecorder::watch(const std::function<Status()>& call) {
  order_.clear();
  depth_ = 0;
  Status status = guarded("", {}, [&] { clock_->begin(host_seconds_); });
  if (!status.ok()) return status;
  const double begin = monotonic_seconds();
  watching_ = true;
  {
    const OperatorWatch operators(*this);
    clock_->mark();
    status = call();
    clock_->mark();
  }
  watching_ = false;
  host_seconds_ = monotonic_seconds() - begin;
  if (status.ok()) status = guarded("", {}, [&] { count(); });
  for (const auto& work : std::exchange(later_, {})) work();
  return status;
}

// Marks: the call's beginning, both ends of each part in order, the call's end.
void PartRecorder::count() {
  const std::vector<double> marks = clock_->read();
  if (!std::exchange(warm_, true) || marks.size() != 2 * order_.size() + 2) return;
  record_.calls.push_back(marks.back());
  for (size_t i = 0; i < order_.size(); ++i)
    record_.parts[order_[i]].seconds.push_back(marks[2 * i + 2] - marks[2 * i + 1]);
}

size_t PartRecorder::add(PartRecord part) {
  record_.parts.push_back(std::move(part));
  return record_.parts.size() - 1;
}

void PartRecorder::begin_part(size_t number) {
  if (!watching_ || depth_++ > 0) return;
  order_.push_back(number);
  clock_->mark();
}

void PartRecorder::end_part() {
  if (watching_ && --depth_ == 0) clock_->mark();
}

void PartRecorder::begin_operator(std::string_view name) {
  const bool known = place_ && place_->file == 0;
  const auto [found, is_new] =
      operators_.try_emplace({std::string(name), known ? static_cast<uint32_t>(place_->offset) : 0}, 0);
  if (is_new) found->second = add({std::string(name), -1, known ? sources_->position(0, found->first.second).line : 0});
  begin_part(found->second);
}

void PartRecorder::set_function(size_t part, std::string function) { functions_[part] = std::move(function); }

Result<CallsRecord> PartRecorder::record_by_device(size_t calls, const std::function<Status()>& work) const {
  const std::vector<DeviceTime> times = TRY(device_times(work));
  CallsRecord counted = record();
  std::vector<std::string> functions;
  for (size_t i = 0; i < record_.parts.size(); ++i) {
    const auto found = functions_.find(i);
    if (!record_.parts[i].seconds.empty()) functions.push_back(found == functions_.end() ? "" : found->second);
  }
  take_device_times(counted, functions, times, calls);
  return counted;
}

CallsRecord PartRecorder::record() const {
  CallsRecord counted{clock_->method(), record_.calls, {}};
  std::copy_if(record_.parts.begin(), record_.parts.end(), std::back_inserter(counted.parts),
               [](const PartRecord& part) { return !part.seconds.empty(); });
  return counted;
}

}  // namespace tilepilot::eval
