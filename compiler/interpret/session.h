// What all parts of one run share: its options, the first fault, the steps that are left, and the dice that decide who
// goes next.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "compiler/interpret/fault.h"
#include "compiler/interpret/functions.h"

namespace tilepilot::interpret {

struct Options {
  const Functions* functions = &library_functions();
  // 0: blocks, threads and iterations of parallel loops in ascending order, a thread as far as it gets. Else the seed
  // of a random order, in which threads take turns after every statement.
  uint32_t schedule = 0;
  int64_t steps = 20'000'000;                               // evaluations, statements and elements of tile operators
  bool reports_uninitialised = true;                        // else memory that nobody wrote holds zeros
  std::function<void(const std::string&)> print = nullptr;  // where lines that the program prints go; null: nowhere
};

class Session {
 public:
  explicit Session(const Options& options) : options_(options), steps_(options.steps), random_(options.schedule) {}

  const Options& options() const { return options_; }
  bool stopped() const { return fault_.has_value(); }
  std::optional<Fault> take_fault() { return std::move(fault_); }

  // The first fault counts: what follows it only ends the run.
  void fail(Fault fault) {
    if (!fault_) fault_ = std::move(fault);
  }
  void spend(Span span) {
    if (--steps_ < 0) fail({FaultKind::budget_exceeded, span, "the program takes too many steps"});
  }

  bool shuffles() const { return options_.schedule != 0; }
  size_t pick(size_t count) { return shuffles() ? random_() % count : 0; }
  template <class T>
  void arrange(std::vector<T>& items) {
    for (size_t k = items.size(); shuffles() && k > 1; --k) std::swap(items[k - 1], items[pick(k)]);
  }

 private:
  const Options& options_;
  int64_t steps_;
  std::mt19937 random_;
  std::optional<Fault> fault_;
};

}  // namespace tilepilot::interpret
