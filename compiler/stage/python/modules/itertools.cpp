// The module `itertools`. Finite results are computed at once; count, cycle and repeat go on for ever.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/arithmetic.h"
#include "compiler/stage/python/containers.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/native.h"

namespace tilepilot::stage {

namespace {

using Items = std::vector<Value>;
using Pools = std::vector<Items>;

Result<Pools> pools_of(Interpreter& interpreter, const std::vector<Value>& iterables, Span span) {
  Pools pools;
  for (const Value& each : iterables) pools.push_back(TRY(interpreter.to_vector(each, span)));
  return pools;
}

// Collects results and keeps them within the limits.
class Collector {
 public:
  Collector(Interpreter& interpreter, Span span) : interpreter_(interpreter), span_(span) {}
  Status add(Value value) {
    TRY(interpreter_.charge(span_));
    if (static_cast<int64_t>(items_.size()) >= interpreter_.limits().container_items) {
      return too_large(interpreter_, span_);
    }
    items_.push_back(std::move(value));
    return {};
  }
  Value finish() { return make_iterator(iterate_over(std::move(items_))); }

 private:
  Interpreter& interpreter_;
  Span span_;
  Items items_;
};

Result<Value> product(Interpreter& interpreter, CallArgs& args) {
  Pools pools = TRY(pools_of(interpreter, args.positional, args.span));
  if (const Value* repeat = args.keyword("repeat")) {
    int64_t times = repeat->as_index().value_or(1);
    if (times < 0 || times > 64) return value_error(args.span, "repeat argument must be from 0 to 64");
    Pools once = pools;
    pools.clear();
    for (int64_t i = 0; i < times; ++i) pools.insert(pools.end(), once.begin(), once.end());
  }
  Collector collector(interpreter, args.span);
  bool empty = std::any_of(pools.begin(), pools.end(), [](const Items& pool) { return pool.empty(); });
  std::vector<size_t> at(pools.size());
  while (!empty) {
    Items row;
    for (size_t i = 0; i < pools.size(); ++i) row.push_back(pools[i][at[i]]);
    TRY(collector.add(make_tuple(std::move(row))));
    size_t i = pools.size();
    while (i > 0 && ++at[i - 1] == pools[i - 1].size()) at[--i] = 0;
    if (i == 0) break;
  }
  return collector.finish();
}

// combinations and permutations, in lexicographic order of positions.
struct Choice {
  bool ordered;     // permutations
  bool repetition;  // combinations_with_replacement
};

class Chooser {
 public:
  Chooser(Choice choice, const Items& pool, size_t length, Collector& collector)
      : choice_(choice), pool_(pool), length_(length), collector_(collector), used_(pool.size()) {}
  Status choose(size_t from) {
    if (chosen_.size() == length_) return collector_.add(make_tuple(chosen_));
    for (size_t i = choice_.ordered ? 0 : from; i < pool_.size(); ++i) {
      if (choice_.ordered && used_[i]) continue;
      used_[i] = true;
      chosen_.push_back(pool_[i]);
      TRY(choose(choice_.repetition ? i : i + 1));
      chosen_.pop_back();
      used_[i] = false;
    }
    return {};
  }

 private:
  Choice choice_;
  const Items& pool_;
  size_t length_;
  Collector& collector_;
  std::vector<bool> used_;
  Items chosen_;
};

template <bool ordered, bool repetition>
Result<Value> choose(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{ordered ? "permutations" : "combinations", {"iterable", "r"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Items pool = TRY(interpreter.to_vector(*read[0], args.span));
  auto length = TRY(read.integer(1, static_cast<int64_t>(pool.size())));
  if (length < 0) return value_error(args.span, "r must be non-negative");
  Collector collector(interpreter, args.span);
  if (repetition || length <= static_cast<int64_t>(pool.size())) {
    if (length > 1000) return value_error(args.span, "r is too large");
    TRY(Chooser({ordered, repetition}, pool, static_cast<size_t>(length), collector).choose(0));
  }
  return collector.finish();
}

Result<Value> chain(Interpreter& interpreter, CallArgs& args) {
  Collector collector(interpreter, args.span);
  for (const Value& each : args.positional) {
    for (Value& item : TRY(interpreter.to_vector(each, args.span))) TRY(collector.add(std::move(item)));
  }
  return collector.finish();
}

Result<Value> chain_from_iterable(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"from_iterable", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  CallArgs spread{TRY(interpreter.to_vector(*read[0], args.span)), {}, args.span, {}};
  return chain(interpreter, spread);
}

// `chain` can be called and has `from_iterable`.
struct ChainFunction final : TypedObject<ChainFunction> {
  static constexpr Type kType{"itertools.chain"};
  Result<Value> call(Interpreter& interpreter, CallArgs args) override { return chain(interpreter, args); }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override {
    if (name.text() == "from_iterable") return make_builtin("from_iterable", chain_from_iterable);
    return no_attribute(type_name(), name, span, {"from_iterable"});
  }
};

Result<Value> zip_longest(Interpreter& interpreter, CallArgs& args) {
  Pools pools = TRY(pools_of(interpreter, args.positional, args.span));
  const Value* fill = args.keyword("fillvalue");
  size_t longest = 0;
  for (const Items& pool : pools) longest = std::max(longest, pool.size());
  Collector collector(interpreter, args.span);
  for (size_t row = 0; row < longest; ++row) {
    Items items;
    for (const Items& pool : pools) items.push_back(row < pool.size() ? pool[row] : fill ? *fill : Value());
    TRY(collector.add(make_tuple(std::move(items))));
  }
  return collector.finish();
}

class CountIterator final : public Iterator {
 public:
  CountIterator(Value next, Value step, Span span) : next_(std::move(next)), step_(std::move(step)), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    Value current = next_;
    next_ = TRY(interpreter.binary(BinaryOp::add, next_, step_, span_));
    return std::optional<Value>(std::move(current));
  }

 private:
  Value next_, step_;
  Span span_;
};

class CycleIterator final : public Iterator {
 public:
  explicit CycleIterator(Items items, int64_t left) : items_(std::move(items)), left_(left) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    if (items_.empty() || left_ == 0) return std::optional<Value>();
    if (left_ > 0) --left_;
    return std::optional<Value>(items_[position_++ % items_.size()]);
  }

 private:
  Items items_;
  int64_t left_;  // negative: for ever
  size_t position_ = 0;
};

Result<Value> count(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"count", {"start", "step"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return make_iterator(
      std::make_unique<CountIterator>(read[0] ? *read[0] : Value(0), read[1] ? *read[1] : Value(1), args.span));
}

Result<Value> cycle(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"cycle", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return make_iterator(std::make_unique<CycleIterator>(TRY(interpreter.to_vector(*read[0], args.span)), -1));
}

Result<Value> repeat(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"repeat", {"object", "times"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  int64_t times = read[1] ? std::max<int64_t>(0, TRY(read.integer(1))) : -1;
  return make_iterator(std::make_unique<CycleIterator>(Items{*read[0]}, times));
}

Result<Value> islice(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"islice", {"iterable", "start", "stop", "step"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  bool only_stop = args.positional.size() == 2;
  int64_t start = only_stop || !read.given(1) ? 0 : TRY(read.integer(1));
  size_t stop_at = only_stop ? 1 : 2;
  int64_t stop = read.given(stop_at) ? TRY(read.integer(stop_at)) : -1;
  int64_t step = read.given(3) ? TRY(read.integer(3)) : 1;
  if (start < 0 || step < 1) return value_error(args.span, "indices for islice() must be None or an integer >= 0");
  auto source = TRY(interpreter.iterate(*read[0], args.span));
  Collector collector(interpreter, args.span);
  for (int64_t i = 0; stop < 0 || i < stop; ++i) {
    std::optional<Value> item = TRY(source->next(interpreter));
    if (!item) break;
    if (i >= start && (i - start) % step == 0) TRY(collector.add(*std::move(item)));
  }
  return collector.finish();
}

Result<Value> accumulate(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"accumulate", {"iterable", "func", "initial"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Collector collector(interpreter, args.span);
  std::optional<Value> total;
  if (read.given(2)) TRY(collector.add(*(total = *read[2])));
  for (const Value& item : TRY(interpreter.to_vector(*read[0], args.span))) {
    if (!total)
      total = item;
    else if (!read.given(1))
      total = TRY(interpreter.binary(BinaryOp::add, *total, item, args.span));
    else
      total = TRY(interpreter.call(*read[1], CallArgs{{*total, item}, {}, args.span, {}}));
    TRY(collector.add(*total));
  }
  return collector.finish();
}

Result<Value> starmap(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"starmap", {"function", "iterable"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Collector collector(interpreter, args.span);
  for (const Value& item : TRY(interpreter.to_vector(*read[1], args.span))) {
    CallArgs one{TRY(interpreter.to_vector(item, args.span)), {}, args.span, {}};
    TRY(collector.add(TRY(interpreter.call(*read[0], std::move(one)))));
  }
  return collector.finish();
}

// takewhile and dropwhile.
template <bool take>
Result<Value> while_true(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{take ? "takewhile" : "dropwhile", {"predicate", "iterable"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto source = TRY(interpreter.iterate(*read[1], args.span));
  Collector collector(interpreter, args.span);
  bool holds = true;
  while (std::optional<Value> item = TRY(source->next(interpreter))) {
    if (holds) {
      Value verdict = TRY(interpreter.call(*read[0], CallArgs{{*item}, {}, args.span, {}}));
      holds = TRY(interpreter.truth(verdict, args.span));
    }
    if (take && !holds) break;
    if (take || !holds) TRY(collector.add(*std::move(item)));
  }
  return collector.finish();
}

Result<Value> pairwise(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"pairwise", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Items items = TRY(interpreter.to_vector(*read[0], args.span));
  Collector collector(interpreter, args.span);
  for (size_t i = 1; i < items.size(); ++i) TRY(collector.add(make_tuple({items[i - 1], items[i]})));
  return collector.finish();
}

}  // namespace

void fill_itertools(Interpreter&, ModuleObject& module) {
  module.set("chain", std::make_shared<ChainFunction>());
  module.function("product", product);
  module.function("permutations", choose<true, false>);
  module.function("combinations", choose<false, false>);
  module.function("combinations_with_replacement", choose<false, true>);
  module.function("zip_longest", zip_longest);
  module.function("count", count);
  module.function("cycle", cycle);
  module.function("repeat", repeat);
  module.function("islice", islice);
  module.function("accumulate", accumulate);
  module.function("starmap", starmap);
  module.function("takewhile", while_true<true>);
  module.function("dropwhile", while_true<false>);
  module.function("pairwise", pairwise);
}

}  // namespace tilepilot::stage
