#include "compiler/targets/c/events.h"

#include "compiler/ir/text/print_form.h"
#include "compiler/targets/c/expr.h"

namespace tilepilot::targets::c {
namespace {

// As a string literal of C.
std::string literal(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '?' || static_cast<unsigned char>(c) < ' ')
      result += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + "\"";
}

// Three indices of threads or blocks, those that are missing 0.
std::string three(std::vector<std::string> parts) {
  for (std::string& part : parts) part = fmt::format("static_cast<int>({})", part);
  parts.resize(3, "0");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string shown(ir::DType type, const std::string& text) {
  if (type.is_bool()) return text + " ? \"true\" : \"false\"";
  if (type.is_float()) return fmt::format("static_cast<double>({})", text);
  const bool is_unsigned = type.code == ir::TypeCode::unsigned_int;
  return fmt::format("static_cast<{}{}>({})", is_unsigned ? "unsigned " : "", type.bits == 64 ? "long" : "int", text);
}

std::string tile_shape_text(const ir::Buffer& tile) {
  std::vector<int64_t> shape = extents(tile);
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

int64_t Context::add_tile_check(const ir::Buffer& tile, Span span) {
  return add_check(span, fmt::format("an index is outside of the tile `{}` {}", tile->name, tile_shape_text(tile)),
                   DiagnosticKind::outside_tile);
}

int64_t Context::add_check(Span span, std::string message, DiagnosticKind kind) {
  uses_events = true;
  checks.push_back({span, std::move(message), kind});
  return static_cast<int64_t>(checks.size());
}

void check_inside(Context& context, const ir::Region& region) {
  if (!context.checks_tiles || region.buffer->scope == ir::Scope::global) return;
  std::vector<std::string> conditions;
  for (size_t axis = 0; axis < region.extent.size(); ++axis) {
    const ir::Expr &start = region.start[axis], &extent = region.buffer->shape[axis];
    const ir::Expr last = ir::binary(ir::BinaryOp::add, start, ir::int_imm(region.extent[axis] - 1, start->type));
    if (context.facts.in_bounds(start, extent) && context.facts.in_bounds(last, extent)) continue;
    const int64_t room = ir::constant_int(extent).value_or(0) - region.extent[axis];
    const std::string at = factor(context, start);
    conditions.push_back(fmt::format("{} >= 0 && {} <= {}", at, at, room));
  }
  if (conditions.empty()) return;
  const int64_t number = context.add_tile_check(region.buffer, region.span);
  context.body.line("if (!({})) return fail_check(events, {});", fmt::join(conditions, " && "), number);
}

void emit_check(Context& context, const ir::Check& check, Span span) {
  const int64_t number = context.add_check(span, check.message, DiagnosticKind::assertion_failed);
  context.body.line("if (!({})) return fail_check(events, {});", value(context, check.condition), number);
}

std::string print_arguments(Context& context, const ir::Print& print) {
  std::vector<std::string> block, thread;
  for (const ir::Var& var : context.kernel.block_vars) block.push_back(context.names.of(var));
  for (const ir::Expr& axis : print.thread) thread.push_back(index(context, axis));
  std::string format = "msg='%s' BlockIdx=(%d, %d, %d), ThreadIdx=(%d, %d, %d)";
  std::string arguments = fmt::format("{}, {}, {}", literal(print.message), three(block), three(thread));
  if (print.value) format += ": ";
  if (print.index) {
    format += "buffer=%s, index=%d, ";
    arguments += fmt::format(", {}, static_cast<int>({})", literal(print.buffer), index(context, print.index));
  }
  if (print.value) {
    const ir::PrintForm form = ir::print_form(print.value->type);
    format += fmt::format("dtype={} value={}", form.type, form.format);
    arguments += ", " + shown(print.value->type, value(context, print.value));
  }
  return fmt::format("\"{}\\n\", {}", format, arguments);
}

void emit_print(Context& context, const ir::Print& print) {
  context.uses_events = true;
  context.body.line("print_line(events, {});", print_arguments(context, print));
}

}  // namespace tilepilot::targets::c
