#include "eval/worker/profile/operator_watch.h"

#include <ATen/record_function.h>

#include <memory>

namespace tilepilot::eval {
namespace {

// LibTorch's callbacks are plain functions. What they find, for the thread that watches.
thread_local OperatorObserver* observer_of_thread = nullptr;
thread_local int operators_under_way = 0;

struct WatchedOperator final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> enter(const at::RecordFunction& function) {
  if (operators_under_way++ == 0 && observer_of_thread) observer_of_thread->begin_operator(function.name());
  return std::make_unique<WatchedOperator>();
}

void leave(const at::RecordFunction&, at::ObserverContext*) {
  if (--operators_under_way == 0 && observer_of_thread) observer_of_thread->end_operator();
}

}  // namespace

OperatorWatch::OperatorWatch(OperatorObserver& observer)
    : callback_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(enter, leave).scopes({at::RecordScope::FUNCTION}))) {
  observer_of_thread = &observer;
  operators_under_way = 0;
}

OperatorWatch::~OperatorWatch() {
  at::removeCallback(callback_);
  observer_of_thread = nullptr;
}

}  // namespace tilepilot::eval
