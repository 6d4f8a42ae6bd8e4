// Fragments that each thread holds for itself, beside tile operators that fill them, copy to them or set them in a
// loop; the same memory in other shapes; and starts of regions that are negative or come from memory.
#include <algorithm>

#include "compiler/ir/effects.h"
#include "compiler/ir/replace_buffers.h"
#include "compiler/ir/visit.h"
#include "tests/ir/random_program.h"

namespace tilepilot::ir::testing {
namespace {

constexpr const char* kHeld = "held";  // and the name of variables of loops that set one

bool is_held(const BufferData& buffer) { return memory_of(buffer)->name == kHeld && buffer.scope == Scope::fragment; }

bool loads_fragments(const Expr& expr) {
  bool found = false;
  walk(expr, [&](const Expr& part) {
    const auto* from = as<Load>(part);
    found |= from != nullptr && from->buffer->scope == Scope::fragment;
  });
  return found;
}

// Parallel loops over what threads hold, as loops of each thread.
class ThreadPrivateLoops : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = as<For>(stmt);
    if (loop == nullptr || loop->kind != LoopKind::parallel || loop->vars[0]->name != kHeld)
      return rewrite_children(stmt);
    Stmt body = loop->body;
    for (size_t axis = loop->vars.size(); axis-- > 0;)
      body = make_stmt(For{LoopKind::serial, {loop->vars[axis]}, {loop->extents[axis]}, 0, body}, stmt->span);
    return body;
  }
};

}  // namespace

Program with_held_as_own(const Program& program) {
  Program result = program;
  for (Kernel& kernel : result.kernels) {
    Replacements own;
    for (const Buffer& buffer : kernel.allocations) {
      if (!is_held(*buffer)) continue;
      BufferData data = *buffer;
      data.scope = Scope::local;
      if (data.base) data.base = own.at(data.base.get());
      own.emplace(buffer.get(), std::make_shared<BufferData>(std::move(data)));
    }
    kernel = replace_buffers(kernel, own);
    kernel.body = ThreadPrivateLoops().rewrite(kernel.body);
  }
  return result;
}

void RandomProgram::add_held() {
  for (int k = 1 + pick(2); k > 0; --k) {
    std::vector<Expr> shape{int_imm(1 + pick(4))};
    if (one_in(2)) shape.push_back(int_imm(1 + pick(3)));
    held_.push_back(buffer(kHeld, dtype(), Scope::fragment, shape));
    own_.push_back(held_.back());
  }
}

// For the thread that runs it, whatever the others do.
Stmt RandomProgram::held_operator() {
  const Buffer to = any(held_);
  const auto here = [&](const Buffer& b, const std::vector<int64_t>& extent) {
    Region result{b, {}, extent, span()};
    for (size_t axis = 0; axis < b->rank(); ++axis)
      result.start.push_back(b->scope == Scope::global ? start(*constant_int(b->shape[axis]))
                                                       : index(*constant_int(b->shape[axis]) - extent[axis] + 1, 1));
    return result;
  };
  std::vector<int64_t> extent;
  for (const Expr& size : to->shape)
    extent.push_back(one_in(3) ? 1 + pick(int(*constant_int(size))) : *constant_int(size));
  switch (pick(4)) {
    case 0:
      return make_stmt(Fill{here(to, extent), expr(to->type, 1)}, span());
    case 1:
      return held_loop(to);
    case 2:
      return atomic(to, indices(to, 1));
    default: {
      const Buffer& from = any(readable_.empty() ? held_ : readable_);
      const bool fits =
          from != to && from->rank() >= to->rank() && !is_part(from) && converts(from->type, to->type) &&
          std::all_of(from->shape.begin(), from->shape.end(), [](const Expr& e) { return constant_int(e); });
      if (!fits || root(from) == root(to)) return held_loop(to);
      std::vector<int64_t> wide(from->rank() - to->rank(), 1);
      wide.insert(wide.end(), extent.begin(), extent.end());
      if (from->scope != Scope::global) return held_loop(to);
      return make_stmt(Copy{here(from, wide), here(to, extent), {}}, span());
    }
  }
}

Stmt RandomProgram::held_loop(const Buffer& to) {
  For loop{LoopKind::parallel, {}, to->shape, 0, nullptr};
  std::vector<Expr> at;
  for (size_t axis = 0; axis < to->rank(); ++axis) {
    loop.vars.push_back(make_var(kHeld, kInt32));
    at.push_back(var_ref(loop.vars.back(), span()));
  }
  Expr value = expr(to->type, 2);
  if (loads_fragments(value)) value = leaf(to->type);
  if (one_in(2) && !to->type.is_bool()) value = binary(BinaryOp::max, load(to, at), value, span());
  Stmt body = make_stmt(Store{to, at, value}, span());
  const Expr condition = bool_expr(1);
  if (one_in(4) && !loads_fragments(condition)) body = make_stmt(If{condition, body, nullptr}, span());
  loop.body = make_stmt(Block{{body}}, span());
  return make_stmt(std::move(loop), span());
}

// Where a region of a global buffer begins along an axis: before the buffer, or at what memory says.
Expr RandomProgram::start(int64_t size) {
  if (one_in(3)) return int_imm(-1 - pick(6), kInt32, span());
  if (one_in(2)) {
    const Expr inside = index(size, 1);
    return binary(BinaryOp::sub, inside, int_imm(pick(6), inside->type), span());
  }
  const Expr from = load(where_, {index(*constant_int(where_->shape[0]), 1)}, span());
  return one_in(2) ? binary(BinaryOp::floor_mod, from, int_imm(size), span())
                   : binary(BinaryOp::sub, binary(BinaryOp::bit_and, from, int_imm(15)), int_imm(4), span());
}

// Up to three axes for so many elements.
std::vector<Expr> RandomProgram::shape_of(int64_t count) {
  std::vector<Expr> result;
  for (int axis = pick(3); axis > 0; --axis) {
    int64_t extent = 1 + pick(4);
    while (count % extent != 0) --extent;
    result.push_back(int_imm(extent));
    count /= extent;
  }
  result.push_back(int_imm(count));
  return result;
}

}  // namespace tilepilot::ir::testing
