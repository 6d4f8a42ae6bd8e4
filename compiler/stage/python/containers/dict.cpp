// dict, its views, OrderedDict, defaultdict, Counter.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/counter.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/derived_values.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

Value shown(const HashTable::Entry& entry, DictView::Kind kind) {
  if (kind == DictView::Kind::keys) return entry.key;
  if (kind == DictView::Kind::values) return entry.value;
  return make_tuple({entry.key, entry.value});
}

class DictIterator final : public Iterator {
 public:
  DictIterator(std::shared_ptr<DictObject> dict, DictView::Kind kind, Span span)
      : dict_(std::move(dict)), kind_(kind), size_(dict_->table.size()), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    if (dict_->table.size() != size_) {
      return interpreter.raise("RuntimeError", "dictionary changed size during iteration", span_);
    }
    const auto& entries = dict_->table.entries();
    while (position_ < entries.size() && !entries[position_].live) ++position_;
    if (position_ >= entries.size()) return std::optional<Value>();
    return std::optional<Value>(shown(entries[position_++], kind_));
  }

 private:
  std::shared_ptr<DictObject> dict_;
  DictView::Kind kind_;
  size_t size_;
  Span span_;
  size_t position_ = 0;
};

DictObject& dict_of(const Value& self) { return *self.get_if<DictObject>(); }

Error missing_key(Interpreter& interpreter, const Value& key, Span span) {
  auto text = interpreter.repr(key);
  if (!text.ok()) return std::move(text).take_error();
  Error error = make_error(DiagnosticKind::key_error, span, fmt::format("key {} is not in the dictionary", *text));
  error->thrown = make_exception(interpreter, "KeyError", {key});
  return error;
}

Result<Value> get(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"get", {"key", "default"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  HashTable::Entry* entry = TRY(dict_of(self).table.find(interpreter, *read[0], args.span));
  if (entry) return entry->value;
  return read[1] ? *read[1] : Value();
}

Result<Value> setdefault(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"setdefault", {"key", "default"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  HashTable::Entry* entry = TRY(dict_of(self).table.find(interpreter, *read[0], args.span));
  if (entry) return entry->value;
  Value value = read[1] ? *read[1] : Value();
  TRY(dict_of(self).table.set(interpreter, *read[0], value, args.span));
  return value;
}

Result<Value> pop(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"pop", {"key", "default"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto removed = TRY(dict_of(self).table.erase(interpreter, *read[0], args.span));
  if (removed) return std::move(removed->value);
  if (read[1]) return *read[1];
  return missing_key(interpreter, *read[0], args.span);
}

Result<Value> popitem(Interpreter&, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"popitem", {"last"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  HashTable& table = dict_of(self).table;
  if (table.size() == 0) return make_error(DiagnosticKind::key_error, args.span, "popitem(): dictionary is empty");
  bool last = !read[0] || !read[0]->if_bool() || *read[0]->if_bool();
  const auto& entries = table.entries();
  size_t at = last ? entries.size() - 1 : 0;
  while (!entries[at].live) at = last ? at - 1 : at + 1;
  Value item = shown(entries[at], DictView::Kind::items);
  table.erase_at(at);
  return item;
}

Result<Value> update(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"update", {"other"}, 0};
  CallArgs positional{args.positional, {}, args.span, {}};
  Arguments read = TRY(Arguments::read(positional, kSignature));
  if (read[0]) TRY(fill_dict(interpreter, dict_of(self), *read[0], args.span));
  for (auto& [name, value] : args.keywords) {
    TRY(dict_of(self).table.set(interpreter, Value(name.text()), std::move(value), args.span));
  }
  return Value();
}

Result<Value> move_to_front(Interpreter& interpreter, const Value& self, const Value& key, Span span) {
  HashTable& table = dict_of(self).table;
  auto removed = TRY(table.erase(interpreter, key, span));
  if (!removed) return missing_key(interpreter, key, span);
  const std::vector<HashTable::Entry> others = table.entries();
  table.clear();
  TRY(table.set(interpreter, std::move(removed->key), std::move(removed->value), span));
  for (const HashTable::Entry& entry : others)
    if (entry.live) TRY(table.set(interpreter, entry.key, entry.value, span));
  return Value();
}

// OrderedDict([(key, value), ...]), as Python 3.11 shows it.
Result<std::string> ordered_repr(Interpreter& interpreter, const HashTable& table) {
  std::string text;
  for (size_t i = 0; i < table.entries().size(); ++i) {
    const HashTable::Entry entry = table.entries()[i];
    if (!entry.live) continue;
    text += text.empty() ? "" : ", ";
    text += fmt::format("({}, {})", TRY(interpreter.repr(entry.key)), TRY(interpreter.repr(entry.value)));
  }
  return text.empty() ? std::string("OrderedDict()") : fmt::format("OrderedDict([{}])", text);
}

Result<Value> move_to_end(Interpreter& interpreter, const Value& self, CallArgs& args) {
  static constexpr Signature kSignature{"move_to_end", {"key", "last"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (read[1] && !TRY(interpreter.truth(*read[1], args.span)))
    return move_to_front(interpreter, self, *read[0], args.span);
  auto removed = TRY(dict_of(self).table.erase(interpreter, *read[0], args.span));
  if (!removed) return missing_key(interpreter, *read[0], args.span);
  TRY(dict_of(self).table.set(interpreter, std::move(removed->key), std::move(removed->value), args.span));
  return Value();
}

template <DictView::Kind kind>
Result<Value> view(Interpreter&, const Value& self, CallArgs&) {
  return Value(std::make_shared<DictView>(self.get_shared<DictObject>(), kind));
}

Result<Value> copy(Interpreter&, const Value& self, CallArgs&) {
  auto made = std::make_shared<DictObject>();
  made->table = dict_of(self).table;
  made->flavour = dict_of(self).flavour;
  made->default_factory = dict_of(self).default_factory;
  return Value(std::move(made));
}

Result<Value> clear(Interpreter&, const Value& self, CallArgs&) {
  dict_of(self).table.clear();
  return Value();
}

}  // namespace

const MethodTable& dict_methods() {
  static const MethodTable kMethods{
      {"get", get},
      {"setdefault", setdefault},
      {"pop", pop},
      {"popitem", popitem},
      {"update", update},
      {"keys", view<DictView::Kind::keys>},
      {"values", view<DictView::Kind::values>},
      {"items", view<DictView::Kind::items>},
      {"copy", copy},
      {"clear", clear},
      {"move_to_end", move_to_end},
  };
  return kMethods;
}

Result<Value> dict_from_keys(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"fromkeys", {"iterable", "value"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto made = std::make_shared<DictObject>();
  for (Value& key : TRY(interpreter.to_vector(*read[0], args.span))) {
    TRY(made->table.set(interpreter, std::move(key), read[1] ? *read[1] : Value(), args.span));
  }
  return Value(std::move(made));
}

Value make_dict() { return std::make_shared<DictObject>(); }

Status fill_dict(Interpreter& interpreter, DictObject& dict, const Value& source, Span span) {
  if (auto* other = held_value(source).get_if<DictObject>()) {
    std::vector<HashTable::Entry> entries = other->table.entries();
    for (HashTable::Entry& entry : entries) {
      if (entry.live) TRY(dict.table.set(interpreter, std::move(entry.key), std::move(entry.value), span));
    }
    return {};
  }
  if (source.if_object() && (*source.if_object())->as_instance()) {
    if (auto keys = TRY(try_conversion(interpreter, source, "keys", span))) {
      for (const Value& key : TRY(interpreter.to_vector(*keys, span)))
        TRY(dict.table.set(interpreter, key, TRY(interpreter.get_item(source, key, span)), span));
      return {};
    }
  }
  size_t position = 0;
  for (const Value& item : TRY(interpreter.to_vector(source, span))) {
    std::vector<Value> pair = TRY(interpreter.to_vector(item, span));
    if (pair.size() != 2) {
      return value_error(span, fmt::format("dictionary update sequence element #{} has length {}; 2 is required",
                                           position, pair.size()));
    }
    TRY(dict.table.set(interpreter, std::move(pair[0]), std::move(pair[1]), span));
    ++position;
  }
  return {};
}

Result<const Value*> DictObject::find(Interpreter& interpreter, const Value& key, Span span) {
  HashTable::Entry* entry = TRY(table.find(interpreter, key, span));
  return entry ? &entry->value : nullptr;
}

Result<Value> DictObject::get_attribute(Interpreter& interpreter, Name name, Span span) {
  static const Name kDefaultFactory("default_factory");
  if (flavour == &kDefaultDict && name == kDefaultFactory) return default_factory;
  if (flavour == &kCounter && counter_methods().find(name))
    return counter_methods().bind(Value(shared_from_this()), name, span);
  if (!dict_methods().find(name))
    if (auto method = protocol_method(interpreter, Value(shared_from_this()), name)) return *std::move(method);
  return dict_methods().bind(Value(shared_from_this()), name, span);
}

Result<Value> DictObject::call_method(Interpreter& interpreter, Name name, CallArgs args, Span name_span) {
  if (flavour == &kCounter && counter_methods().find(name))
    return counter_methods().call(interpreter, Value(shared_from_this()), name, args);
  if (!dict_methods().find(name)) return Object::call_method(interpreter, name, std::move(args), name_span);
  return dict_methods().call(interpreter, Value(shared_from_this()), name, args);
}

Result<Value> DictObject::get_item(Interpreter& interpreter, const Value& index, Span span) {
  HashTable::Entry* entry = TRY(table.find(interpreter, index, span));
  if (entry) return entry->value;
  if (flavour == &kCounter) return Value(int64_t{0});
  if (default_factory.is_none()) return missing_key(interpreter, index, span);
  Value made = TRY(interpreter.call(default_factory, CallArgs{{}, {}, span, {}}));
  TRY(table.set(interpreter, index, made, span));
  return made;
}

Status DictObject::set_item(Interpreter& interpreter, const Value& index, Value value, Span span) {
  return table.set(interpreter, index, std::move(value), span);
}

Status DictObject::delete_item(Interpreter& interpreter, const Value& index, Span span) {
  auto removed = TRY(table.erase(interpreter, index, span));
  if (!removed) return missing_key(interpreter, index, span);
  return {};
}

Result<std::unique_ptr<Iterator>> DictObject::iterate(Interpreter&, Span span) {
  auto self = std::static_pointer_cast<DictObject>(shared_from_this());
  return std::unique_ptr<Iterator>(std::make_unique<DictIterator>(std::move(self), DictView::Kind::keys, span));
}

Result<bool> DictObject::contains(Interpreter& interpreter, const Value& item, Span span) {
  return TRY(table.find(interpreter, item, span)) != nullptr;
}

Result<std::string> DictObject::repr(Interpreter& interpreter) {
  if (flavour == &kCounter) return counter_repr(interpreter, *this);
  if (flavour == &kOrderedDict) return ordered_repr(interpreter, table);
  std::string text = "{";
  for (size_t i = 0; i < table.entries().size(); ++i) {
    const HashTable::Entry entry = table.entries()[i];  // a copy: `__repr__` may change the table
    if (!entry.live) continue;
    if (text.size() > 1) text += ", ";
    text += TRY(interpreter.repr(entry.key));
    text += ": ";
    text += TRY(interpreter.repr(entry.value));
  }
  text += "}";
  if (flavour == &kType) return text;
  if (flavour == &kDefaultDict) return fmt::format("defaultdict({}, {})", TRY(interpreter.repr(default_factory)), text);
  return table.size() == 0 ? fmt::format("{}()", flavour->name) : fmt::format("{}({})", flavour->name, text);
}

Result<std::optional<Value>> DictObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                bool reflected, Span span) {
  using Maybe = std::optional<Value>;
  auto* counted = other.get_if<DictObject>();
  if (flavour == &kCounter && counted && counted->flavour == &kCounter && !reflected)
    return counter_binary(interpreter, op, *this, *counted, span);
  if (op != BinaryOp::bit_or || reflected || !other.get_if<DictObject>()) return Maybe();
  auto made = std::make_shared<DictObject>();
  made->table = table;
  made->flavour = flavour;
  TRY(fill_dict(interpreter, *made, other, span));
  return Maybe(Value(std::move(made)));
}

Result<std::optional<Value>> DictObject::binary_in_place(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                         Span span) {
  using Maybe = std::optional<Value>;
  if (op != BinaryOp::bit_or) return Maybe();
  TRY(fill_dict(interpreter, *this, other, span));
  return Maybe(Value(shared_from_this()));
}

Result<std::optional<Value>> DictObject::compare(Interpreter& interpreter, CompareOp op, const Value& other,
                                                 Span span) {
  using Maybe = std::optional<Value>;
  auto* dict = other.get_if<DictObject>();
  if (!dict || (op != CompareOp::eq && op != CompareOp::ne)) return Maybe();
  bool same = dict->table.size() == table.size();
  for (size_t i = 0; same && i < table.entries().size(); ++i) {
    const HashTable::Entry entry = table.entries()[i];
    if (!entry.live) continue;
    HashTable::Entry* match = TRY(dict->table.find(interpreter, entry.key, span));
    same = match && TRY(interpreter.equal(entry.value, Value(match->value), span));
  }
  return Maybe(Value(same == (op == CompareOp::eq)));
}

Result<size_t> DictObject::hash(Interpreter&, Span span) {
  return type_error(span, fmt::format("unhashable type: '{}'", type_name()));
}

std::string_view DictView::type_name() const {
  if (kind == Kind::keys) return "dict_keys";
  return kind == Kind::values ? "dict_values" : "dict_items";
}

Result<std::unique_ptr<Iterator>> DictView::iterate(Interpreter&, Span span) {
  return std::unique_ptr<Iterator>(std::make_unique<DictIterator>(dict, kind, span));
}

Result<bool> DictView::contains(Interpreter& interpreter, const Value& item, Span span) {
  if (kind == Kind::keys) return dict->contains(interpreter, item, span);
  for (size_t i = 0; i < dict->table.entries().size(); ++i) {
    const HashTable::Entry entry = dict->table.entries()[i];
    if (entry.live && TRY(interpreter.equal(shown(entry, kind), item, span))) return true;
  }
  return false;
}

Result<std::string> DictView::repr(Interpreter& interpreter) {
  std::string text = fmt::format("{}([", type_name());
  bool first = true;
  for (size_t i = 0; i < dict->table.entries().size(); ++i) {
    const HashTable::Entry entry = dict->table.entries()[i];
    if (!entry.live) continue;
    text += (first ? "" : ", ") + TRY(interpreter.repr(shown(entry, kind)));
    first = false;
  }
  return text + "])";
}

namespace {

// A view of keys or items as a set, for `&`, `|`, `-` and comparisons.
Result<std::shared_ptr<SetObject>> as_set(Interpreter& interpreter, const DictView& view, Span span) {
  auto set = std::make_shared<SetObject>();
  for (size_t i = 0; i < view.dict->table.entries().size(); ++i) {
    const HashTable::Entry entry = view.dict->table.entries()[i];
    if (entry.live) TRY(set->table.set(interpreter, shown(entry, view.kind), None{}, span));
  }
  return set;
}

Result<Value> without_view(Interpreter& interpreter, const Value& value, Span span) {
  auto* view = value.get_if<DictView>();
  if (!view || view->kind == DictView::Kind::values) return value;
  return Value(TRY(as_set(interpreter, *view, span)));
}

}  // namespace

Result<std::optional<Value>> DictView::binary(Interpreter& interpreter, BinaryOp op, const Value& other, bool reflected,
                                              Span span) {
  if (kind == Kind::values) return std::optional<Value>();
  std::shared_ptr<SetObject> mine = TRY(as_set(interpreter, *this, span));
  return mine->binary(interpreter, op, TRY(without_view(interpreter, other, span)), reflected, span);
}

Result<std::optional<Value>> DictView::compare(Interpreter& interpreter, CompareOp op, const Value& other, Span span) {
  if (kind == Kind::values) return std::optional<Value>();
  std::shared_ptr<SetObject> mine = TRY(as_set(interpreter, *this, span));
  return mine->compare(interpreter, op, TRY(without_view(interpreter, other, span)), span);
}

}  // namespace tilepilot::stage
