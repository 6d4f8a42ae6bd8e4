#include "compiler/passes/pack_nibbles.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/ir/effects.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/threads/thread_differences.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

Expr half_of(const Expr& e) {
  if (const auto constant = constant_int(e)) return int_imm(*constant / 2, e->type, e->span);
  return binary(BinaryOp::floor_div, e, int_imm(2, e->type), e->span);
}

// The same memory by bytes.
Buffer view_by_bytes(const Buffer& buffer) {
  auto result = std::make_shared<BufferData>(*buffer);
  result->name += "_bytes";
  result->type = kUInt8;
  result->base = buffer->base ? buffer->base : buffer;
  result->shape.back() = half_of(buffer->shape.back());
  for (size_t axis = 0; axis + 1 < buffer->strides.size(); ++axis)
    result->strides[axis] = half_of(buffer->strides[axis]);
  return result;
}

bool is_even(const Expr& e) {
  if (const auto constant = constant_int(e)) return *constant % 2 == 0;
  const auto* n = as<Binary>(e);
  if (!n) return false;
  if (n->op == BinaryOp::mul) return is_even(n->left) || is_even(n->right);
  return (n->op == BinaryOp::add || n->op == BinaryOp::sub) && is_even(n->left) && is_even(n->right);
}

// A loop over the places of a region.
struct Places {
  std::vector<Var> vars;
  std::vector<Expr> extents;

  // `always`: a loop even over one place.
  Places(const Region& region, bool always) {
    for (size_t axis = 0; axis < region.extent.size(); ++axis) {
      if (region.extent[axis] == 1) continue;
      vars.push_back(make_var("i" + std::to_string(vars.size()), kInt32));
      extents.push_back(int_imm(region.extent[axis]));
    }
    if (!always || !vars.empty()) return;
    vars.push_back(make_var("once", kInt32));
    extents.push_back(int_imm(1));
  }

  // The indices in a region with the same extents above 1.
  std::vector<Expr> in(const Region& region) const {
    std::vector<Expr> result = region.start;
    size_t next = 0;
    for (size_t axis = 0; axis < result.size(); ++axis) {
      if (region.extent[axis] == 1) continue;
      const Expr step = cast(var_ref(vars[next++]), result[axis]->type);
      result[axis] = constant_int(result[axis]) == 0 ? step : binary(BinaryOp::add, result[axis], step);
    }
    return result;
  }

  Stmt loop(Stmt body) const {
    return vars.empty() ? body : make_stmt(For{LoopKind::parallel, vars, extents, 0, body}, body->span);
  }
};

Stmt zeros(const Buffer& bytes, Span span) {
  Region all{bytes, std::vector<Expr>(bytes->rank(), int_imm(0, kInt32, span)), {}, span};
  for (const Expr& extent : bytes->shape) all.extent.push_back(*constant_int(extent));
  return make_stmt(Fill{std::move(all), int_imm(0, kUInt8, span)}, span);
}

// What roles share is done by one of them, between barriers.
Stmt after(std::vector<Stmt> first, const Stmt& body) {
  const auto* block = as<Block>(body);
  const auto* roles = block && block->body.size() == 1 ? as<Concurrent>(block->body[0]) : nullptr;
  if (!roles) {
    first.push_back(body);
    return make_stmt(Block{std::move(first)}, body->span);
  }
  Concurrent fresh;
  for (const Concurrent::Role& role : roles->roles) {
    first.push_back(make_stmt(Sync{}, body->span));
    first.push_back(role.body);
    fresh.roles.push_back({role.threads, make_stmt(Block{std::exchange(first, {})}, body->span)});
  }
  return make_stmt(Block{{make_stmt(std::move(fresh), body->span)}}, body->span);
}

class KernelPacker : public Rewriter {
 public:
  using Rewriter::rewrite;
  explicit KernelPacker(bool side_by_side) : side_by_side_(side_by_side) {}

  Kernel rewrite(const Kernel& kernel) override {
    sharing_ = sharing_buffers(kernel);
    bytes_.clear();
    added_.clear();
    if (side_by_side_) find_written(kernel.body);
    Kernel result = rewrite_children(kernel);
    result.allocations.insert(result.allocations.end(), added_.begin(), added_.end());
    // Writing an element reads the byte that it shares, the first time too.
    std::vector<Stmt> first;
    for (const Buffer& bytes : added_)
      if (bytes->base && bytes->scope != Scope::global) first.push_back(zeros(bytes, kernel.span));
    if (!first.empty()) result.body = after(std::move(first), result.body);
    return result;
  }

  Expr rewrite(const Expr& e) override {
    const auto* n = as<Load>(e);
    if (!n || !is_packed(n->buffer)) return rewrite_children(e);
    const Element at(rewrite_all(n->indices), e->span);
    const Expr byte = written_.count(memory_of(n->buffer)) > 0 && !in_control_
                          ? whole_byte(by_bytes(n->buffer), at.byte, e->span, before_)
                          : load(by_bytes(n->buffer), at.byte, e->span);
    const Expr bits = cast(binary(BinaryOp::shr, byte, at.shift, e->span), kUInt4, e->span);
    return e->type == kUInt4 ? bits : reinterpret(bits, e->type, e->span);
  }

  Stmt rewrite(const Stmt& s) override {
    if (const auto* n = as<Store>(s); n && is_packed(n->buffer)) return store(*n, s->span);
    if (side_by_side_ && (as<Block>(s) || as<For>(s) || as<While>(s) || as<If>(s) || as<Roles>(s))) return around(s);
    if (const auto* n = as<For>(s); n && writes_nibbles(n->body)) return in_order(*n, s);
    if (const auto* n = as<Copy>(s)) return copy(*n, s);
    if (const auto* n = as<Fill>(s); n && is_packed(n->destination.buffer)) {
      const Places places(n->destination, side_by_side_);
      const Store one{n->destination.buffer, places.in(n->destination), n->value};
      return rewrite(places.loop(make_stmt(one, s->span)));
    }
    return is_tile_operator(*s) ? apart(s) : rewrite_children(s);
  }

 private:
  std::unordered_set<const BufferData*> sharing_;
  std::unordered_map<const BufferData*, Buffer> bytes_;
  std::vector<Buffer> added_;
  bool whole_bytes_ = false;  // what is written at hand
  // Of threads that run side by side: what they write, reads that stand before the statement at hand, and whether that
  // is a loop's condition, before which nothing can stand.
  const bool side_by_side_;
  std::unordered_set<const BufferData*> written_;
  std::vector<Stmt> before_;
  bool in_control_ = false;

  void find_written(const Stmt& body) {
    written_.clear();
    walk(
        body,
        [&](const Stmt& s) {
          const auto* n = as<Store>(s);
          if (n && is_packed(n->buffer)) written_.insert(memory_of(n->buffer));
          for (const Region* region : region_accesses(s).writes)
            if (is_packed(region->buffer)) written_.insert(memory_of(region->buffer));
        },
        [](const Expr&) {});
  }

  static Expr whole_byte(const Buffer& bytes, const std::vector<Expr>& at, Span span, std::vector<Stmt>& out) {
    const Var byte = make_var("byte", kUInt8);
    const Region place{bytes, at, std::vector<int64_t>(at.size(), 1), span};
    out.push_back(make_stmt(Atomic{AtomicOp::load, place, nullptr, MemoryOrder::relaxed, byte}, span));
    return var_ref(byte, span);
  }

  Stmt inside(const Stmt& body) {
    if (body == nullptr) return nullptr;
    std::vector<Stmt> outside = std::exchange(before_, {});
    Stmt result = rewrite(body);
    std::vector<Stmt> all = std::exchange(before_, std::move(outside));
    if (all.empty()) return result;
    all.push_back(std::move(result));
    return make_stmt(Block{std::move(all)}, body->span);
  }

  Expr control(const Expr& e) {
    const bool outer = std::exchange(in_control_, true);
    Expr result = rewrite(e);
    in_control_ = outer;
    return result;
  }

  // Statements that hold others: reads stay in the list of the statement that they belong to.
  Stmt around(const Stmt& s) {
    if (const auto* n = as<Block>(s)) {
      Block block;
      std::vector<Stmt> outside = std::exchange(before_, {});
      for (const Stmt& child : n->body) {
        Stmt one = rewrite(child);
        for (Stmt& read : std::exchange(before_, {})) block.body.push_back(std::move(read));
        if (one) block.body.push_back(std::move(one));
      }
      before_ = std::move(outside);
      return make_stmt(std::move(block), s->span);
    }
    if (const auto* n = as<For>(s)) {
      For loop = *n;
      for (Expr& extent : loop.extents) extent = control(extent);
      loop.body = inside(n->body);
      return make_stmt(std::move(loop), s->span);
    }
    if (const auto* n = as<While>(s)) {
      const Expr condition = control(n->condition);
      return make_stmt(While{condition, inside(n->body)}, s->span);
    }
    if (const auto* n = as<Roles>(s)) return make_stmt(Roles{n->groups, inside(n->body)}, s->span);
    const auto* n = as<If>(s);
    const Expr condition = rewrite(n->condition);
    const Stmt then = inside(n->then);
    return make_stmt(If{condition, then, inside(n->otherwise)}, s->span);
  }

  // Where an element lies.
  struct Element {
    std::vector<Expr> byte;
    Expr shift;
    Element(std::vector<Expr> indices, Span span) : byte(std::move(indices)) {
      const Expr last = byte.back(), two = int_imm(2, last->type);
      byte.back() = binary(BinaryOp::floor_div, last, two, span);
      const Expr is_upper = cast(binary(BinaryOp::floor_mod, last, two, span), kUInt8, span);
      shift = binary(BinaryOp::mul, is_upper, int_imm(4, kUInt8), span);
    }
  };

  bool is_packed(const Buffer& buffer) const {
    return buffer->type.is_nibble() && (buffer->scope == Scope::global || sharing_.count(buffer.get()) > 0);
  }

  const Buffer& by_bytes(const Buffer& buffer) {
    Buffer& view = bytes_[buffer.get()];
    if (!view) added_.push_back(view = view_by_bytes(buffer));
    return view;
  }

  // The element's bits take the place of its half of the byte. Of a global buffer's byte another block may be writing
  // the other half: to it this adds the difference, as a whole, which leaves that half alone.
  Stmt store(const Store& n, Span span) {
    const Buffer bytes = by_bytes(n.buffer);
    const Element at(rewrite_all(n.indices), span);
    Expr value = rewrite(n.value);
    if (value->type != kUInt4) value = reinterpret(value, kUInt4, span);
    if (side_by_side_) return store_whole(bytes, at, value, span);
    if (n.buffer->scope == Scope::global && !whole_bytes_) {
      const Expr old = binary(BinaryOp::bit_and, binary(BinaryOp::shr, load(bytes, at.byte, span), at.shift, span),
                              int_imm(0xf, kUInt8), span);
      const Expr difference = binary(BinaryOp::sub, cast(value, kUInt8, span), old, span);
      const Region byte{bytes, at.byte, std::vector<int64_t>(at.byte.size(), 1), span};
      return make_stmt(Atomic{AtomicOp::add, byte, binary(BinaryOp::shl, difference, at.shift, span)}, span);
    }
    const Expr mine = binary(BinaryOp::shl, cast(value, kUInt8, span), at.shift, span);
    const Expr mask = binary(BinaryOp::shr, int_imm(0xf0, kUInt8), at.shift, span);
    const Expr theirs = binary(BinaryOp::bit_and, load(bytes, at.byte, span), mask, span);
    return make_stmt(Store{bytes, at.byte, binary(BinaryOp::bit_or, theirs, mine, span)}, span);
  }

  // Nobody else changes this half meanwhile.
  static Stmt store_whole(const Buffer& bytes, const Element& at, const Expr& value, Span span) {
    Block block;
    const Expr byte = whole_byte(bytes, at.byte, span, block.body);
    const Expr old = binary(BinaryOp::bit_and, binary(BinaryOp::shr, byte, at.shift, span), int_imm(0xf, kUInt8), span);
    const Expr difference = binary(BinaryOp::sub, cast(value, kUInt8, span), old, span);
    const Region place{bytes, at.byte, std::vector<int64_t>(at.byte.size(), 1), span};
    block.body.push_back(
        make_stmt(Atomic{AtomicOp::add, place, binary(BinaryOp::shl, difference, at.shift, span)}, span));
    return make_stmt(std::move(block), span);
  }

  bool writes_nibbles(const Stmt& body) const {
    bool found = false;
    walk(
        body,
        [&](const Stmt& s) {
          const auto* n = as<Store>(s);
          found |= n && is_packed(n->buffer);
        },
        [](const Expr&) {});
    return found;
  }

  Stmt in_order(const For& loop, const Stmt& s) {
    if (loop.kind != LoopKind::parallel && loop.kind != LoopKind::vectorized) return rewrite_children(s);
    Stmt body = rewrite(loop.body);
    for (size_t k = loop.vars.size(); k-- > 0;)
      body = make_stmt(For{LoopKind::serial, {loop.vars[k]}, {rewrite(loop.extents[k])}, 0, body}, s->span);
    return body;
  }

  // Where threads run side by side, each would do for itself what stands outside a loop.
  Stmt element_copy(const Region& from, const Region& to, Span span) const {
    const Places places(to, side_by_side_);
    Expr value = cast(load(from.buffer, places.in(from), span), to.buffer->type, span);
    return places.loop(make_stmt(Store{to.buffer, places.in(to), std::move(value)}, span));
  }

  // Of whole bytes.
  static bool is_whole(const Region& region) { return region.extent.back() % 2 == 0 && is_even(region.start.back()); }
  Region bytes_of(const Region& region) {
    Region result = rewrite_region(region);
    result.buffer = by_bytes(region.buffer);
    result.start.back() = half_of(result.start.back());
    result.extent.back() /= 2;
    return result;
  }

  Stmt copy(const Copy& n, const Stmt& s) {
    const Buffer &from = n.source.buffer, &to = n.destination.buffer;
    if (!is_packed(from) && !is_packed(to)) return rewrite_children(s);
    const bool by_bytes = is_packed(from) && is_packed(to) && from->type == to->type;
    if (!by_bytes || !is_whole(n.source) || !is_whole(n.destination)) {
      const bool outer = std::exchange(whole_bytes_, is_whole(n.destination));
      const Stmt result = rewrite(element_copy(n.source, n.destination, s->span));
      whole_bytes_ = outer;
      return result;
    }
    return make_stmt(Copy{bytes_of(n.source), bytes_of(n.destination), {}}, s->span);
  }

  // A tile of the region's own whose elements have a byte each.
  Region unpacked(const Region& region) {
    Region result{nullptr, {}, region.extent, region.span};
    auto tile = std::make_shared<BufferData>();
    tile->name = region.buffer->name;
    tile->type = region.buffer->type;
    tile->scope = Scope::shared;
    tile->span = region.span;
    for (const int64_t extent : region.extent) {
      tile->shape.push_back(int_imm(extent));
      result.start.push_back(int_imm(0));
    }
    result.buffer = tile;
    added_.push_back(tile);
    return result;
  }

  // Gemms, reductions and scans work on tiles of their own.
  Stmt apart(const Stmt& s) {
    Block block;
    const auto operand = [&](const Region& region) {
      if (!is_packed(region.buffer)) return rewrite_region(region);
      Region tile = unpacked(region);
      block.body.push_back(rewrite(element_copy(region, tile, s->span)));
      return tile;
    };
    Stmt after;
    if (const auto* gemm = as<Gemm>(s)) {
      Gemm fresh = *gemm;
      fresh.a = operand(gemm->a);
      fresh.b = operand(gemm->b);
      fresh.c = rewrite_region(gemm->c);
      block.body.push_back(make_stmt(std::move(fresh), s->span));
    } else if (const auto* reduce = as<Reduce>(s)) {
      Reduce fresh = *reduce;
      fresh.source = operand(reduce->source);
      fresh.destination = rewrite_region(reduce->destination);
      block.body.push_back(make_stmt(std::move(fresh), s->span));
    } else if (const auto* scan = as<Scan>(s); scan && is_packed(scan->destination.buffer)) {
      Scan fresh = *scan;
      fresh.source = operand(scan->source);
      fresh.destination = unpacked(scan->destination);
      after = element_copy(fresh.destination, scan->destination, s->span);
      block.body.push_back(make_stmt(std::move(fresh), s->span));
    } else if (scan) {
      Scan fresh = *scan;
      fresh.source = operand(scan->source);
      fresh.destination = rewrite_region(scan->destination);
      block.body.push_back(make_stmt(std::move(fresh), s->span));
    }
    if (after) block.body.push_back(rewrite(after));
    return block.body.empty() ? rewrite_children(s) : make_stmt(std::move(block), s->span);
  }
};

// Programs without such elements stay as they are, to the node.
bool has_nibbles(const Program& program) {
  const auto is_nibble = [](const Buffer& buffer) { return buffer->type.is_nibble(); };
  const auto is_nibble_parameter = [&](const auto& parameter) {
    const auto* buffer = std::get_if<Buffer>(&parameter);
    return buffer && is_nibble(*buffer);
  };
  return std::any_of(program.parameters.begin(), program.parameters.end(), is_nibble_parameter) ||
         std::any_of(program.workspaces.begin(), program.workspaces.end(), is_nibble) ||
         std::any_of(program.kernels.begin(), program.kernels.end(), [&](const Kernel& kernel) {
           return std::any_of(kernel.allocations.begin(), kernel.allocations.end(), is_nibble);
         });
}

}  // namespace

Result<Program> pack_nibbles(const Program& program) {
  if (!has_nibbles(program)) return program;
  return KernelPacker(false).rewrite(program);
}

Result<Program> pack_nibbles_side_by_side(const Program& program) {
  if (!has_nibbles(program)) return program;
  return KernelPacker(true).rewrite(program);
}

}  // namespace tilepilot::passes
