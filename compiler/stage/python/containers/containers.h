// Containers beside list and tuple: dict and its relatives, sets, ranges, and iterators as values.
#pragma once

#include "compiler/stage/python/containers/hash_table.h"
#include "compiler/stage/python/objects/objects.h"

namespace tilepilot::stage {

inline constexpr Type kOrderedDict{"OrderedDict"}, kDefaultDict{"defaultdict"}, kCounter{"Counter"};
inline constexpr Type kFrozenSet{"frozenset"};

// dict, and by `flavour` also OrderedDict, defaultdict and Counter.
struct DictObject final : TypedObject<DictObject> {
  static constexpr Type kType{"dict"};
  bool is_callable() const override { return false; }
  std::string_view type_name() const override { return flavour->name; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> call_method(Interpreter&, Name name, CallArgs args, Span name_span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Status set_item(Interpreter&, const Value& index, Value value, Span span) override;
  Status delete_item(Interpreter&, const Value& index, Span span) override;
  Result<int64_t> length(Interpreter&, Span) override { return static_cast<int64_t>(table.size()); }
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> contains(Interpreter&, const Value& item, Span span) override;
  Result<bool> truth(Interpreter&, Span) override { return table.size() > 0; }
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp, const Value&, bool, Span) override;
  Result<std::optional<Value>> binary_in_place(Interpreter&, BinaryOp, const Value&, Span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp, const Value&, Span) override;
  Result<size_t> hash(Interpreter&, Span span) override;
  void release() override { table.clear(); }

  // For hosts: the value of a string key, or null.
  Result<const Value*> find(Interpreter& interpreter, const Value& key, Span span);

  HashTable table;
  const Type* flavour = &kType;
  Value default_factory;  // of a defaultdict; else None
};

// set or frozenset.
struct SetObject final : TypedObject<SetObject> {
  static constexpr Type kType{"set"};
  bool is_callable() const override { return false; }
  std::string_view type_name() const override { return frozen ? "frozenset" : "set"; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> call_method(Interpreter&, Name name, CallArgs args, Span name_span) override;
  Result<int64_t> length(Interpreter&, Span) override { return static_cast<int64_t>(table.size()); }
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> contains(Interpreter&, const Value& item, Span span) override;
  Result<bool> truth(Interpreter&, Span) override { return table.size() > 0; }
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp, const Value&, bool, Span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp, const Value&, Span) override;
  Result<size_t> hash(Interpreter&, Span span) override;
  void release() override { table.clear(); }

  HashTable table;
  bool frozen = false;
};

// keys(), values() or items() of a dict: a live view.
struct DictView final : TypedObject<DictView> {
  static constexpr Type kType{"dict_view"};
  bool is_callable() const override { return false; }
  enum class Kind : uint8_t { keys, values, items };
  DictView(std::shared_ptr<DictObject> dict_, Kind kind_) : dict(std::move(dict_)), kind(kind_) {}
  std::string_view type_name() const override;
  Result<int64_t> length(Interpreter&, Span) override { return static_cast<int64_t>(dict->table.size()); }
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> contains(Interpreter&, const Value& item, Span span) override;
  Result<bool> truth(Interpreter&, Span) override { return dict->table.size() > 0; }
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> binary(Interpreter&, BinaryOp, const Value&, bool, Span) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp, const Value&, Span) override;
  std::shared_ptr<DictObject> dict;
  Kind kind;
};

struct RangeObject final : TypedObject<RangeObject> {
  static constexpr Type kType{"range"};
  bool is_callable() const override { return false; }
  RangeObject(int64_t start_, int64_t stop_, int64_t step_) : start(start_), stop(stop_), step(step_) {}
  int64_t count() const;
  Value at(int64_t position) const { return start + position * step; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<Value> get_item(Interpreter&, const Value& index, Span span) override;
  Result<int64_t> length(Interpreter&, Span) override { return count(); }
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  Result<bool> contains(Interpreter&, const Value& item, Span span) override;
  Result<bool> truth(Interpreter&, Span) override { return count() > 0; }
  Result<std::string> repr(Interpreter&) override;
  Result<std::optional<Value>> compare(Interpreter&, CompareOp, const Value&, Span) override;
  Result<size_t> hash(Interpreter&, Span span) override;
  const int64_t start, stop, step;  // step != 0
};

// An iterator as a value: iter(x), zip(...), a generator. Iterating over it goes on where it stands.
struct IteratorObject final : TypedObject<IteratorObject> {
  static constexpr Type kType{"iterator"};
  bool is_callable() const override { return false; }
  explicit IteratorObject(std::unique_ptr<Iterator> source_, std::string_view shown_as_ = "iterator")
      : source(std::move(source_)), shown_as(shown_as_) {}
  std::string_view type_name() const override { return shown_as; }
  Result<Value> get_attribute(Interpreter&, Name name, Span span) override;
  Result<std::unique_ptr<Iterator>> iterate(Interpreter&, Span span) override;
  void release() override { source.reset(); }
  std::unique_ptr<Iterator> source;
  std::string_view shown_as;
};

// Items computed already, as an iterator.
std::unique_ptr<Iterator> iterate_over(std::vector<Value> items);

Value make_dict();
Result<Value> dict_from_keys(Interpreter& interpreter, CallArgs& args);  // dict.fromkeys
// Adds the entries of a dict, or of an iterable of pairs, as dict.update does.
Status fill_dict(Interpreter& interpreter, DictObject& dict, const Value& source, Span span);
Value make_iterator(std::unique_ptr<Iterator> source, std::string_view shown_as = "iterator");

}  // namespace tilepilot::stage
