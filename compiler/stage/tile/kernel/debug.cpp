// What programs say while they run: print, device_assert, and assert statements about run-time values.
#include <fmt/format.h>

#include "compiler/ir/text/text.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/debug.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr int64_t kWarp = 32, kWarpGroup = 128;

// The indices of the thread that prints; none where iterations have no thread of their own.
std::vector<ir::Expr> printing_thread(ProgramBuilder& builder, Span span) {
  std::vector<ir::Expr> thread;
  for (size_t axis = 0; !builder.in_parallel_loop() && axis < builder.kernel().threads.size(); ++axis)
    thread.push_back(builder.thread_index(axis, span));
  return thread;
}

// The element of a buffer that is `flat` elements from its start, axes contiguous.
std::vector<ir::Expr> element_indices(const ir::BufferData& buffer, ir::Expr flat, Span span) {
  std::vector<ir::Expr> indices(buffer.rank());
  for (size_t axis = buffer.rank(); axis-- > 0;) {
    const ir::Expr extent = fold_cast(buffer.shape[axis], flat->type, span);
    indices[axis] = axis == 0 ? flat : fold_binary(ir::BinaryOp::floor_mod, flat, extent, span);
    flat = fold_binary(ir::BinaryOp::floor_div, flat, extent, span);
  }
  return indices;
}

struct BufferPrint {
  ir::Buffer memory;  // what is read
  std::string name, message;
  ir::Expr condition;  // who prints; null: every thread
};

Status print_elements(ProgramBuilder& builder, const BufferPrint& print, Span span) {
  const auto loop = [&]() -> Status {
    const ir::Var var = builder.make_var("i");
    ir::Expr count = ir::int_imm(1, ir::kInt32, span);
    for (const ir::Expr& extent : print.memory->shape)
      count = fold_binary(ir::BinaryOp::mul, count, fold_cast(extent, ir::kInt32, span), span);
    const auto element = [&]() -> Status {
      const ir::Expr index = ir::var_ref(var, span);
      const ir::Expr value = ir::load(print.memory, element_indices(*print.memory, index, span), span);
      return builder.emit(ir::Print{print.message, print.name, index, value, printing_thread(builder, span)}, span);
    };
    ir::Stmt body = TRY(builder.nested(BlockKind::serial_loop, {var}, element, span));
    return builder.emit(ir::For{ir::LoopKind::serial, {var}, {count}, 0, std::move(body)}, span);
  };
  if (!print.condition) return loop();
  ir::Stmt then = TRY(builder.nested(BlockKind::branch, {}, loop, span));
  return builder.emit(ir::If{print.condition, std::move(then), nullptr}, span);
}

// Tiles of the block are printed by one thread, other buffers by every thread.
Status print_buffer(const TileArguments& arguments, const BufferObject& object) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const Span span = arguments.span();
  BufferPrint print{object.buffer, object.name(), {}, nullptr};
  if (arguments.has(1)) print.message = TRY(arguments.text(1));
  if (print.message.empty())
    print.message = fmt::format("buffer<{}, {}>", object.name(), ir::to_string(object.buffer->type));
  const ir::Scope scope = object.buffer->scope;
  if (scope == ir::Scope::local || scope == ir::Scope::global) return print_elements(builder, print, span);
  const int64_t first = TRY(arguments.integer_or(2, 0)) * kWarpGroup + TRY(arguments.integer_or(3, 0)) * kWarp;
  for (size_t axis = 0; axis < builder.kernel().threads.size(); ++axis) {
    const ir::Expr wanted = ir::int_imm(axis == 0 ? first : 0, ir::kInt32, span);
    const ir::Expr is_it = fold_binary(ir::BinaryOp::eq, builder.thread_index(axis, span), wanted, span);
    print.condition = print.condition ? fold_binary(ir::BinaryOp::logical_and, print.condition, is_it, span) : is_it;
  }
  if (scope == ir::Scope::fragment) {
    ir::BufferData data = *object.buffer;
    data.name = object.name() + "_shown";
    data.scope = ir::Scope::shared;
    data.base = nullptr;
    print.memory = builder.allocate(std::move(data));
    const auto whole = [&](const ir::Buffer& buffer) {
      ir::Region region{buffer, {}, {}, span};
      for (const ir::Expr& extent : buffer->shape) {
        region.start.push_back(ir::int_imm(0, ir::kInt32, span));
        region.extent.push_back(ir::constant_int(extent).value_or(1));
      }
      return region;
    };
    TRY(builder.emit(ir::Copy{whole(object.buffer), whole(print.memory), {}}, span));
  }
  return print_elements(builder, print, span);
}

// T.print(obj=None, msg="", warp_group_id=0, warp_id=0)
Result<Value> print(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  if (arguments.has(0)) {
    if (const auto* object = arguments[0].get_if<BufferObject>()) {
      TRY(print_buffer(arguments, *object));
      return Value();
    }
  }
  ir::Print node;
  node.message = arguments.has(1) ? TRY(arguments.text(1)) : std::string();
  node.thread = printing_thread(builder, arguments.span());
  if (arguments.has(0)) {
    node.value = TRY(to_expr(arguments[0], arguments.span(0)));
    if (node.message.empty()) node.message = fmt::format("expr<{}>", ir::to_text(node.value));
  } else if (node.message.empty()) {
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(), "`T.print` has nothing to print",
                      "give it a buffer, a value or a `msg`");
  }
  TRY(builder.emit(std::move(node), arguments.span()));
  return Value();
}

// T.device_assert(condition, msg="")
Result<Value> device_assert(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(emit_check(builder, arguments[0], arguments.has(1) ? TRY(arguments.text(1)) : std::string(), arguments.span()));
  return Value();
}

}  // namespace

Status emit_check(ProgramBuilder& builder, const Value& condition, const std::string& message, Span span) {
  const ir::Expr holds = TRY(to_condition(condition, span));
  if (ir::constant_int(holds) == 1) return {};
  return builder.emit(ir::Check{holds, message.empty() ? "assertion failed" : "assertion failed: " + message}, span);
}

const std::vector<TileFunction>& debug_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"print", "obj=, msg=, warp_group_id=, warp_id=",
       "prints a value or a `msg` for each thread; a tile of the block by the first thread of that warp", print},
      {"device_assert", "condition, msg=", "the launch fails where the condition does not hold", device_assert},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
