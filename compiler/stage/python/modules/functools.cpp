// The module `functools`: partial, reduce, wraps, and caches of calls.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/named_tuple.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

// A function with some arguments given already.
struct PartialObject final : TypedObject<PartialObject> {
  static constexpr Type kType{"functools.partial"};
  Result<Value> call(Interpreter& interpreter, CallArgs args) override {
    CallArgs all{positional, {}, args.span, {}};
    all.positional.insert(all.positional.end(), args.positional.begin(), args.positional.end());
    for (const auto& [name, value] : keywords) {
      if (!args.keyword(name.text())) all.keywords.emplace_back(name, value);
    }
    all.keywords.insert(all.keywords.end(), args.keywords.begin(), args.keywords.end());
    return interpreter.call(function, std::move(all));
  }
  Result<Value> get_attribute(Interpreter& interpreter, Name name, Span span) override {
    if (name.text() == "func") return function;
    if (name.text() == "args") return make_tuple(positional);
    if (name.text() == "keywords") {
      auto dict = std::make_shared<DictObject>();
      for (const auto& [key, value] : keywords) { TRY(dict->table.set(interpreter, Value(key.text()), value, span)); }
      return Value(std::move(dict));
    }
    return no_attribute(type_name(), name, span, {"func", "args", "keywords"});
  }
  Value function;
  std::vector<Value> positional;
  std::vector<std::pair<Name, Value>> keywords;
};

Result<Value> partial(Interpreter&, CallArgs& args) {
  if (args.positional.empty()) {
    return make_error(DiagnosticKind::wrong_arguments, args.span, "partial() needs a function");
  }
  auto made = std::make_shared<PartialObject>();
  made->function = args.positional[0];
  made->positional.assign(args.positional.begin() + 1, args.positional.end());
  made->keywords = args.keywords;
  return Value(std::move(made));
}

Result<Value> reduce(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"reduce", {"function", "iterable", "initial"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Value> items = TRY(interpreter.to_vector(*read[1], args.span));
  size_t next = 0;
  if (!read[2] && items.empty()) { return type_error(args.span, "reduce() of empty iterable with no initial value"); }
  Value total = read[2] ? *read[2] : items[next++];
  while (next < items.size()) {
    total = TRY(interpreter.call(*read[0], CallArgs{{std::move(total), items[next++]}, {}, args.span, {}}));
  }
  return total;
}

// A function that remembers its results by arguments. Its attributes are those of the function.
struct CachedFunction final : TypedObject<CachedFunction> {
  static constexpr Type kType{"functools._lru_cache_wrapper"};
  Result<Value> call(Interpreter& interpreter, CallArgs args) override {
    std::vector<Value> parts = args.positional;
    for (const auto& [name, value] : args.keywords) parts.push_back(make_tuple({Value(name.text()), value}));
    Value key = make_tuple(std::move(parts));
    Span span = args.span;
    HashTable::Entry* known = TRY(results.find(interpreter, key, span));
    if (known) {
      ++hits;
      return known->value;
    }
    ++misses;
    Value result = TRY(interpreter.call(function, std::move(args)));
    TRY(results.set(interpreter, std::move(key), result, span));
    if (most >= 0 && static_cast<int64_t>(results.size()) > most) drop_oldest();
    return result;
  }
  Result<Value> get_attribute(Interpreter& interpreter, Name name, Span span) override {
    if (name.text() == "__wrapped__") return function;
    if (name.text() == "cache_info")
      return make_builtin("cache_info", [this_cache = self()](Interpreter& inner, CallArgs& args) {
        return this_cache->info(inner, args.span);
      });
    if (name.text() != "cache_clear") return interpreter.get_attribute(function, name, span);
    return make_builtin("cache_clear", [this_cache = self()](Interpreter&, CallArgs&) -> Result<Value> {
      this_cache->results.clear();
      this_cache->hits = this_cache->misses = 0;
      return Value();
    });
  }
  std::shared_ptr<CachedFunction> self() { return std::static_pointer_cast<CachedFunction>(shared_from_this()); }
  Result<Value> info(Interpreter& interpreter, Span span) {
    auto base = interpreter.find_builtin("tuple")->get_shared<ClassObject>();
    std::shared_ptr<ClassObject> made = TRY(make_class(interpreter, Name("CacheInfo"), {base}, span));
    make_named_tuple(made, {Name("hits"), Name("misses"), Name("maxsize"), Name("currsize")}, {});
    const Value limit = most < 0 ? Value() : Value(most);
    return made->call(
        interpreter,
        CallArgs{{Value(hits), Value(misses), limit, Value(static_cast<int64_t>(results.size()))}, {}, span, {}});
  }
  void drop_oldest() {
    size_t oldest = 0;
    while (!results.entries()[oldest].live) ++oldest;
    results.erase_at(oldest);
  }
  void release() override {
    results.clear();
    function = Value();
  }
  Value function;
  HashTable results;
  int64_t most = -1, hits = 0, misses = 0;
};

Value make_cached(Interpreter& interpreter, Value function, int64_t most) {
  auto made = std::make_shared<CachedFunction>();
  made->function = std::move(function);
  made->most = most;
  interpreter.watch(made);
  return Value(std::move(made));
}

Result<Value> cache(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"cache", {"function"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return make_cached(interpreter, *read[0], -1);
}

// @lru_cache, @lru_cache() or @lru_cache(maxsize=...)
Result<Value> lru_cache(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"lru_cache", {"maxsize", "typed"}, 0};
  Arguments read = TRY(Arguments::read(args, kSignature));
  bool is_size = !read[0] || read[0]->is_none() || read[0]->as_index();
  if (!is_size) return make_cached(interpreter, *read[0], 128);
  int64_t most = !read[0] ? 128 : read[0]->is_none() ? -1 : *read[0]->as_index();
  return make_builtin("lru_cache", [most](Interpreter& inner, CallArgs& decorated) -> Result<Value> {
    static constexpr Signature kDecorated{"lru_cache", {"function"}, 1};
    Arguments function = TRY(Arguments::read(decorated, kDecorated));
    return make_cached(inner, *function[0], most);
  });
}

// wraps(original): a decorator that gives a function the name of another.
Result<Value> wraps(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"wraps", {"wrapped"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return make_builtin("wraps", [original = *read[0]](Interpreter& interpreter, CallArgs& decorated) -> Result<Value> {
    static constexpr Signature kDecorated{"wraps", {"wrapper"}, 1};
    Arguments wrapper = TRY(Arguments::read(decorated, kDecorated));
    for (std::string_view name : {"__name__", "__qualname__", "__doc__"}) {
      auto value = interpreter.get_attribute(original, Name(name), decorated.span);
      if (value.ok()) TRY(interpreter.set_attribute(*wrapper[0], Name(name), *std::move(value), decorated.span));
    }
    TRY(interpreter.set_attribute(*wrapper[0], Name("__wrapped__"), original, decorated.span));
    return *wrapper[0];
  });
}

// cmp_to_key(compare): a key whose order is what `compare` says.
struct OrderedKey final : TypedObject<OrderedKey> {
  static constexpr Type kType{"functools.KeyWrapper"};
  Result<std::optional<Value>> compare(Interpreter& interpreter, CompareOp op, const Value& other, Span span) override {
    auto* key = other.get_if<OrderedKey>();
    if (!key) return std::optional<Value>();
    Value order = TRY(interpreter.call(function, CallArgs{{value, key->value}, {}, span, {}}));
    return std::optional<Value>(TRY(interpreter.compare(op, order, Value(0), span)));
  }
  Value function;
  Value value;
};

Result<Value> cmp_to_key(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"cmp_to_key", {"mycmp"}, 1};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return make_builtin("cmp_to_key", [function = *read[0]](Interpreter&, CallArgs& keyed) -> Result<Value> {
    static constexpr Signature kKeyed{"K", {"obj"}, 1};
    Arguments value = TRY(Arguments::read(keyed, kKeyed));
    auto made = std::make_shared<OrderedKey>();
    made->function = function;
    made->value = *value[0];
    return Value(std::move(made));
  });
}

}  // namespace

void fill_functools(Interpreter&, ModuleObject& module) {
  module.function("partial", partial);
  module.function("reduce", reduce);
  module.function("cache", cache);
  module.function("lru_cache", lru_cache);
  module.function("wraps", wraps);
  module.function("cmp_to_key", cmp_to_key);
}

}  // namespace tilepilot::stage
