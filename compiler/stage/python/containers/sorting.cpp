#include "compiler/stage/python/containers/sorting.h"

#include <algorithm>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

namespace {

struct Keyed {
  Value key;
  Value item;
};

// A merge sort that stops at the first comparison that fails; std::stable_sort could not.
class Sorter {
 public:
  Sorter(Interpreter& interpreter, const SortOptions& options) : interpreter_(interpreter), options_(options) {}

  Status sort(std::vector<Keyed>& items) {
    std::vector<Keyed> scratch(items.size());
    for (size_t width = 1; width < items.size(); width *= 2) {
      for (size_t low = 0; low < items.size(); low += 2 * width) TRY(merge(items, scratch, low, width));
      items.swap(scratch);
    }
    return {};
  }

 private:
  Status merge(std::vector<Keyed>& from, std::vector<Keyed>& to, size_t low, size_t width) {
    size_t middle = std::min(low + width, from.size()), high = std::min(low + 2 * width, from.size());
    size_t left = low, right = middle;
    for (size_t out = low; out < high; ++out) {
      bool take_right = left == middle;
      if (!take_right && right < high) take_right = TRY(goes_before(from[right].key, from[left].key));
      to[out] = std::move(from[take_right ? right++ : left++]);
    }
    return {};
  }
  // Strictly, so that equal items keep their order.
  Result<bool> goes_before(const Value& a, const Value& b) {
    TRY(interpreter_.charge(options_.span));
    const Value& less = options_.reverse ? b : a;
    const Value& more = options_.reverse ? a : b;
    return interpreter_.truth(TRY(interpreter_.compare(CompareOp::lt, less, more, options_.span)), options_.span);
  }

  Interpreter& interpreter_;
  const SortOptions& options_;
};

}  // namespace

Result<std::vector<Value>> sorted(Interpreter& interpreter, std::vector<Value> items, const SortOptions& options) {
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (Value& item : items) {
    Value key = item;
    if (!options.key.is_none()) key = TRY(interpreter.call(options.key, CallArgs{{item}, {}, options.span, {}}));
    keyed.push_back({std::move(key), std::move(item)});
  }
  TRY(Sorter(interpreter, options).sort(keyed));
  for (size_t i = 0; i < keyed.size(); ++i) items[i] = std::move(keyed[i].item);
  return items;
}

}  // namespace tilepilot::stage
