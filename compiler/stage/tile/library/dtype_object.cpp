// What a dtype does as a value: it converts, knows its size, and is otherwise the string that names it.
#include <fmt/format.h>

#include <limits>

#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/markers.h"
#include "compiler/stage/tile/library/dtypes.h"

namespace tilepilot::stage {
namespace {

// As DLPack numbers them, which `tvm.DataType.type_code` shows.
constexpr std::pair<ir::TypeCode, int64_t> kTypeCodes[] = {
    {ir::TypeCode::signed_int, 0},  {ir::TypeCode::unsigned_int, 1}, {ir::TypeCode::floating, 2},
    {ir::TypeCode::bfloat, 4},      {ir::TypeCode::boolean, 6},      {ir::TypeCode::float_e4m3, 10},
    {ir::TypeCode::float_e5m2, 12}, {ir::TypeCode::float_e8m0, 14},  {ir::TypeCode::float_e2m1, 17}};

Result<Value> type_code(ir::DType dtype, Span span) {
  for (const auto& [code, number] : kTypeCodes)
    if (code == dtype.code) return Value(number);
  return make_error(DiagnosticKind::unsupported_tile_feature, span,
                    fmt::format("`type_code` of {} is not supported", ir::to_string(dtype)));
}

Value constant_method(std::string name, Value result) {
  return std::make_shared<BuiltinFunction>(
      std::move(name), [result = std::move(result)](Interpreter&, CallArgs&) -> Result<Value> { return result; });
}

// How torch names the elements of its tensors that hold those of a type.
std::string torch_name(ir::DType dtype) {
  if (dtype == ir::kInt4) return "int8";
  if (dtype == ir::kUInt4) return "uint8";
  if (dtype == ir::kFloat4E2M1) return "float4_e2m1fn_x2";
  return ir::to_string(dtype == ir::kTensorFloat32 ? ir::kFloat32 : dtype);
}

// TVMScript's spelling of what has no literal: `T.float32("-inf")`.
std::optional<double> special_number(const Value& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::pair<std::string_view, double> kNumbers[] = {
      {"inf", kInfinity}, {"-inf", -kInfinity}, {"nan", std::numeric_limits<double>::quiet_NaN()}};
  const std::string* text = value.if_string();
  for (const auto& [name, number] : kNumbers)
    if (text != nullptr && *text == name) return number;
  return std::nullopt;
}

}  // namespace

Result<Value> torch_dtype(Interpreter& interpreter, ir::DType dtype, Span span) {
  if (auto torch = interpreter.find_module("torch"))
    return torch->get_attribute(interpreter, Name(torch_name(dtype)), span);
  return make_error(DiagnosticKind::unknown_module, span, "`as_torch` needs `torch`, which is not available here");
}

Result<Value> DTypeObject::call(Interpreter&, CallArgs args) {
  if (args.positional.size() > 1 || !args.keywords.empty())
    return make_error(DiagnosticKind::wrong_arguments, args.span,
                      fmt::format("`T.{0}` converts one value, as in `T.{0}(x)`", ir::to_string(dtype)));
  // Without a value it stands for the type, as in an annotation.
  if (args.positional.empty()) return Value(std::static_pointer_cast<DTypeObject>(shared_from_this()));
  const auto special = dtype.is_float() ? special_number(args.positional[0]) : std::nullopt;
  return convert(context, special ? Value(*special) : args.positional[0], dtype, args.span);
}

Result<Value> DTypeObject::get_attribute(Interpreter& interpreter, Name attribute, Span span) {
  std::string_view asked = attribute.text();
  if (asked == "bits") return Value(int64_t{dtype.bits});
  if (asked == "bytes" || asked == "itemsize") return Value(int64_t{dtype.bytes()});
  if (asked == "lanes") return Value(int64_t{1});
  if (asked == "type_code") return type_code(dtype, span);
  if (asked == "name") return text();
  if (asked == "as_torch") return constant_method(attribute.str(), TRY(torch_dtype(interpreter, dtype, span)));
  if (asked == "is_float4" || asked == "is_float4_e2m1fn")
    return constant_method(attribute.str(), Value(dtype == ir::kFloat4E2M1));
  if (asked == "is_float4_e2m1_unpacked") return constant_method(attribute.str(), Value(false));
  return interpreter.get_attribute(text(), attribute, span);
}

Result<Value> DTypeObject::get_item(Interpreter& interpreter, const Value& index, Span span) {
  return interpreter.get_item(text(), index, span);
}

Result<int64_t> DTypeObject::length(Interpreter& interpreter, Span span) { return interpreter.length(text(), span); }

Result<std::unique_ptr<Iterator>> DTypeObject::iterate(Interpreter& interpreter, Span span) {
  return interpreter.iterate(text(), span);
}

Result<bool> DTypeObject::contains(Interpreter& interpreter, const Value& item, Span span) {
  return interpreter.truth(TRY(interpreter.compare(CompareOp::in, item, text(), span)), span);
}

// `dtype + "x2"`; and `T.float16 | str`, which only annotations write.
Result<std::optional<Value>> DTypeObject::binary(Interpreter& interpreter, BinaryOp op, const Value& other,
                                                 bool reflected, Span span) {
  if (op == BinaryOp::bit_or) return std::optional<Value>(Value(shared_from_this()));
  if (!other.if_string() && !other.as_index()) return std::optional<Value>();
  Value left = reflected ? other : text(), right = reflected ? text() : other;
  return std::optional<Value>(TRY(interpreter.binary(op, left, right, span)));
}

Result<std::optional<Value>> DTypeObject::compare(Interpreter& interpreter, CompareOp op, const Value& other,
                                                  Span span) {
  if (op != CompareOp::eq && op != CompareOp::ne) {
    if (!other.if_string()) return std::optional<Value>();
    return std::optional<Value>(TRY(interpreter.compare(op, text(), other, span)));
  }
  std::optional<ir::DType> type = named_by_object(context, other);
  if (auto* text = other.if_string()) type = ir::parse_dtype(*text);
  return std::optional<Value>(Value((type == dtype) == (op == CompareOp::eq)));
}

Result<size_t> DTypeObject::hash(Interpreter& interpreter, Span span) { return interpreter.hash(text(), span); }

Result<std::string> DTypeObject::repr(Interpreter&) { return name; }

Result<Value> DTypeMaker::call(Interpreter&, CallArgs args) {
  if (args.positional.size() != 1 || !args.keywords.empty())
    return make_error(DiagnosticKind::wrong_arguments, args.span, "`T.dtype` takes one value",
                      "as in `T.dtype(\"float16\")`");
  ir::DType type = TRY(resolve_dtype(context, args.positional[0], args.span));
  return Value(std::make_shared<DTypeObject>(context, type));
}

Result<Value> DTypeMaker::get_attribute(Interpreter& interpreter, Name name, Span span) {
  if (name.text() == "__instancecheck__")
    return instance_check([](const Value& value) { return value.get_if<DTypeObject>() != nullptr; });
  return Object::get_attribute(interpreter, name, span);
}

Result<std::optional<Value>> DTypeMaker::binary(Interpreter&, BinaryOp op, const Value&, bool, Span) {
  return op == BinaryOp::bit_or ? std::optional<Value>(Value(shared_from_this())) : std::nullopt;
}

}  // namespace tilepilot::stage
