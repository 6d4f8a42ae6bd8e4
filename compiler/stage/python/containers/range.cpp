// range, slice, Ellipsis, and iterators as values.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/sequence.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/python/objects/drop.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

class RangeIterator final : public Iterator {
 public:
  RangeIterator(int64_t start, int64_t step, int64_t count) : value_(start), step_(step), left_(count) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    if (left_ == 0) return std::optional<Value>();
    int64_t value = value_;
    if (--left_ > 0) value_ += step_;
    return std::optional<Value>(Value(value));
  }

 private:
  int64_t value_, step_, left_;
};

class VectorIterator final : public Iterator {
 public:
  explicit VectorIterator(std::vector<Value> items) : items_(std::move(items)) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    if (position_ >= items_.size()) return std::optional<Value>();
    return std::optional<Value>(std::move(items_[position_++]));
  }

 private:
  std::vector<Value> items_;
  size_t position_ = 0;
};

// Goes on where the iterator object stands.
class SharedIterator final : public Iterator {
 public:
  explicit SharedIterator(std::shared_ptr<IteratorObject> object) : object_(std::move(object)) {}
  ~SharedIterator() override { drop(std::move(object_)); }
  Result<std::optional<Value>> next(Interpreter& interpreter) override { return object_->source->next(interpreter); }

 private:
  std::shared_ptr<IteratorObject> object_;
};

}  // namespace

int64_t RangeObject::count() const {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                               : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  uint64_t size = step > 0 ? static_cast<uint64_t>(step) : ~static_cast<uint64_t>(step) + 1;
  return static_cast<int64_t>((distance - 1) / size + 1);
}

Result<Value> RangeObject::get_attribute(Interpreter&, Name name, Span span) {
  if (name.text() == "start") return Value(start);
  if (name.text() == "stop") return Value(stop);
  if (name.text() == "step") return Value(step);
  return no_attribute(type_name(), name, span, {"start", "stop", "step"});
}

Result<Value> RangeObject::get_item(Interpreter&, const Value& index, Span span) {
  auto* slice = index.get_if<SliceObject>();
  if (!slice) { return at(TRY(resolve_index(index, count(), "range", span))); }
  SliceRange range = TRY(resolve_slice(*slice, count(), span));
  return Value(std::make_shared<RangeObject>(
      start + range.start * step, start + (range.start + range.count * range.step) * step, step * range.step));
}

Result<std::unique_ptr<Iterator>> RangeObject::iterate(Interpreter&, Span) {
  return std::unique_ptr<Iterator>(std::make_unique<RangeIterator>(start, step, count()));
}

Result<bool> RangeObject::contains(Interpreter&, const Value& item, Span) {
  std::optional<int64_t> value = item.as_index();
  if (auto* real = item.if_float(); real && static_cast<double>(static_cast<int64_t>(*real)) == *real) {
    value = static_cast<int64_t>(*real);
  }
  if (!value || count() == 0) return false;
  int64_t last = start + (count() - 1) * step;
  bool inside = step > 0 ? *value >= start && *value <= last : *value <= start && *value >= last;
  return inside && (*value - start) % step == 0;
}

Result<std::string> RangeObject::repr(Interpreter&) {
  return step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
}

Result<std::optional<Value>> RangeObject::compare(Interpreter&, CompareOp op, const Value& other, Span) {
  auto* range = other.get_if<RangeObject>();
  if (!range || (op != CompareOp::eq && op != CompareOp::ne)) return std::optional<Value>();
  int64_t mine = count();
  bool same = mine == range->count() && (mine == 0 || start == range->start) && (mine <= 1 || step == range->step);
  return std::optional<Value>(Value(same == (op == CompareOp::eq)));
}

Result<size_t> RangeObject::hash(Interpreter& interpreter, Span span) {
  Value key = count() == 0 ? make_tuple({Value(0)})
                           : make_tuple({Value(count()), Value(start), count() == 1 ? Value() : Value(step)});
  return interpreter.hash(key, span);
}

Result<Value> SliceObject::get_attribute(Interpreter&, Name name, Span span) {
  if (name.text() == "start") return start;
  if (name.text() == "stop") return stop;
  if (name.text() == "step") return step;
  return no_attribute(type_name(), name, span, {"start", "stop", "step"});
}

Result<std::string> SliceObject::repr(Interpreter& interpreter) {
  const std::string from = TRY(interpreter.repr(start)), to = TRY(interpreter.repr(stop));
  return fmt::format("slice({}, {}, {})", from, to, TRY(interpreter.repr(step)));
}

Result<Value> IteratorObject::get_attribute(Interpreter&, Name name, Span span) {
  if (name.text() != "__next__") return no_attribute(type_name(), name, span);
  auto self = std::static_pointer_cast<IteratorObject>(shared_from_this());
  return make_builtin("__next__", [self](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    if (auto item = TRY(self->source->next(interpreter))) return *std::move(item);
    return interpreter.raise("StopIteration", "", args.span);
  });
}

Result<std::unique_ptr<Iterator>> IteratorObject::iterate(Interpreter&, Span) {
  return std::unique_ptr<Iterator>(
      std::make_unique<SharedIterator>(std::static_pointer_cast<IteratorObject>(shared_from_this())));
}

std::unique_ptr<Iterator> iterate_over(std::vector<Value> items) {
  return std::make_unique<VectorIterator>(std::move(items));
}

Value make_iterator(std::unique_ptr<Iterator> source, std::string_view shown_as) {
  return std::make_shared<IteratorObject>(std::move(source), shown_as);
}

}  // namespace tilepilot::stage
