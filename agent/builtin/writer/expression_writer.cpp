#include "agent/builtin/writer/expression_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace tilepilot::agent::builtin {

std::string compute_dtype(const std::string& dtype) {
  return dtype == "float16" || dtype == "bfloat16" ? "float32" : dtype;
}

std::string number_text(double value, const std::string& dtype) {
  if (dtype == "bool") return value != 0 ? "True" : "False";
  if (!is_float(dtype)) return fmt::format("{}", static_cast<int64_t>(value));
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return fmt::format("{}T.infinity(\"{}\")", value < 0 ? "-" : "", compute_dtype(dtype));
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string ExpressionWriter::write_number(const Primitive& p) const {
  auto named = std::isnan(p.number) ? numbers_.end() : numbers_.find(p.number);
  if (named != numbers_.end() && is_float(p.dtype)) return named->second;
  return number_text(p.number, p.dtype);
}

const Primitive& ExpressionWriter::behind_views(int id) const { return graph_.at(graph_.behind_views(id)); }

std::string ExpressionWriter::write(int id, int precedence) const {
  if (auto found = names_.find(id); found != names_.end()) return found->second;
  const Primitive& p = graph_.at(id);
  if (p.kind == Primitive::Kind::constant) {
    std::string text = write_number(p);
    return text[0] == '-' && precedence > info(ScalarOp::neg).precedence ? "(" + text + ")" : text;
  }
  if (is_leaf_(id)) {
    const Primitive& inner = behind_views(id);
    return inner.kind == Primitive::Kind::constant ? write_number(inner) : load_(id, "");
  }
  if (p.kind == Primitive::Kind::view) return write(p.args[0], precedence);
  if (p.kind == Primitive::Kind::gather)
    return load_(p.args[0], fmt::format("T.cast({}, \"int32\")", write(p.args[1])));
  return write_map(p, precedence);
}

std::string ExpressionWriter::write_map(const Primitive& p, int precedence) const {
  const ScalarOpInfo& row = info(p.op);
  if (p.op == ScalarOp::cast) {
    if (compute_dtype(p.dtype) == compute_dtype(graph_.at(p.args[0]).dtype)) return write(p.args[0], precedence);
    return fmt::format("T.cast({}, \"{}\")", write(p.args[0]), compute_dtype(p.dtype));
  }
  std::string text;
  if (row.precedence == 0) {
    std::vector<int> args = p.args;
    // `T.max` gives its second operand where one of them is NaN, and PyTorch gives NaN.
    const bool bounds = p.op == ScalarOp::maximum || p.op == ScalarOp::minimum;
    if (bounds && behind_views(args[1]).kind == Primitive::Kind::constant) std::swap(args[0], args[1]);
    text = fmt::format("T.{}({}", row.tile, write(args[0]));
    for (size_t i = 1; i < args.size(); ++i) text += ", " + write(args[i]);
    return text + ")";
  }
  if (row.arity == 1)
    text = std::string(row.tile) + write(p.args[0], row.precedence);
  else
    text = fmt::format("{} {} {}", write(p.args[0], row.precedence), row.tile, write(p.args[1], row.precedence + 1));
  return row.precedence < precedence ? "(" + text + ")" : text;
}

void ExpressionWriter::count_uses(int id, std::map<int, int>& uses) const {
  if (names_.count(id) || graph_.at(id).kind == Primitive::Kind::constant) return;
  const Primitive& p = graph_.at(id);
  if (p.kind == Primitive::Kind::view && !is_leaf_(id)) return count_uses(p.args[0], uses);
  if (++uses[id] > 1 || is_leaf_(id)) return;
  if (p.kind == Primitive::Kind::gather) return count_uses(p.args[1], uses);
  for (int arg : p.args) count_uses(arg, uses);
}

std::vector<int> ExpressionWriter::repeated(const std::vector<int>& roots) const {
  std::map<int, int> uses;
  for (int root : roots) count_uses(root, uses);
  std::vector<int> result;
  for (auto [id, count] : uses)
    if (count > 1) result.push_back(id);
  return result;
}

}  // namespace tilepilot::agent::builtin
