// Built-in functions on iterables: len, iter, next, zip, enumerate, map, filter, sorted, reversed, any, all.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/sorting.h"
#include "compiler/stage/python/evaluation/core.h"
#include "compiler/stage/python/evaluation/generator.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

using Iterators = std::vector<std::unique_ptr<Iterator>>;

Result<Iterators> iterate_all(Interpreter& interpreter, const std::vector<Value>& iterables, Span span) {
  Iterators iterators;
  for (const Value& each : iterables) iterators.push_back(TRY(interpreter.iterate(each, span)));
  return iterators;
}

// The next item of each iterator; nullopt as soon as one ends.
Result<std::optional<std::vector<Value>>> next_of_all(Interpreter& interpreter, Iterators& iterators) {
  std::vector<Value> items;
  for (auto& each : iterators) {
    std::optional<Value> item = TRY(each->next(interpreter));
    if (!item) return std::optional<std::vector<Value>>();
    items.push_back(*std::move(item));
  }
  return std::optional<std::vector<Value>>(std::move(items));
}

class ZipIterator final : public Iterator {
 public:
  ZipIterator(Iterators sources, bool strict, Span span) : sources_(std::move(sources)), strict_(strict), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    if (sources_.empty()) return std::optional<Value>();
    TRY(interpreter.check_stack(span_));
    std::vector<Value> items;
    for (size_t i = 0; i < sources_.size(); ++i) {
      std::optional<Value> item = TRY(sources_[i]->next(interpreter));
      if (item) {
        items.push_back(*std::move(item));
        continue;
      }
      if (strict_) TRY(check_all_ended(interpreter, i));
      return std::optional<Value>();
    }
    return std::optional<Value>(make_tuple(std::move(items)));
  }

 private:
  // Source `ended` has no more items: with `strict` none may have one.
  Status check_all_ended(Interpreter& interpreter, size_t ended) {
    for (size_t i = ended + 1; ended == 0 && i < sources_.size(); ++i) {
      if (!TRY(sources_[i]->next(interpreter))) continue;
      return value_error(span_, fmt::format("zip() argument {} is longer than argument 1", i + 1));
    }
    if (ended == 0) return {};
    return value_error(span_, fmt::format("zip() argument {} is shorter than argument 1", ended + 1));
  }

  Iterators sources_;
  bool strict_;
  Span span_;
};

class EnumerateIterator final : public Iterator {
 public:
  EnumerateIterator(std::unique_ptr<Iterator> source, int64_t start) : source_(std::move(source)), position_(start) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    TRY(interpreter.check_stack(Span{}));
    std::optional<Value> item = TRY(source_->next(interpreter));
    if (!item) return std::optional<Value>();
    return std::optional<Value>(make_tuple({Value(position_++), *std::move(item)}));
  }

 private:
  std::unique_ptr<Iterator> source_;
  int64_t position_;
};

class MapIterator final : public Iterator {
 public:
  MapIterator(Value function, Iterators sources, Span span)
      : function_(std::move(function)), sources_(std::move(sources)), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    TRY(interpreter.check_stack(span_));
    auto items = TRY(next_of_all(interpreter, sources_));
    if (!items) return std::optional<Value>();
    return std::optional<Value>(TRY(interpreter.call(function_, CallArgs{*std::move(items), {}, span_, {}})));
  }

 private:
  Value function_;
  Iterators sources_;
  Span span_;
};

class FilterIterator final : public Iterator {
 public:
  FilterIterator(Value function, std::unique_ptr<Iterator> source, Span span)
      : function_(std::move(function)), source_(std::move(source)), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    TRY(interpreter.check_stack(span_));
    while (std::optional<Value> item = TRY(source_->next(interpreter))) {
      TRY(interpreter.charge(span_));
      Value verdict = *item;
      if (!function_.is_none()) verdict = TRY(interpreter.call(function_, CallArgs{{*item}, {}, span_, {}}));
      if (TRY(interpreter.truth(verdict, span_))) return item;
    }
    return std::optional<Value>();
  }

 private:
  Value function_;
  std::unique_ptr<Iterator> source_;
  Span span_;
};

// iter(function, sentinel)
class CallIterator final : public Iterator {
 public:
  CallIterator(Value function, Value sentinel, Span span)
      : function_(std::move(function)), sentinel_(std::move(sentinel)), span_(span) {}
  Result<std::optional<Value>> next(Interpreter& interpreter) override {
    Value item = TRY(interpreter.call(function_, CallArgs{{}, {}, span_, {}}));
    if (TRY(interpreter.equal(item, sentinel_, span_))) return std::optional<Value>();
    return std::optional<Value>(std::move(item));
  }

 private:
  Value function_;
  Value sentinel_;
  Span span_;
};

Result<Value> length(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"len", {"obj"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return Value(TRY(interpreter.length(*read[0], args.span)));
}

Result<Value> make_iter(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"iter", {"object", "sentinel"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (read[1]) return make_iterator(std::make_unique<CallIterator>(*read[0], *read[1], args.span));
  if (read[0]->get_if<IteratorObject>() || read[0]->get_if<GeneratorObject>()) return *read[0];
  return make_iterator(TRY(interpreter.iterate(*read[0], args.span)));
}

Result<Value> next_item(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"next", {"iterator", "default"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::optional<Value> item;
  if (auto* iterator = read[0]->get_if<IteratorObject>()) {
    item = TRY(iterator->source->next(interpreter));
  } else if (auto* generator = read[0]->get_if<GeneratorObject>()) {
    if (!read[1]) return generator->resume({}, args.span);
    item = TRY(generator->run->resume({}, args.span));
  } else {
    InstanceObject* instance = read[0]->if_object() ? (*read[0]->if_object())->as_instance() : nullptr;
    static const Name kNext("__next__");
    if (!instance || !instance->class_object()->lookup(kNext)) {
      return type_error(args.span, fmt::format("'{}' object is not an iterator", read[0]->type_name()));
    }
    if (!read[1]) return interpreter.call_method(*read[0], kNext, CallArgs{{}, {}, args.span, {}}, args.span);
    item = TRY(TRY(interpreter.iterate(*read[0], args.span))->next(interpreter));
  }
  if (item) return *std::move(item);
  if (read[1]) return *read[1];
  return interpreter.raise("StopIteration", "", args.span);
}

Result<Value> zip(Interpreter& interpreter, CallArgs& args) {
  const Value* strict = args.keyword("strict");
  bool is_strict = strict && TRY(interpreter.truth(*strict, args.span));
  Iterators sources = TRY(iterate_all(interpreter, args.positional, args.span));
  return make_iterator(std::make_unique<ZipIterator>(std::move(sources), is_strict, args.span), "zip");
}

Result<Value> enumerate(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"enumerate", {"iterable", "start"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto source = TRY(interpreter.iterate(*read[0], args.span));
  return make_iterator(std::make_unique<EnumerateIterator>(std::move(source), TRY(read.integer(1, 0))), "enumerate");
}

Result<Value> map(Interpreter& interpreter, CallArgs& args) {
  if (args.positional.size() < 2) {
    return make_error(DiagnosticKind::wrong_arguments, args.span, "map() must have at least two arguments.");
  }
  std::vector<Value> iterables(args.positional.begin() + 1, args.positional.end());
  Iterators sources = TRY(iterate_all(interpreter, iterables, args.span));
  return make_iterator(std::make_unique<MapIterator>(args.positional[0], std::move(sources), args.span), "map");
}

Result<Value> filter(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"filter", {"function", "iterable"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto source = TRY(interpreter.iterate(*read[1], args.span));
  return make_iterator(std::make_unique<FilterIterator>(*read[0], std::move(source), args.span), "filter");
}

Result<Value> sorted_list(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"sorted", {"iterable", "key", "reverse"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  bool reverse = read[2] && TRY(interpreter.truth(*read[2], args.span));
  std::vector<Value> items = TRY(interpreter.to_vector(*read[0], args.span));
  return make_list(TRY(sorted(interpreter, std::move(items), {read[1] ? *read[1] : Value(), reverse, args.span})));
}

Result<Value> reversed(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"reversed", {"sequence"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  if (auto converted = TRY(try_conversion(interpreter, *read[0], "__reversed__", args.span))) {
    return *std::move(converted);
  }
  if (auto* range = read[0]->get_if<RangeObject>()) {
    int64_t count = range->count();
    auto back = std::make_shared<RangeObject>(range->start + (count - 1) * range->step, range->start - range->step,
                                              -range->step);
    return make_iterator(TRY(back->iterate(interpreter, args.span)));
  }
  if (read[0]->get_if<IteratorObject>() || read[0]->get_if<GeneratorObject>() || read[0]->get_if<SetObject>()) {
    return type_error(args.span, fmt::format("'{}' object is not reversible", read[0]->type_name()));
  }
  std::vector<Value> items = TRY(interpreter.to_vector(*read[0], args.span));
  return make_iterator(iterate_over({items.rbegin(), items.rend()}));
}

template <bool wanted>
Result<Value> any_or_all(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{wanted ? "any" : "all", {"iterable"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto iterator = TRY(interpreter.iterate(*read[0], args.span));
  while (std::optional<Value> item = TRY(iterator->next(interpreter))) {
    TRY(interpreter.charge(args.span));
    if (TRY(interpreter.truth(*item, args.span)) == wanted) return Value(wanted);
  }
  return Value(!wanted);
}

}  // namespace

void install_iteration_functions(Interpreter& interpreter) {
  const std::pair<std::string_view, Result<Value> (*)(Interpreter&, CallArgs&)> kFunctions[] = {
      {"len", length},
      {"iter", make_iter},
      {"next", next_item},
      {"zip", zip},
      {"enumerate", enumerate},
      {"map", map},
      {"filter", filter},
      {"sorted", sorted_list},
      {"reversed", reversed},
      {"any", any_or_all<true>},
      {"all", any_or_all<false>},
  };
  for (const auto& [name, body] : kFunctions) interpreter.set_builtin(name, make_builtin(std::string(name), body));
}

}  // namespace tilepilot::stage
