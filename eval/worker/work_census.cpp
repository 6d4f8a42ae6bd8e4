#include "eval/worker/work_census.h"

#include <ATen/record_function.h>

#include "eval/worker/poison.h"

namespace tilepilot::eval {
namespace {

// LibTorch's callbacks are plain functions: where they count, for the thread that registered them.
thread_local Work* counting = nullptr;

std::unique_ptr<at::ObserverContext> count(const at::RecordFunction& function) {
  if (counting) ++(*counting)[function.name()];
  return nullptr;
}

}  // namespace

WorkCensus::WorkCensus(LaunchLog& log) : log_(log), bytes_before_(poisoned_bytes()) {
  log_.detailed = true;
  log_.sized.clear();
  counting = &operators_;
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(count).scopes({at::RecordScope::FUNCTION}));
  set_poison(kPoisonNan);
}

WorkCensus::~WorkCensus() {
  set_poison(std::nullopt);
  at::removeCallback(handle_);
  counting = nullptr;
  log_.detailed = false;
}

Work WorkCensus::take() {
  Work work = std::exchange(operators_, {});
  work.merge(std::exchange(log_.sized, {}));
  work["allocated bytes"] = poisoned_bytes() - bytes_before_;
  return work;
}

std::string missing_work(const Work& whole, const Work& part) {
  for (auto& [name, times] : whole) {
    auto found = part.find(name);
    if (found == part.end() || found->second < times) return name;
  }
  return "";
}

}  // namespace tilepilot::eval
