#include "compiler/stage/tile/library/dtypes.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/tile/kernel/expressions.h"

namespace tilepilot::stage {
namespace {

// What to use instead of types that upstream has and no target here computes with.
std::optional<std::string> foreign_dtype_advice(std::string_view name) {
  if (size_t x = name.rfind('x'); x != std::string_view::npos && ir::parse_dtype(name.substr(0, x)))
    return fmt::format("use `{}` and an axis of {}: compilers find the vectors", name.substr(0, x), name.substr(x + 1));
  if (name.starts_with("float8")) return "use float8_e4m3fn or float8_e5m2";
  if (name.starts_with("float6") || name.starts_with("float4")) return "use float4_e2m1fn or float8_e4m3fn";
  if (name == "handle") return "pass tensors";
  return std::nullopt;
}

Error unknown_dtype(const std::string& name, Span span) {
  if (auto advice = foreign_dtype_advice(name))
    return make_error(DiagnosticKind::unsupported_tile_feature, span,
                      fmt::format("the dtype `{}` is not supported", name), std::move(*advice));
  std::vector<std::string_view> names;
  for (const auto& row : dtype_names()) names.push_back(row.name);
  std::string_view near = nearest_name(name, names);
  return make_error(DiagnosticKind::value_error, span, fmt::format("`{}` is not a dtype", name),
                    near.empty() ? "dtypes are named as in \"float32\"" : fmt::format("did you mean `{}`?", near));
}

// The name of a dtype that belongs to a host library: torch.float16 prints as "torch.float16".
std::optional<ir::DType> host_dtype(TileContext& context, const Value& value) {
  if (context.options.host)
    if (auto type = context.options.host->dtype(value)) return type;
  auto* object = value.if_object();
  if (!object || !*object || (*object)->type_name() != "torch.dtype") return std::nullopt;
  auto text = context.interpreter.str(value);
  constexpr std::string_view kPrefix = "torch.";
  if (!text.ok() || !text->starts_with(kPrefix)) return std::nullopt;
  return ir::parse_dtype(text->substr(kPrefix.size()));
}

std::optional<ir::DType> python_type(const Value& value) {
  auto* class_object = value.get_if<ClassObject>();
  if (!class_object) return std::nullopt;
  std::string_view name = class_object->name.text();
  if (name == "float") return ir::kFloat32;
  if (name == "int") return ir::kInt32;
  if (name == "bool") return ir::kBool;
  return std::nullopt;
}

}  // namespace

std::optional<ir::DType> named_by_object(TileContext& context, const Value& value) {
  if (auto* object = value.get_if<DTypeObject>()) return object->dtype;
  if (auto type = python_type(value)) return type;
  return host_dtype(context, value);
}

const std::vector<NamedDType>& dtype_names() {
  static const std::vector<NamedDType> kNames = {
      {"float16", ir::kFloat16},
      {"half", ir::kFloat16},
      {"float32", ir::kFloat32},
      {"float", ir::kFloat32},
      {"float64", ir::kFloat64},
      {"double", ir::kFloat64},
      {"bfloat16", ir::kBFloat16},
      {"int8", ir::kInt8},
      {"int16", ir::kInt16},
      {"int32", ir::kInt32},
      {"int", ir::kInt32},
      {"int64", ir::kInt64},
      {"long", ir::kInt64},
      {"short", ir::kInt16},
      {"uint8", ir::kUInt8},
      {"uint16", ir::kUInt16},
      {"uint32", ir::kUInt32},
      {"uint64", ir::kUInt64},
      {"bool", ir::kBool},
      {"uint", ir::kUInt32},
      {"ulong", ir::kUInt64},
      {"float8_e4m3fn", ir::kFloat8E4M3},
      {"float8_e4m3", ir::kFloat8E4M3},
      {"float8_e5m2", ir::kFloat8E5M2},
      {"float8_e8m0fnu", ir::kFloat8E8M0},
      {"int4", ir::kInt4},
      {"uint4", ir::kUInt4},
      {"float4_e2m1fn", ir::kFloat4E2M1},
      {"tfloat32", ir::kTensorFloat32},
  };
  return kNames;
}

Result<ir::DType> resolve_dtype(TileContext& context, const Value& value, Span span) {
  if (auto* text = value.if_string()) {
    for (const auto& row : dtype_names())
      if (row.name == *text) return row.dtype;
    if (auto type = ir::parse_dtype(*text)) return *type;
    return unknown_dtype(*text, span);
  }
  if (auto type = named_by_object(context, value)) return *type;
  return make_error(DiagnosticKind::type_error, span, fmt::format("a `{}` is not a dtype", value.type_name()),
                    "write it as in \"float32\" or `T.float32`");
}

bool names_dtype(TileContext& context, const Value& value) {
  return value.if_string() != nullptr || named_by_object(context, value).has_value();
}

}  // namespace tilepilot::stage
