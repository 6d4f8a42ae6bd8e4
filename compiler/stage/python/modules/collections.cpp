// The module `collections`: OrderedDict, defaultdict, Counter, namedtuple. deque and ChainMap are in collections.py.
#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/containers/counter.h"
#include "compiler/stage/python/containers/named_tuple.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

Result<Value> fill_from_call(Interpreter& interpreter, const std::shared_ptr<DictObject>& dict, CallArgs& args) {
  TRY(dict_methods().call(interpreter, Value(dict), Name("update"), args));
  return Value(dict);
}

Result<Value> ordered_dict(Interpreter& interpreter, CallArgs& args) {
  auto dict = std::make_shared<DictObject>();
  dict->flavour = &kOrderedDict;
  return fill_from_call(interpreter, dict, args);
}

Result<Value> default_dict(Interpreter& interpreter, CallArgs& args) {
  auto dict = std::make_shared<DictObject>();
  dict->flavour = &kDefaultDict;
  if (!args.positional.empty()) {
    dict->default_factory = args.positional[0];
    args.positional.erase(args.positional.begin());
  }
  return fill_from_call(interpreter, dict, args);
}

Result<Value> counter(Interpreter& interpreter, CallArgs& args) {
  auto dict = std::make_shared<DictObject>();
  dict->flavour = &kCounter;
  TRY(add_counts(interpreter, *dict, args, 1));
  return Value(std::move(dict));
}

Result<std::vector<Name>> field_names(Interpreter& interpreter, const Value& value, Span span) {
  std::vector<Value> items;
  if (const std::string* text = value.if_string()) {
    std::string spaced = *text;
    for (char& c : spaced) c = c == ',' ? ' ' : c;
    CallArgs none{{}, {}, span, {}};
    Value list = TRY(string_methods().call(interpreter, Value(spaced), Name("split"), none));
    items = *sequence_items(list);
  } else {
    items = TRY(interpreter.to_vector(value, span));
  }
  std::vector<Name> names;
  for (const Value& each : items) {
    if (!each.if_string()) return type_error(span, "field names must be strings");
    names.emplace_back(*each.if_string());
  }
  return names;
}

Result<Value> named_tuple(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"namedtuple", {"typename", "field_names", "rename", "defaults", "module"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  std::vector<Name> names = TRY(field_names(interpreter, *read[1], args.span));
  std::vector<Value> defaults;
  if (read.given(3)) defaults = TRY(interpreter.to_vector(*read[3], args.span));
  auto base = interpreter.find_builtin("tuple")->get_shared<ClassObject>();
  auto made = TRY(make_class(interpreter, Name(TRY(read.text(0))), {base}, args.span));
  make_named_tuple(made, std::move(names), std::move(defaults));
  return Value(std::move(made));
}

std::shared_ptr<ClassObject> add_class(Interpreter& interpreter, const Type& type,
                                       Result<Value> (*construct)(Interpreter&, CallArgs&)) {
  auto base = interpreter.find_builtin("dict")->get_shared<ClassObject>();
  auto made = std::make_shared<ClassObject>();
  made->name = Name(type.name);
  made->bases = {base};
  made->resolution_order = {made.get()};
  made->resolution_order.insert(made->resolution_order.end(), base->resolution_order.begin(),
                                base->resolution_order.end());
  made->construct = construct;
  made->sealed = true;
  interpreter.set_class(type, made);
  return made;
}

}  // namespace

void fill_collections(Interpreter& interpreter, ModuleObject& module) {
  module.set("OrderedDict", add_class(interpreter, kOrderedDict, ordered_dict));
  module.set("defaultdict", add_class(interpreter, kDefaultDict, default_dict));
  module.set("Counter", add_class(interpreter, kCounter, counter));
  module.function("namedtuple", named_tuple);
  auto abstract = std::make_shared<ModuleObject>("collections.abc");
  fill_collections_abc(interpreter, *abstract);
  module.set("abc", std::move(abstract));
}

void fill_collections_abc(Interpreter&, ModuleObject& module) {
  for (std::string_view name : {"Callable", "Iterable", "Iterator", "Sequence", "Mapping", "MutableMapping",
                                "MutableSequence", "Hashable", "Sized", "Collection", "Generator", "Set"}) {
    module.set(name, make_typing_name(std::string(name)));
  }
}

}  // namespace tilepilot::stage
