#include "compiler/stage/tile/operators/safe_values.h"

#include <fmt/format.h>

#include "compiler/ir/visit.h"
#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/arguments.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

ir::Expr compared(ir::BinaryOp op, const ir::Expr& left, const ir::Expr& right, Span span) {
  const ir::DType type = ir::promote(left->type, right->type);
  return fold_binary(op, fold_cast(left, type, span), fold_cast(right, type, span), span);
}

ir::Expr is_inside(const ir::Buffer& buffer, const std::vector<ir::Expr>& indices, Span span) {
  ir::Expr all;
  auto require = [&](ir::Expr condition) {
    all = all ? fold_binary(ir::BinaryOp::logical_and, all, std::move(condition), span) : condition;
  };
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    require(compared(ir::BinaryOp::ge, indices[axis], ir::int_imm(0, indices[axis]->type, span), span));
    require(compared(ir::BinaryOp::lt, indices[axis], buffer->shape[axis], span));
  }
  return all;
}

// A loop over the elements of a copy.
struct ElementLoop {
  std::vector<ir::Var> vars;
  std::vector<ir::Expr> extents;

  explicit ElementLoop(const ir::Region& region) {
    for (int64_t extent : region.extent) {
      if (extent == 1) continue;
      vars.push_back(ir::make_var(fmt::format("i{}", vars.size()), ir::kInt32));
      extents.push_back(ir::int_imm(extent, ir::kInt32, region.span));
    }
  }

  std::vector<ir::Expr> indices(const ir::Region& region) const {
    std::vector<ir::Expr> result = region.start;
    size_t next = 0;
    for (size_t axis = 0; axis < result.size(); ++axis) {
      if (region.extent[axis] == 1) continue;
      ir::Expr step = fold_cast(ir::var_ref(vars[next++], region.span), result[axis]->type, region.span);
      result[axis] = fold_binary(ir::BinaryOp::add, result[axis], std::move(step), region.span);
    }
    return result;
  }

  // All threads share the elements, or one goes through them.
  ir::Stmt around(ir::Stmt body, bool is_shared, Span span) const {
    if (is_shared && !vars.empty())
      return ir::make_stmt(ir::For{ir::LoopKind::parallel, vars, extents, 0, std::move(body)}, span);
    for (size_t k = vars.size(); k-- > 0;)
      body = ir::make_stmt(ir::For{ir::LoopKind::serial, {vars[k]}, {extents[k]}, 0, std::move(body)}, span);
    return body;
  }
};

class SafeReads : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  explicit SafeReads(const SafeValues& values) : values_(values) {}

  ir::Expr rewrite(const ir::Expr& expr) override {
    const ir::Expr inner = rewrite_children(expr);
    const auto* load = ir::as<ir::Load>(inner);
    const auto value = load ? values_.find(load->buffer.get()) : values_.end();
    if (value == values_.end()) return inner;
    return fold_select(is_inside(load->buffer, load->indices, expr->span), inner, value->second, expr->span);
  }

  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* copy = ir::as<ir::Copy>(stmt);
    if (!copy || values_.count(copy->source.buffer.get()) == 0) return rewrite_children(stmt);
    const ElementLoop loop(copy->destination);
    const ir::Buffer& to = copy->destination.buffer;
    ir::Expr value = rewrite(ir::load(copy->source.buffer, loop.indices(copy->source), copy->source.span));
    ir::Store store{to, rewrite_all(loop.indices(copy->destination)),
                    fold_cast(std::move(value), to->type, stmt->span)};
    return loop.around(ir::make_stmt(std::move(store), stmt->span), to->scope != ir::Scope::local, stmt->span);
  }

 private:
  const SafeValues& values_;
};

// T.annotate_safe_value({tensor: value})
Result<Value> annotate_safe_value(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  auto* map = arguments[0].get_if<DictObject>();
  if (!map)
    return make_error(DiagnosticKind::type_error, arguments.span(),
                      fmt::format("`T.annotate_safe_value` takes a dict, not a `{}`", arguments[0].type_name()),
                      "write `T.annotate_safe_value({tensor: value})`");
  for (const HashTable::Entry& entry : map->table.entries()) {
    if (!entry.live) continue;
    auto* buffer = entry.key.get_if<BufferObject>();
    if (!buffer || buffer->buffer->scope != ir::Scope::global)
      return make_error(DiagnosticKind::wrong_scope, arguments.span(),
                        "`T.annotate_safe_value` is for tensors: tiles are not read outside",
                        "name a parameter of the program");
    ir::Expr value = TRY(to_expr(entry.value, arguments.span(), buffer->buffer->type));
    if (!is_atom(value) || std::holds_alternative<ir::VarRef>(value->node))
      return make_error(DiagnosticKind::staged_value_misused, arguments.span(),
                        fmt::format("the safe value of `{}` is no constant", buffer->name()));
    builder.safe_values()[buffer->buffer.get()] = fold_cast(std::move(value), buffer->buffer->type, arguments.span());
  }
  return Value();
}

}  // namespace

ir::Kernel with_safe_values(const ir::Kernel& kernel, const SafeValues& values) {
  if (values.empty()) return kernel;
  return SafeReads(values).rewrite(kernel);
}

const std::vector<TileFunction>& safe_value_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"annotate_safe_value", "safe_value_map", "what reads outside tensors give in this kernel: `{tensor: value}`",
       annotate_safe_value},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
