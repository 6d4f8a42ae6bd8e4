#include "compiler/stage/python/containers/counter.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/interpreter.h"

namespace tilepilot::stage {

namespace {

using Entries = std::vector<HashTable::Entry>;

DictObject& counter_of(const Value& self) { return *self.get_if<DictObject>(); }

Entries live_entries(const DictObject& dict) {
  Entries entries = dict.table.entries();
  std::erase_if(entries, [](const HashTable::Entry& entry) { return !entry.live; });
  return entries;
}

Result<Value> count_of(Interpreter& interpreter, DictObject& counter, const Value& key, Span span) {
  HashTable::Entry* entry = TRY(counter.table.find(interpreter, key, span));
  return entry ? entry->value : Value(0);
}

Status add_count(Interpreter& interpreter, DictObject& counter, const Value& key, const Value& amount, Span span) {
  const Value before = TRY(count_of(interpreter, counter, key, span));
  return counter.table.set(interpreter, key, TRY(interpreter.binary(BinaryOp::add, before, amount, span)), span);
}

template <int sign>
Result<Value> update(Interpreter& interpreter, const Value& self, CallArgs& args) {
  TRY(add_counts(interpreter, counter_of(self), args, sign));
  return Value();
}

Result<std::vector<int64_t>> amounts(const Entries& entries, Span span) {
  std::vector<int64_t> result;
  for (const HashTable::Entry& entry : entries) {
    const auto amount = entry.value.as_index();
    if (!amount) return type_error(span, "a Counter needs integer counts here");
    result.push_back(*amount);
  }
  return result;
}

// Positions of the entries, the most frequent first; those of equal count keep their order.
Result<Entries> by_frequency(const DictObject& counter, Span span) {
  Entries entries = live_entries(counter);
  TRY(amounts(entries, span));
  std::stable_sort(entries.begin(), entries.end(), [](const HashTable::Entry& a, const HashTable::Entry& b) {
    return *a.value.as_index() > *b.value.as_index();
  });
  return entries;
}

Result<Value> most_common(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"most_common", {"n"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const int64_t most = read.given(0) ? TRY(read.integer(0)) : interpreter.limits().container_items;
  std::vector<Value> items;
  for (const HashTable::Entry& entry : TRY(by_frequency(counter_of(self), args.span))) {
    if (static_cast<int64_t>(items.size()) >= most) break;
    items.push_back(make_tuple({entry.key, entry.value}));
  }
  return make_list(std::move(items));
}

Result<Value> elements(Interpreter& interpreter, const Value& self, CallArgs& args) {
  const Entries entries = live_entries(counter_of(self));
  const std::vector<int64_t> counts = TRY(amounts(entries, args.span));
  std::vector<Value> items;
  for (size_t i = 0; i < entries.size(); ++i) {
    for (int64_t n = 0; n < counts[i]; ++n) {
      if (static_cast<int64_t>(items.size()) >= interpreter.limits().container_items)
        return too_large(interpreter, args.span);
      items.push_back(entries[i].key);
    }
  }
  return make_iterator(iterate_over(std::move(items)));
}

Result<Value> total(Interpreter& interpreter, const Value& self, CallArgs& args) {
  Value sum(0);
  for (const HashTable::Entry& entry : live_entries(counter_of(self)))
    sum = TRY(interpreter.binary(BinaryOp::add, sum, entry.value, args.span));
  return sum;
}

}  // namespace

Status add_counts(Interpreter& interpreter, DictObject& counter, const CallArgs& args, int sign) {
  static constexpr Signature kSignature{"Counter", {"iterable"}, 0};
  CallArgs positional{args.positional, {}, args.span, {}};
  Arguments read = TRY(Arguments::read(positional, kSignature));
  const auto add_signed = [&](const Value& key, const Value& amount) -> Status {
    const Value change = TRY(interpreter.binary(BinaryOp::mul, amount, Value(sign), args.span));
    return add_count(interpreter, counter, key, change, args.span);
  };
  auto* mapping = read.given(0) ? read[0]->get_if<DictObject>() : nullptr;
  if (mapping) {
    for (const HashTable::Entry& entry : live_entries(*mapping)) TRY(add_signed(entry.key, entry.value));
  } else if (read.given(0)) {
    for (const Value& item : TRY(interpreter.to_vector(*read[0], args.span)))
      TRY(add_count(interpreter, counter, item, Value(sign), args.span));
  }
  for (const auto& [name, value] : args.keywords) TRY(add_signed(Value(name.text()), value));
  return {};
}

const MethodTable& counter_methods() {
  static const MethodTable kMethods{{"update", update<1>},
                                    {"subtract", update<-1>},
                                    {"most_common", most_common},
                                    {"elements", elements},
                                    {"total", total}};
  return kMethods;
}

Result<std::optional<Value>> counter_binary(Interpreter& interpreter, BinaryOp op, const DictObject& left,
                                            const DictObject& right, Span span) {
  using Maybe = std::optional<Value>;
  if (op != BinaryOp::add && op != BinaryOp::sub && op != BinaryOp::bit_and && op != BinaryOp::bit_or) return Maybe();
  auto made = std::make_shared<DictObject>();
  made->flavour = &kCounter;
  DictObject first, second;
  first.table = left.table;
  second.table = right.table;
  Entries entries = live_entries(left);
  for (const HashTable::Entry& entry : live_entries(right))
    if (!TRY(first.table.find(interpreter, entry.key, span))) entries.push_back(entry);
  for (const HashTable::Entry& entry : entries) {
    const Value a = TRY(count_of(interpreter, first, entry.key, span));
    const Value b = TRY(count_of(interpreter, second, entry.key, span));
    Value count;
    if (op == BinaryOp::add || op == BinaryOp::sub) {
      count = TRY(interpreter.binary(op, a, b, span));
    } else {
      const bool less = TRY(interpreter.truth(TRY(interpreter.compare(CompareOp::lt, a, b, span)), span));
      count = less == (op == BinaryOp::bit_and) ? a : b;
    }
    const Value positive = TRY(interpreter.compare(CompareOp::gt, count, Value(0), span));
    if (TRY(interpreter.truth(positive, span))) TRY(made->table.set(interpreter, entry.key, count, span));
  }
  return Maybe(Value(std::move(made)));
}

Result<std::string> counter_repr(Interpreter& interpreter, const DictObject& counter) {
  auto sorted = by_frequency(counter, Span{});
  std::string text;
  for (const HashTable::Entry& entry : sorted.ok() ? *sorted : live_entries(counter)) {
    text += text.empty() ? "" : ", ";
    text += TRY(interpreter.repr(entry.key)) + ": " + TRY(interpreter.repr(entry.value));
  }
  return text.empty() ? std::string("Counter()") : fmt::format("Counter({{{}}})", text);
}

}  // namespace tilepilot::stage
