// set and frozenset.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

using SetRef = std::shared_ptr<SetObject>;

SetObject& set_of(const Value& self) { return *self.get_if<SetObject>(); }

class SetIterator final : public Iterator {
 public:
  SetIterator(SetRef set, Span span) : set_(std::move(set)), size_(set_->table.size()), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    if (set_->table.size() != size_) {
      return interpreter.raise("RuntimeError", "Set changed size during iteration", span_);
    }
    const auto& entries = set_->table.entries();
    while (position_ < entries.size() && !entries[position_].live) ++position_;
    if (position_ >= entries.size()) return std::optional<Value>();
    return std::optional<Value>(entries[position_++].key);
  }

 private:
  SetRef set_;
  size_t size_;
  Span span_;
  size_t position_ = 0;
};

Result<SetRef> as_set(Interpreter& interpreter, const Value& iterable, Span span) {
  if (auto set = iterable.get_shared<SetObject>()) return set;
  auto made = std::make_shared<SetObject>();
  for (Value& item : TRY(interpreter.to_vector(iterable, span))) {
    TRY(made->table.set(interpreter, std::move(item), None{}, span));
  }
  return made;
}

// The members of `from` that are (or are not) in `other`.
Status add_filtered(Interpreter& interpreter, SetObject& to, const SetObject& from, SetObject& other, bool wanted,
                    Span span) {
  for (size_t i = 0; i < from.table.entries().size(); ++i) {
    const HashTable::Entry entry = from.table.entries()[i];  // a copy: `==` written in Python may change the set
    if (!entry.live) continue;
    bool inside = TRY(other.table.find(interpreter, entry.key, span)) != nullptr;
    if (inside == wanted) TRY(to.table.set(interpreter, entry.key, None{}, span));
  }
  return {};
}

Result<SetRef> combine(Interpreter& interpreter, BinaryOp op, SetObject& left, SetObject& right, Span span) {
  auto made = std::make_shared<SetObject>();
  made->frozen = left.frozen;
  if (op == BinaryOp::bit_or) {
    made->table = left.table;
    for (size_t i = 0; i < right.table.entries().size(); ++i) {
      const HashTable::Entry entry = right.table.entries()[i];
      if (entry.live) TRY(made->table.set(interpreter, entry.key, None{}, span));
    }
    return made;
  }
  TRY(add_filtered(interpreter, *made, left, right, op == BinaryOp::bit_and, span));
  if (op == BinaryOp::bit_xor) TRY(add_filtered(interpreter, *made, right, left, false, span));
  return made;
}

template <BinaryOp op, bool in_place>
Result<Value> combine_all(Interpreter& interpreter, const Value& self, CallArgs& args) {
  auto result = std::make_shared<SetObject>();
  result->table = set_of(self).table;
  result->frozen = set_of(self).frozen;
  for (const Value& each : args.positional) {
    SetRef other = TRY(as_set(interpreter, each, args.span));
    result = TRY(combine(interpreter, op, *result, *other, args.span));
  }
  if (!in_place) return Value(std::move(result));
  set_of(self).table = result->table;
  return Value();
}

Result<bool> is_subset(Interpreter& interpreter, const SetObject& small, SetObject& large, Span span) {
  for (size_t i = 0; i < small.table.entries().size(); ++i) {
    const HashTable::Entry entry = small.table.entries()[i];
    if (entry.live && !TRY(large.table.find(interpreter, entry.key, span))) return false;
  }
  return true;
}

Result<Value> add(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"add", {"element"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  TRY(set_of(self).table.set(interpreter, *read[0], None{}, args.span));
  return Value();
}

Result<Value> discard(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"discard", {"element"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  TRY(set_of(self).table.erase(interpreter, *read[0], args.span));
  return Value();
}

Result<Value> remove(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"remove", {"element"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (TRY(set_of(self).table.erase(interpreter, *read[0], args.span))) return Value();
  return make_error(DiagnosticKind::key_error, args.span, TRY(interpreter.repr(*read[0])));
}

Result<Value> pop(Interpreter&, const Value& self, CallArgs& args) {
  HashTable& table = set_of(self).table;
  for (size_t i = 0; i < table.entries().size(); ++i) {
    if (!table.entries()[i].live) continue;
    Value item = table.entries()[i].key;
    table.erase_at(i);
    return item;
  }
  return make_error(DiagnosticKind::key_error, args.span, "pop from an empty set");
}

Result<Value> copy(Interpreter&, const Value& self, CallArgs&) {
  auto made = std::make_shared<SetObject>();
  made->table = set_of(self).table;
  made->frozen = set_of(self).frozen;
  return Value(std::move(made));
}

Result<Value> clear(Interpreter&, const Value& self, CallArgs&) {
  set_of(self).table.clear();
  return Value();
}

enum class Relation { subset, superset, disjoint };

template <Relation relation>
Result<Value> related(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"issubset", {"other"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  SetRef other = TRY(as_set(interpreter, *read[0], args.span));
  if (relation == Relation::subset) return Value(TRY(is_subset(interpreter, set_of(self), *other, args.span)));
  if (relation == Relation::superset) return Value(TRY(is_subset(interpreter, *other, set_of(self), args.span)));
  SetRef common = TRY(combine(interpreter, BinaryOp::bit_and, set_of(self), *other, args.span));
  return Value(common->table.size() == 0);
}

}  // namespace

const MethodTable& set_methods() {
  static const MethodTable kMethods{
      {"add", add},
      {"discard", discard},
      {"remove", remove},
      {"pop", pop},
      {"copy", copy},
      {"clear", clear},
      {"union", combine_all<BinaryOp::bit_or, false>},
      {"intersection", combine_all<BinaryOp::bit_and, false>},
      {"difference", combine_all<BinaryOp::sub, false>},
      {"symmetric_difference", combine_all<BinaryOp::bit_xor, false>},
      {"update", combine_all<BinaryOp::bit_or, true>},
      {"intersection_update", combine_all<BinaryOp::bit_and, true>},
      {"difference_update", combine_all<BinaryOp::sub, true>},
      {"issubset", related<Relation::subset>},
      {"issuperset", related<Relation::superset>},
      {"isdisjoint", related<Relation::disjoint>},
  };
  return kMethods;
}

Result<Value> SetObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (!set_methods().find(name))
    if (auto method = protocol_method(interpreter, Value(shared_from_this()), name)) return *std::move(method);
  return set_methods().bind(Value(shared_from_this()), name, span);
}

Result<Value> SetObject::call_method(Interpreter& interpreter, Name name, CallArgs args, Span name_span) {
  if (!set_methods().find(name)) return Object::call_method(interpreter, name, std::move(args), name_span);
  return set_methods().call(interpreter, Value(shared_from_this()), name, args);
}

Result<std::unique_ptr<Iterator>> SetObject::iterate(Interpreter&, Span span) {
  return std::unique_ptr<Iterator>(
      std::make_unique<SetIterator>(std::static_pointer_cast<SetObject>(shared_from_this()), span));
}

Result<bool> SetObject::contains(Interpreter& interpreter, const Value& item, Span span) {
  return TRY(table.find(interpreter, item, span)) != nullptr;
}

Result<std::string> SetObject::repr(Interpreter& interpreter) {
  if (table.size() == 0) return fmt::format("{}()", type_name());
  std::string text;
  for (size_t i = 0; i < table.entries().size(); ++i) {
    const HashTable::Entry entry = table.entries()[i];
    if (!entry.live) continue;
    text += (text.empty() ? "" : ", ") + TRY(interpreter.repr(entry.key));
  }
  return frozen ? fmt::format("frozenset({{{}}})", text) : fmt::format("{{{}}}", text);
}

Result<std::optional<Value>> SetObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                               bool reflected, Span span) {
  using Maybe = std::optional<Value>;
  bool known = op == BinaryOp::bit_or || op == BinaryOp::bit_and || op == BinaryOp::sub || op == BinaryOp::bit_xor;
  auto* set = other.get_if<SetObject>();
  if (!known || !set) return Maybe();
  SetRef made =
      reflected ? TRY(combine(interpreter, op, *set, *this, span)) : TRY(combine(interpreter, op, *this, *set, span));
  return Maybe(Value(std::move(made)));
}

Result<std::optional<Value>> SetObject::compare(Interpreter& interpreter, CompareOp op, const Value& other, Span span) {
  using Maybe = std::optional<Value>;
  auto* set = other.get_if<SetObject>();
  if (!set) return Maybe();
  size_t mine = table.size(), theirs = set->table.size();
  switch (op) {
    case CompareOp::eq:
    case CompareOp::ne: {
      bool same = mine == theirs && TRY(is_subset(interpreter, *this, *set, span));
      return Maybe(Value(same == (op == CompareOp::eq)));
    }
    case CompareOp::lt:
      return Maybe(Value(mine < theirs && TRY(is_subset(interpreter, *this, *set, span))));
    case CompareOp::le:
      return Maybe(Value(TRY(is_subset(interpreter, *this, *set, span))));
    case CompareOp::gt:
      return Maybe(Value(mine > theirs && TRY(is_subset(interpreter, *set, *this, span))));
    case CompareOp::ge:
      return Maybe(Value(TRY(is_subset(interpreter, *set, *this, span))));
    default:
      return Maybe();
  }
}

Result<size_t> SetObject::hash(Interpreter&, Span span) {
  if (!frozen) return type_error(span, "unhashable type: 'set'");
  size_t seed = table.size();
  for (const HashTable::Entry& entry : table.entries()) {
    if (entry.live) seed += entry.hash * 0x9E3779B97F4A7C15ull ^ (entry.hash >> 7);
  }
  return seed;
}

}  // namespace tilepilot::stage
