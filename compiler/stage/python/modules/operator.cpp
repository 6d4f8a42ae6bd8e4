// The module `operator`: the operators as functions.
#include <fmt/format.h>

#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

constexpr std::pair<std::string_view, BinaryOp> kBinary[] = {
    {"add", BinaryOp::add},       {"sub", BinaryOp::sub},      {"mul", BinaryOp::mul},
    {"matmul", BinaryOp::matmul}, {"truediv", BinaryOp::div},  {"floordiv", BinaryOp::floor_div},
    {"mod", BinaryOp::mod},       {"pow", BinaryOp::pow},      {"lshift", BinaryOp::shl},
    {"rshift", BinaryOp::shr},    {"and_", BinaryOp::bit_and}, {"or_", BinaryOp::bit_or},
    {"xor", BinaryOp::bit_xor},
};

constexpr std::pair<std::string_view, CompareOp> kComparisons[] = {
    {"eq", CompareOp::eq}, {"ne", CompareOp::ne}, {"lt", CompareOp::lt},  {"le", CompareOp::le},
    {"gt", CompareOp::gt}, {"ge", CompareOp::ge}, {"is_", CompareOp::is}, {"is_not", CompareOp::is_not},
};

constexpr std::pair<std::string_view, UnaryOp> kUnary[] = {
    {"neg", UnaryOp::minus},
    {"pos", UnaryOp::plus},
    {"invert", UnaryOp::invert},
    {"not_", UnaryOp::logical_not},
};

Result<Value> get_item(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"getitem", {"a", "b"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return interpreter.get_item(*read[0], *read[1], args.span);
}

Result<Value> contains(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"contains", {"a", "b"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  return interpreter.compare(CompareOp::in, *read[1], *read[0], args.span);
}

// One result, or a tuple of several.
Value one_or_tuple(std::vector<Value> values) { return values.size() == 1 ? values[0] : make_tuple(std::move(values)); }

Result<Value> item_getter(Interpreter&, CallArgs& args) {
  return make_builtin("itemgetter",
                      [keys = args.positional](Interpreter& interpreter, CallArgs& call) -> Result<Value> {
                        static constexpr Signature kSignature{"itemgetter", {"obj"}, 1};
                        Arguments read = TRY(Arguments::read(call, kSignature));
                        std::vector<Value> values;
                        for (const Value& key : keys)
                          values.push_back(TRY(interpreter.get_item(*read[0], key, call.span)));
                        return one_or_tuple(std::move(values));
                      });
}

Result<Value> attribute_getter(Interpreter&, CallArgs& args) {
  return make_builtin(
      "attrgetter", [names = args.positional](Interpreter& interpreter, CallArgs& call) -> Result<Value> {
        static constexpr Signature kSignature{"attrgetter", {"obj"}, 1};
        Arguments read = TRY(Arguments::read(call, kSignature));
        std::vector<Value> values;
        for (const Value& name : names) {
          if (!name.if_string()) return type_error(call.span, "attribute name must be a string");
          values.push_back(TRY(interpreter.get_attribute(*read[0], Name(*name.if_string()), call.span)));
        }
        return one_or_tuple(std::move(values));
      });
}

}  // namespace

void fill_operator(Interpreter&, ModuleObject& module) {
  for (const auto& [name, op] : kBinary) {
    module.function(name, [op = op](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
      static constexpr Signature kSignature{"operator", {"a", "b"}, 2};
      Arguments read = TRY(Arguments::read(args, kSignature));
      return interpreter.binary(op, *read[0], *read[1], args.span);
    });
  }
  for (const auto& [name, op] : kComparisons) {
    module.function(name, [op = op](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
      static constexpr Signature kSignature{"operator", {"a", "b"}, 2};
      Arguments read = TRY(Arguments::read(args, kSignature));
      return interpreter.compare(op, *read[0], *read[1], args.span);
    });
  }
  for (const auto& [name, op] : kUnary) {
    module.function(name, [op = op](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
      static constexpr Signature kSignature{"operator", {"a"}, 1};
      Arguments read = TRY(Arguments::read(args, kSignature));
      return interpreter.unary(op, *read[0], args.span);
    });
  }
  module.function("getitem", get_item);
  module.function("contains", contains);
  module.function("itemgetter", item_getter);
  module.function("attrgetter", attribute_getter);
}

}  // namespace tilepilot::stage
