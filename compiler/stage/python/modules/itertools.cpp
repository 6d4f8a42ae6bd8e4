// The module `itertools`: iterators that ask for an item of theirs when they are asked for one.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

using Item = std::optional<Value>;
using Items = std::vector<Value>;
using Pools = std::vector<Items>;
using Source = std::unique_ptr<Iterator>;

// An iterator whose `next` is a lambda with its state.
template <class Next>
class Steps final : public Iterator {
 public:
  explicit Steps(Next next) : next_(std::move(next)) {}
  Result<Item> next(Interpreter& interpreter) override {
    TRY(interpreter.check_stack(Span{}));
    return next_(interpreter);
  }

 private:
  Next next_;
};

template <class Next>
Value make_steps(Next next) {
  return make_iterator(std::make_unique<Steps<Next>>(std::move(next)));
}

Result<Pools> pools_of(Interpreter& interpreter, const std::vector<Value>& iterables, Span span) {
  Pools pools;
  for (const Value& each : iterables) pools.push_back(TRY(interpreter.to_vector(each, span)));
  return pools;
}

Result<std::vector<Source>> sources_of(Interpreter& interpreter, const std::vector<Value>& iterables, Span span) {
  std::vector<Source> sources;
  for (const Value& each : iterables) sources.push_back(TRY(interpreter.iterate(each, span)));
  return sources;
}

Result<bool> holds(Interpreter& interpreter, const Value& predicate, const Value& item, Span span) {
  if (predicate.is_none()) return interpreter.truth(item, span);
  Value verdict = TRY(interpreter.call(predicate, CallArgs{{item}, {}, span, {}}));
  return interpreter.truth(verdict, span);
}

Result<Value> product(Interpreter& interpreter, CallArgs& args) {
  Pools pools = TRY(pools_of(interpreter, args.positional, args.span));
  if (const Value* repeat = args.keyword("repeat")) {
    const int64_t times = repeat->as_index().value_or(1);
    if (times < 0 || times > 64) return value_error(args.span, "repeat argument must be from 0 to 64");
    const Pools once = std::exchange(pools, {});
    for (int64_t i = 0; i < times; ++i) pools.insert(pools.end(), once.begin(), once.end());
  }
  const bool empty = std::any_of(pools.begin(), pools.end(), [](const Items& pool) { return pool.empty(); });
  std::vector<size_t> at(pools.size());
  return make_steps(
      [pools = std::move(pools), at = std::move(at), ended = empty](Interpreter&) mutable -> Result<Item> {
        if (ended) return Item();
        Items row;
        for (size_t i = 0; i < pools.size(); ++i) row.push_back(pools[i][at[i]]);
        size_t i = pools.size();
        while (i > 0 && ++at[i - 1] == pools[i - 1].size()) at[--i] = 0;
        ended = i == 0;
        return Item(make_tuple(std::move(row)));
      });
}

// What combinations and permutations choose: positions, in lexicographic order.
class Positions {
 public:
  enum class Kind : uint8_t { combinations, with_replacement, permutations };
  Positions(Kind kind, size_t pool, size_t length) : kind_(kind), pool_(pool), chosen_(length) {
    if (kind != Kind::with_replacement) std::iota(chosen_.begin(), chosen_.end(), size_t{0});
    ended_ = length > pool && (kind != Kind::with_replacement || pool == 0);
  }
  bool ended() const { return ended_; }
  const std::vector<size_t>& chosen() const { return chosen_; }

  void advance() {
    for (size_t i = chosen_.size(); i-- > 0;) {
      size_t next = chosen_[i] + 1;
      while (kind_ == Kind::permutations && is_used(next, i)) ++next;
      if (next > highest(i)) continue;
      chosen_[i] = next;
      fill_from(i + 1);
      return;
    }
    ended_ = true;
  }

 private:
  size_t highest(size_t i) const { return kind_ == Kind::combinations ? pool_ - chosen_.size() + i : pool_ - 1; }
  bool is_used(size_t position, size_t before) const {
    const auto end = chosen_.begin() + static_cast<std::ptrdiff_t>(before);
    return std::find(chosen_.begin(), end, position) != end;
  }
  // The least that may follow.
  void fill_from(size_t first) {
    for (size_t i = first; i < chosen_.size(); ++i) {
      size_t next = kind_ == Kind::permutations ? 0 : chosen_[i - 1] + (kind_ == Kind::combinations ? 1 : 0);
      while (kind_ == Kind::permutations && is_used(next, i)) ++next;
      chosen_[i] = next;
    }
  }

  Kind kind_;
  size_t pool_;
  std::vector<size_t> chosen_;
  bool ended_;
};

template <Positions::Kind kind>
Result<Value> choose(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{
      "combinations", {"iterable", "r"}, kind == Positions::Kind::permutations ? size_t{1} : size_t{2}};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Items pool = TRY(interpreter.to_vector(*read[0], args.span));
  const int64_t length = read.given(1) ? TRY(read.integer(1)) : static_cast<int64_t>(pool.size());
  if (length < 0) return value_error(args.span, "r must be non-negative");
  if (length > 1000) return value_error(args.span, "r is too large");
  Positions positions(kind, pool.size(), static_cast<size_t>(length));
  return make_steps([pool = std::move(pool), positions = std::move(positions)](Interpreter&) mutable -> Result<Item> {
    if (positions.ended()) return Item();
    Items row;
    for (size_t position : positions.chosen()) row.push_back(pool[position]);
    positions.advance();
    return Item(make_tuple(std::move(row)));
  });
}

// One iterable after another; `outer` gives them.
Value chain_of(Source outer, Span span) {
  return make_steps(
      [outer = std::move(outer), inner = Source(), span](Interpreter& interpreter) mutable -> Result<Item> {
        for (;;) {
          TRY(interpreter.charge(span));
          if (!inner) {
            const Item iterable = TRY(outer->next(interpreter));
            if (!iterable) return Item();
            inner = TRY(interpreter.iterate(*iterable, span));
          }
          if (Item item = TRY(inner->next(interpreter))) return item;
          inner.reset();
        }
      });
}

Result<Value> chain(Interpreter&, CallArgs& args) { return chain_of(iterate_over(args.positional), args.span); }

Result<Value> chain_from_iterable(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"from_iterable", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return chain_of(TRY(interpreter.iterate(*read[0], args.span)), args.span);
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
  std::vector<Source> sources = TRY(sources_of(interpreter, args.positional, args.span));
  const Value* given = args.keyword("fillvalue");
  return make_steps(
      [sources = std::move(sources), fill = given ? *given : Value()](Interpreter& inner) mutable -> Result<Item> {
        Items row;
        bool any = false;
        for (Source& source : sources) {
          Item item = source ? TRY(source->next(inner)) : Item();
          if (!item) source.reset();
          any = any || item;
          row.push_back(item ? *std::move(item) : fill);
        }
        return any ? Item(make_tuple(std::move(row))) : Item();
      });
}

Result<Value> count(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"count", {"start", "step"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return make_steps([next = read[0] ? *read[0] : Value(0), step = read[1] ? *read[1] : Value(1),
                     span = args.span](Interpreter& interpreter) mutable -> Result<Item> {
    Value current = next;
    next = TRY(interpreter.binary(BinaryOp::add, next, step, span));
    return Item(std::move(current));
  });
}

Result<Value> cycle(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"cycle", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Source iterated = TRY(interpreter.iterate(*read[0], args.span));
  return make_steps([source = std::move(iterated), seen = Items(), position = size_t{0},
                     span = args.span](Interpreter& inner) mutable -> Result<Item> {
    if (source) {
      if (Item item = TRY(source->next(inner))) {
        if (static_cast<int64_t>(seen.size()) >= inner.limits().container_items) return too_large(inner, span);
        seen.push_back(*item);
        return item;
      }
      source.reset();
    }
    if (seen.empty()) return Item();
    return Item(seen[position++ % seen.size()]);
  });
}

Result<Value> repeat(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"repeat", {"object", "times"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const int64_t times = read[1] ? std::max<int64_t>(0, TRY(read.integer(1))) : -1;
  return make_steps([object = *read[0], left = times](Interpreter&) mutable -> Result<Item> {
    if (left == 0) return Item();
    if (left > 0) --left;
    return Item(object);
  });
}

Result<Value> islice(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"islice", {"iterable", "start", "stop", "step"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const bool only_stop = args.positional.size() == 2;
  const size_t stop_at = only_stop ? 1 : 2;
  const int64_t start = only_stop || !read.given(1) ? 0 : TRY(read.integer(1));
  const int64_t stop = read.given(stop_at) ? TRY(read.integer(stop_at)) : std::numeric_limits<int64_t>::max();
  const int64_t step = read.given(3) ? TRY(read.integer(3)) : 1;
  if (start < 0 || stop < 0) return value_error(args.span, "indices for islice() must be None or an integer >= 0");
  if (step < 1) return value_error(args.span, "step for islice() must be a positive integer or None");
  Source iterated = TRY(interpreter.iterate(*read[0], args.span));
  return make_steps([source = std::move(iterated), wanted = start, stop, step, position = int64_t{0},
                     span = args.span](Interpreter& inner) mutable -> Result<Item> {
    while (source && position < std::min(wanted, stop)) {
      TRY(inner.charge(span));
      if (!TRY(source->next(inner))) source.reset();
      ++position;
    }
    if (!source || wanted >= stop) return Item();
    ++position;
    wanted = step > stop - wanted ? stop : wanted + step;
    return source->next(inner);
  });
}

Result<Value> accumulate(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"accumulate", {"iterable", "func", "initial"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Source iterated = TRY(interpreter.iterate(*read[0], args.span));
  return make_steps([source = std::move(iterated), function = read[1] ? *read[1] : Value(), total = Item(),
                     initial = read.given(2) ? Item(*read[2]) : Item(),
                     span = args.span](Interpreter& inner) mutable -> Result<Item> {
    if (initial) return total = std::exchange(initial, std::nullopt);
    Item item = TRY(source->next(inner));
    if (!item) return Item();
    if (!total)
      total = std::move(item);
    else if (function.is_none())
      total = TRY(inner.binary(BinaryOp::add, *total, *item, span));
    else
      total = TRY(inner.call(function, CallArgs{{*total, *item}, {}, span, {}}));
    return total;
  });
}

Result<Value> starmap(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"starmap", {"function", "iterable"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Source iterated = TRY(interpreter.iterate(*read[1], args.span));
  return make_steps([function = *read[0], source = std::move(iterated),
                     span = args.span](Interpreter& inner) mutable -> Result<Item> {
    const Item item = TRY(source->next(inner));
    if (!item) return Item();
    CallArgs one{TRY(inner.to_vector(*item, span)), {}, span, {}};
    return Item(TRY(inner.call(function, std::move(one))));
  });
}

Result<Value> takewhile(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"takewhile", {"predicate", "iterable"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Source iterated = TRY(interpreter.iterate(*read[1], args.span));
  return make_steps([predicate = *read[0], source = std::move(iterated),
                     span = args.span](Interpreter& inner) mutable -> Result<Item> {
    Item item = source ? TRY(source->next(inner)) : Item();
    if (item && TRY(holds(inner, predicate, *item, span))) return item;
    source.reset();
    return Item();
  });
}

// The items for which `wanted(predicate holds)` says yes: dropwhile, filterfalse.
template <bool only_first>
Result<Value> without(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{only_first ? "dropwhile" : "filterfalse", {"predicate", "iterable"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Source iterated = TRY(interpreter.iterate(*read[1], args.span));
  return make_steps([predicate = *read[0], source = std::move(iterated), passed = false,
                     span = args.span](Interpreter& inner) mutable -> Result<Item> {
    for (;;) {
      Item item = TRY(source->next(inner));
      if (!item || passed) return item;
      TRY(inner.charge(span));
      if (TRY(holds(inner, predicate, *item, span))) continue;
      passed = only_first;
      return item;
    }
  });
}

Result<Value> compress(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"compress", {"data", "selectors"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Source iterated = TRY(interpreter.iterate(*read[0], args.span));
  Source chosen = TRY(interpreter.iterate(*read[1], args.span));
  return make_steps([data = std::move(iterated), selectors = std::move(chosen),
                     span = args.span](Interpreter& inner) mutable -> Result<Item> {
    for (;;) {
      TRY(inner.charge(span));
      Item item = TRY(data->next(inner));
      const Item selector = item ? TRY(selectors->next(inner)) : Item();
      if (!selector) return Item();
      if (TRY(inner.truth(*selector, span))) return item;
    }
  });
}

Result<Value> pairwise(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"pairwise", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  Source iterated = TRY(interpreter.iterate(*read[0], args.span));
  return make_steps([source = std::move(iterated), last = Item()](Interpreter& inner) mutable -> Result<Item> {
    if (!last) last = TRY(source->next(inner));
    if (!last) return Item();
    Item item = TRY(source->next(inner));
    if (!item) return Item();
    Value pair = make_tuple({*last, *item});
    last = std::move(item);
    return Item(std::move(pair));
  });
}

// What the iterators of one tee() share: items that some have seen and others have not.
struct Shared {
  Source source;
  std::deque<Value> items;
  std::vector<size_t> positions;  // one an iterator, counted from the first item ever
  size_t dropped = 0;
};

Result<Item> next_shared(Interpreter& interpreter, Shared& shared, size_t reader) {
  size_t& position = shared.positions[reader];
  if (position - shared.dropped == shared.items.size()) {
    Item item = TRY(shared.source->next(interpreter));
    if (!item) return Item();
    shared.items.push_back(*std::move(item));
  }
  Value item = shared.items[position++ - shared.dropped];
  const size_t slowest = *std::min_element(shared.positions.begin(), shared.positions.end());
  for (; shared.dropped < slowest; ++shared.dropped) shared.items.pop_front();
  return Item(std::move(item));
}

Result<Value> tee(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"tee", {"iterable", "n"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const int64_t readers = TRY(read.integer(1, 2));
  if (readers < 0 || readers > 1000) return value_error(args.span, "n must be from 0 to 1000");
  auto shared = std::make_shared<Shared>();
  shared->source = TRY(interpreter.iterate(*read[0], args.span));
  shared->positions.resize(static_cast<size_t>(readers));
  Items made;
  for (size_t i = 0; i < shared->positions.size(); ++i)
    made.push_back(make_steps([shared, i](Interpreter& inner) { return next_shared(inner, *shared, i); }));
  return make_tuple(std::move(made));
}

// Runs of items with equal keys; a group ends when the next one is asked for.
struct Groups {
  Source source;
  Value key_function;
  Span span;
  Item item, key;  // the next item, not yet given, and its key
  size_t group = 0;

  Status read(Interpreter& interpreter) {
    item = TRY(source->next(interpreter));
    if (!item) return {};
    TRY(interpreter.charge(span));
    key = key_function.is_none() ? *item : TRY(interpreter.call(key_function, CallArgs{{*item}, {}, span, {}}));
    return {};
  }
};

Value items_of_group(std::shared_ptr<Groups> groups, Value key) {
  return make_steps([groups, key, group = groups->group, begun = false](Interpreter& inner) mutable -> Result<Item> {
    if (groups->group != group) return Item();
    if (begun) TRY(groups->read(inner));
    begun = true;
    if (!groups->item || !TRY(inner.equal(*groups->key, key, groups->span))) {
      ++groups->group;
      return Item();
    }
    return groups->item;
  });
}

Result<Value> groupby(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"groupby", {"iterable", "key"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto groups = std::make_shared<Groups>();
  groups->source = TRY(interpreter.iterate(*read[0], args.span));
  if (read[1]) groups->key_function = *read[1];
  groups->span = args.span;
  return make_steps([groups, last = Item()](Interpreter& inner) mutable -> Result<Item> {
    if (!last) TRY(groups->read(inner));
    while (last && groups->item && TRY(inner.equal(*groups->key, *last, groups->span))) TRY(groups->read(inner));
    if (!groups->item) return Item();
    ++groups->group;
    last = groups->key;
    return Item(make_tuple({*last, items_of_group(groups, *last)}));
  });
}

Result<Value> batched(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"batched", {"iterable", "n"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const int64_t size = TRY(read.integer(1));
  if (size < 1) return value_error(args.span, "n must be at least one");
  Source iterated = TRY(interpreter.iterate(*read[0], args.span));
  return make_steps([source = std::move(iterated), size](Interpreter& inner) mutable -> Result<Item> {
    Items batch;
    while (static_cast<int64_t>(batch.size()) < size) {
      Item item = TRY(source->next(inner));
      if (!item) break;
      batch.push_back(*std::move(item));
    }
    return batch.empty() ? Item() : Item(make_tuple(std::move(batch)));
  });
}

struct Function {
  std::string_view name;
  Result<Value> (*body)(Interpreter&, CallArgs&);
};
constexpr Function kFunctions[] = {
    {"product", product},
    {"permutations", choose<Positions::Kind::permutations>},
    {"combinations", choose<Positions::Kind::combinations>},
    {"combinations_with_replacement", choose<Positions::Kind::with_replacement>},
    {"zip_longest", zip_longest},
    {"count", count},
    {"cycle", cycle},
    {"repeat", repeat},
    {"islice", islice},
    {"accumulate", accumulate},
    {"starmap", starmap},
    {"takewhile", takewhile},
    {"dropwhile", without<true>},
    {"filterfalse", without<false>},
    {"compress", compress},
    {"pairwise", pairwise},
    {"tee", tee},
    {"groupby", groupby},
    {"batched", batched},
};

}  // namespace

void fill_itertools(Interpreter&, ModuleObject& module) {
  module.set("chain", std::make_shared<ChainFunction>());
  for (const Function& each : kFunctions) module.function(each.name, each.body);
}

}  // namespace tilepilot::stage
