// list and tuple.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/sequence.h"
#include "compiler/stage/python/containers/sorting.h"
#include "compiler/stage/python/evaluation/arithmetic.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

// Goes by position, so that a list that grows meanwhile is seen as Python sees it.
class ListIterator final : public Iterator {
 public:
  explicit ListIterator(std::shared_ptr<ListObject> list) : list_(std::move(list)) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    if (position_ >= list_->items.size()) return std::optional<Value>();
    return std::optional<Value>(list_->items[position_++]);
  }

 private:
  std::shared_ptr<ListObject> list_;
  size_t position_ = 0;
};

class TupleIterator final : public Iterator {
 public:
  explicit TupleIterator(std::shared_ptr<TupleObject> tuple) : tuple_(std::move(tuple)) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    if (position_ >= tuple_->items.size()) return std::optional<Value>();
    return std::optional<Value>(tuple_->items[position_++]);
  }

 private:
  std::shared_ptr<TupleObject> tuple_;
  size_t position_ = 0;
};

std::vector<Value>& items_of(const Value& self) { return self.get_if<ListObject>()->items; }

Status check_size(Interpreter& interpreter, size_t size, Span span) {
  if (static_cast<int64_t>(size) > interpreter.limits().container_items) return too_large(interpreter, span);
  return {};
}

Result<std::vector<Value>> concatenated(Interpreter& interpreter, const std::vector<Value>& left,
                                        const std::vector<Value>& right, Span span) {
  TRY(check_size(interpreter, left.size() + right.size(), span));
  std::vector<Value> items = left;
  items.insert(items.end(), right.begin(), right.end());
  return items;
}

Result<Value> append(Interpreter& interpreter, const Value& self, CallArgs& args) {
  if (args.positional.size() != 1 || !args.keywords.empty()) {
    return make_error(DiagnosticKind::wrong_arguments, args.span,
                      fmt::format("list.append() takes exactly one argument ({} given)", args.positional.size()));
  }
  TRY(check_size(interpreter, items_of(self).size() + 1, args.span));
  items_of(self).push_back(std::move(args.positional[0]));
  return Value();
}

Result<Value> extend(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"extend", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Value> more = TRY(interpreter.to_vector(*read[0], args.span));
  TRY(check_size(interpreter, items_of(self).size() + more.size(), args.span));
  items_of(self).insert(items_of(self).end(), more.begin(), more.end());
  return Value();
}

Result<Value> insert(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"insert", {"index", "object"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Value>& items = items_of(self);
  TRY(check_size(interpreter, items.size() + 1, args.span));
  auto size = static_cast<int64_t>(items.size());
  int64_t at = TRY(read.integer(0));
  at = std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  items.insert(items.begin() + at, *read[1]);
  return Value();
}

Result<Value> pop(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"pop", {"index"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Value>& items = items_of(self);
  if (items.empty()) return make_error(DiagnosticKind::index_error, args.span, "pop from empty list");
  int64_t at = TRY(resolve_index(read[0] ? *read[0] : Value(-1), static_cast<int64_t>(items.size()), "pop", args.span));
  Value value = std::move(items[static_cast<size_t>(at)]);
  items.erase(items.begin() + at);
  return value;
}

Result<std::optional<size_t>> find_item(Interpreter& interpreter, const std::vector<Value>& items, const Value& wanted,
                                        Span span) {
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];  // a copy: `==` written in Python may change the list
    if (TRY(interpreter.equal(item, wanted, span))) return std::optional<size_t>(i);
  }
  return std::optional<size_t>();
}

Result<Value> remove(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"remove", {"value"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto found = TRY(find_item(interpreter, items_of(self), *read[0], args.span));
  if (!found) return value_error(args.span, "list.remove(x): x not in list");
  if (*found < items_of(self).size()) {
    items_of(self).erase(items_of(self).begin() + static_cast<std::ptrdiff_t>(*found));
  }
  return Value();
}

Result<Value> index(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"index", {"value", "start", "stop"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const std::vector<Value>& items = *sequence_items(self);
  auto size = static_cast<int64_t>(items.size());
  int64_t start = TRY(read.integer(1, 0)), stop = TRY(read.integer(2, size));
  start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
  stop = std::clamp<int64_t>(stop < 0 ? stop + size : stop, 0, size);
  for (int64_t i = start; i < stop && i < static_cast<int64_t>(items.size()); ++i) {
    Value item = items[static_cast<size_t>(i)];
    if (TRY(interpreter.equal(item, *read[0], args.span))) return Value(i);
  }
  return value_error(args.span, fmt::format("{} is not in {}", TRY(interpreter.repr(*read[0])), self.type_name()));
}

Result<Value> count(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"count", {"value"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  int64_t number = 0;
  const std::vector<Value>& items = *sequence_items(self);
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (TRY(interpreter.equal(item, *read[0], args.span))) ++number;
  }
  return Value(number);
}

Result<Value> reverse(Interpreter&, const Value& self, CallArgs&) {
  std::reverse(items_of(self).begin(), items_of(self).end());
  return Value();
}

Result<Value> sort(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"sort", {"key", "reverse"}, 0};
  if (!args.positional.empty()) {
    return make_error(DiagnosticKind::wrong_arguments, args.span, "sort() takes no positional arguments");
  }
  Arguments read = TRY(Arguments::read(args, kSignature));
  bool descending = read[1] && TRY(interpreter.truth(*read[1], args.span));
  items_of(self) = TRY(sorted(interpreter, items_of(self), {read[0] ? *read[0] : Value(), descending, args.span}));
  return Value();
}

Result<Value> clear(Interpreter&, const Value& self, CallArgs&) {
  items_of(self).clear();
  return Value();
}

Result<Value> copy(Interpreter&, const Value& self, CallArgs&) { return make_list(items_of(self)); }

}  // namespace

const MethodTable& list_methods() {
  static const MethodTable kMethods{
      {"append", append},   {"extend", extend}, {"insert", insert}, {"pop", pop},
      {"remove", remove},   {"index", index},   {"count", count},   {"clear", clear},
      {"reverse", reverse}, {"sort", sort},     {"copy", copy},
  };
  return kMethods;
}

const MethodTable& tuple_methods() {
  static const MethodTable kMethods{{"index", index}, {"count", count}};
  return kMethods;
}

const std::vector<Value>* sequence_items(const Value& value) {
  if (auto* list = held_value(value).get_if<ListObject>()) return &list->items;
  if (auto* tuple = value.get_if<TupleObject>()) return &tuple->items;
  return nullptr;
}

Result<Value> ListObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (!list_methods().find(name))
    if (auto method = protocol_method(interpreter, Value(shared_from_this()), name)) return *std::move(method);
  return list_methods().bind(Value(shared_from_this()), name, span);
}

Result<Value> ListObject::call_method(Interpreter& interpreter, Name name, CallArgs args, Span name_span) {
  if (!list_methods().find(name)) return Object::call_method(interpreter, name, std::move(args), name_span);
  return list_methods().call(interpreter, Value(shared_from_this()), name, args);
}

Result<Value> ListObject::get_item(Interpreter&, const Value& index, Span span) {
  if (auto* slice = index.get_if<SliceObject>()) return make_list(TRY(slice_items(items, *slice, span)));
  return items[static_cast<size_t>(TRY(resolve_index(index, static_cast<int64_t>(items.size()), "list", span)))];
}

Status ListObject::set_item(Interpreter& interpreter, const Value& index, Value value, Span span) {
  auto size = static_cast<int64_t>(items.size());
  auto* slice = index.get_if<SliceObject>();
  if (!slice) {
    items[static_cast<size_t>(TRY(resolve_index(index, size, "list", span)))] = std::move(value);
    return {};
  }
  SliceRange range = TRY(resolve_slice(*slice, size, span));
  std::vector<Value> values = TRY(interpreter.to_vector(value, span));
  if (range.step == 1) {
    TRY(check_size(interpreter, items.size() + values.size(), span));
    auto first = items.begin() + range.start;
    auto at = items.erase(first, first + range.count);
    items.insert(at, values.begin(), values.end());
    return {};
  }
  if (static_cast<int64_t>(values.size()) != range.count) {
    return value_error(span, fmt::format("attempt to assign sequence of size {} to extended slice of size {}",
                                         values.size(), range.count));
  }
  for (int64_t i = 0; i < range.count; ++i) {
    items[static_cast<size_t>(range.start + i * range.step)] = std::move(values[static_cast<size_t>(i)]);
  }
  return {};
}

Status ListObject::delete_item(Interpreter&, const Value& index, Span span) {
  auto size = static_cast<int64_t>(items.size());
  auto* slice = index.get_if<SliceObject>();
  if (!slice) {
    items.erase(items.begin() + TRY(resolve_index(index, size, "list", span)));
    return {};
  }
  SliceRange range = TRY(resolve_slice(*slice, size, span));
  std::vector<bool> drop(items.size());
  for (int64_t i = 0; i < range.count; ++i) drop[static_cast<size_t>(range.start + i * range.step)] = true;
  std::vector<Value> kept;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!drop[i]) kept.push_back(std::move(items[i]));
  }
  items = std::move(kept);
  return {};
}

Result<std::unique_ptr<Iterator>> ListObject::iterate(Interpreter&, Span) {
  return std::unique_ptr<Iterator>(
      std::make_unique<ListIterator>(std::static_pointer_cast<ListObject>(shared_from_this())));
}

Result<std::string> ListObject::repr(Interpreter& interpreter) {
  return "[" + TRY(repr_items(interpreter, items)) + "]";
}

Result<std::optional<Value>> ListObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                bool reflected, Span span) {
  using Maybe = std::optional<Value>;
  if (op == BinaryOp::mul) {
    if (auto times = other.as_index()) return Maybe(make_list(TRY(repeat_items(interpreter, items, *times, span))));
  }
  auto* list = other.get_if<ListObject>();
  if (op != BinaryOp::add || !list || reflected) return Maybe();
  return Maybe(make_list(TRY(concatenated(interpreter, items, list->items, span))));
}

Result<std::optional<Value>> ListObject::binary_in_place(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                         Span span) {
  using Maybe = std::optional<Value>;
  if (op == BinaryOp::add) {
    std::vector<Value> more = TRY(interpreter.to_vector(other, span));
    TRY(check_size(interpreter, items.size() + more.size(), span));
    items.insert(items.end(), more.begin(), more.end());
    return Maybe(Value(shared_from_this()));
  }
  auto times = op == BinaryOp::mul ? other.as_index() : std::nullopt;
  if (!times) return Maybe();
  items = TRY(repeat_items(interpreter, items, *times, span));
  return Maybe(Value(shared_from_this()));
}

Result<std::optional<Value>> ListObject::compare(Interpreter& interpreter, CompareOp op, const Value& other,
                                                 Span span) {
  auto* list = other.get_if<ListObject>();
  if (!list) return std::optional<Value>();
  return compare_items(interpreter, op, items, list->items, span);
}

Result<size_t> ListObject::hash(Interpreter&, Span span) { return type_error(span, "unhashable type: 'list'"); }

std::string_view TupleObject::type_name() const { return fields ? std::string_view(fields->class_name) : kType.name; }

Result<Value> TupleObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (fields) {
    for (size_t i = 0; i < fields->names.size(); ++i) {
      if (fields->names[i] == name) return items[i];
    }
    if (auto class_object = fields->class_object.lock()) {
      return named_tuple_attribute(interpreter, *this, *class_object, name, span);
    }
  }
  return tuple_methods().bind(Value(shared_from_this()), name, span);
}

Result<Value> TupleObject::get_item(Interpreter&, const Value& index, Span span) {
  if (auto* slice = index.get_if<SliceObject>()) {
    auto part = std::make_shared<TupleObject>(TRY(slice_items(items, *slice, span)));
    if (fields && fields->names.empty()) part->fields = fields;
    return Value(std::move(part));
  }
  return items[static_cast<size_t>(TRY(resolve_index(index, static_cast<int64_t>(items.size()), "tuple", span)))];
}

Result<std::unique_ptr<Iterator>> TupleObject::iterate(Interpreter&, Span) {
  return std::unique_ptr<Iterator>(
      std::make_unique<TupleIterator>(std::static_pointer_cast<TupleObject>(shared_from_this())));
}

Result<std::string> TupleObject::repr(Interpreter& interpreter) {
  if (!fields) return "(" + TRY(repr_items(interpreter, items)) + (items.size() == 1 ? ",)" : ")");
  if (fields->names.empty()) return fields->class_name + "([" + TRY(repr_items(interpreter, items)) + "])";
  std::string text = fields->class_name + "(";
  for (size_t i = 0; i < items.size(); ++i) {
    text += (i ? ", " : "") + fields->names[i].str() + "=" + TRY(interpreter.repr(items[i]));
  }
  return text + ")";
}

Result<std::optional<Value>> TupleObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                 bool reflected, Span span) {
  using Maybe = std::optional<Value>;
  if (op == BinaryOp::mul) {
    if (auto times = other.as_index()) return Maybe(make_tuple(TRY(repeat_items(interpreter, items, *times, span))));
  }
  auto* tuple = other.get_if<TupleObject>();
  if (op != BinaryOp::add || !tuple || reflected) return Maybe();
  return Maybe(make_tuple(TRY(concatenated(interpreter, items, tuple->items, span))));
}

Result<std::optional<Value>> TupleObject::compare(Interpreter& interpreter, CompareOp op, const Value& other,
                                                  Span span) {
  auto* tuple = other.get_if<TupleObject>();
  if (!tuple) return std::optional<Value>();
  return compare_items(interpreter, op, items, tuple->items, span);
}

Result<size_t> TupleObject::hash(Interpreter& interpreter, Span span) {
  size_t seed = 0x345678;
  for (const Value& item : items) seed = (seed ^ TRY(interpreter.hash(item, span))) * 0x100000001B3ull + 0x9E3779B9;
  return seed;
}

}  // namespace tilepilot::stage
