#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/ir/verify/verify_rules.h"
#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

using Extents = std::vector<int64_t>;

std::string shown(const Extents& extents) { return fmt::format("[{}]", fmt::join(extents, ", ")); }

std::vector<const Region*> regions(const Stmt& s) {
  Accesses accesses = region_accesses(s);
  accesses.reads.insert(accesses.reads.end(), accesses.writes.begin(), accesses.writes.end());
  return std::move(accesses.reads);
}

std::string wrong_value(const Buffer& b, const Expr& value) {
  if (value->type == b->type) return {};
  return fmt::format("{} is written to `{}`, which holds {}", to_string(value->type), b->name, to_string(b->type));
}
std::string stored_type(const Stmt& s, const Surroundings&) {
  if (const auto* n = as<Store>(s)) return wrong_value(n->buffer, n->value);
  if (const auto* n = as<Fill>(s)) return wrong_value(n->destination.buffer, n->value);
  if (const auto* n = as<Atomic>(s); n && n->value) return wrong_value(n->element.buffer, n->value);
  if (const auto* n = as<AllReduce>(s)) {
    const std::string problem = wrong_value(n->result.buffer, n->value);
    return problem.empty() ? wrong_value(n->result.buffer, n->identity) : problem;
  }
  return {};
}

std::string let_type(const Stmt& s, const Surroundings&) {
  const auto* n = as<Let>(s);
  if (!n || n->var->type == n->value->type) return {};
  return fmt::format("`{}` is {}, its value {}", n->var->name, to_string(n->var->type), to_string(n->value->type));
}

std::string defined_once(const Stmt& s, const Surroundings& around) {
  std::vector<Var> fresh;
  if (const Var bound = bound_variable(*s)) fresh = {bound};
  if (const auto* n = as<For>(s)) fresh = n->vars;
  for (size_t k = 0; k < fresh.size(); ++k) {
    const bool twice = std::find(fresh.begin(), fresh.begin() + long(k), fresh[k]) != fresh.begin() + long(k);
    if (twice || around.vars.count(fresh[k].get()) > 0) {
      return fmt::format("variable `{}` is defined where it is in scope already", fresh[k]->name);
    }
  }
  return {};
}

// Regions -------------------------------------------------------------------------------------------------------------

std::string region_rank(const Stmt& s, const Surroundings&) {
  for (const Region* r : regions(s)) {
    if (r->extent.size() != r->buffer->rank() || r->start.size() != r->buffer->rank()) {
      return fmt::format("a region of `{}` has {} starts and {} extents for {} axes", r->buffer->name, r->start.size(),
                         r->extent.size(), r->buffer->rank());
    }
  }
  return {};
}

std::string region_extent(const Stmt& s, const Surroundings&) {
  for (const Region* r : regions(s)) {
    const bool positive = std::all_of(r->extent.begin(), r->extent.end(), [](int64_t n) { return n > 0; });
    if (!positive) return fmt::format("a region of `{}` has extents {}", r->buffer->name, shown(r->extent));
  }
  return {};
}

bool may_be_inside(const Region& r, size_t axis) {
  if (axis >= r.buffer->rank() || axis >= r.start.size()) return true;  // region_rank, index_count
  const auto size = constant_int(r.buffer->shape[axis]), start = constant_int(r.start[axis]);
  return !size || (r.extent[axis] <= *size && (!start || (*start >= 0 && *start <= *size - r.extent[axis])));
}

std::string region_inside(const Stmt& s, const Surroundings&) {
  for (const Region* r : regions(s)) {
    if (r->buffer->scope == Scope::global) continue;
    for (size_t axis = 0; axis < r->extent.size(); ++axis) {
      if (!may_be_inside(*r, axis)) {
        return fmt::format("a region of `{}` leaves its buffer along axis {}", r->buffer->name, axis);
      }
    }
  }
  return {};
}

// Tile operators ------------------------------------------------------------------------------------------------------

Extents without_ones(Extents extents) {
  std::erase(extents, 1);
  return extents;
}

std::string copy_extents(const Stmt& s, const Surroundings&) {
  const auto* n = as<Copy>(s);
  if (!n || without_ones(n->source.extent) == without_ones(n->destination.extent)) return {};
  return fmt::format("copy from extents {} to {}", shown(n->source.extent), shown(n->destination.extent));
}

struct Matrix {
  int64_t rows, columns;
};

std::optional<Matrix> matrix(const Region& r, bool transposed) {
  const size_t rank = r.extent.size();
  if (rank < 2) return std::nullopt;
  const bool leading_ones = std::all_of(r.extent.begin(), r.extent.end() - 2, [](int64_t n) { return n == 1; });
  if (!leading_ones) return std::nullopt;
  const int64_t rows = r.extent[rank - 2], columns = r.extent[rank - 1];
  return transposed ? Matrix{columns, rows} : Matrix{rows, columns};
}

std::string gemm_shapes(const Stmt& s, const Surroundings&) {
  const auto* n = as<Gemm>(s);
  if (!n) return {};
  const auto a = matrix(n->a, n->transpose_a), b = matrix(n->b, n->transpose_b), c = matrix(n->c, false);
  if (!a || !b || !c) return "an operand of gemm is no matrix";
  if (a->columns == b->rows && a->rows == c->rows && b->columns == c->columns) return {};
  return fmt::format("gemm of [{}, {}] and [{}, {}] into [{}, {}]", a->rows, a->columns, b->rows, b->columns, c->rows,
                     c->columns);
}

std::string gemm_types(const Stmt& s, const Surroundings&) {
  const auto* n = as<Gemm>(s);
  if (!n) return {};
  const DType a = n->a.buffer->type, b = n->b.buffer->type, c = n->c.buffer->type;
  if (a == b && !a.is_bool() && a.is_float() == c.is_float() && !c.is_bool()) return {};
  return fmt::format("gemm of {} and {} into {}", to_string(a), to_string(b), to_string(c));
}

std::string gemm_scopes(const Stmt& s, const Surroundings&) {
  const auto* n = as<Gemm>(s);
  if (!n) return {};
  for (const Region* r : {&n->a, &n->b, &n->c}) {
    if (r->buffer->scope == Scope::global) return fmt::format("`{}` of a gemm is global", r->buffer->name);
  }
  return {};
}

std::string reduce_axis(const Stmt& s, const Surroundings&) {
  const auto* n = as<Reduce>(s);
  if (!n || (n->axis >= 0 && n->axis < int(n->source.extent.size()))) return {};
  return fmt::format("a reduction over axis {} of {}", n->axis, n->source.extent.size());
}

std::string reduce_shapes(const Stmt& s, const Surroundings& around) {
  const auto* n = as<Reduce>(s);
  if (!n || !reduce_axis(s, around).empty()) return {};
  Extents kept = n->source.extent, dropped = n->source.extent;
  kept[size_t(n->axis)] = 1;
  dropped.erase(dropped.begin() + n->axis);
  if (n->destination.extent == kept || n->destination.extent == dropped) return {};
  // A tile of no axes is not allocated: a full reduction leaves one element.
  return fmt::format("a reduction of extents {} over axis {} into {}", shown(n->source.extent), n->axis,
                     shown(n->destination.extent));
}

std::string reduce_types(const Stmt& s, const Surroundings&) {
  const auto* n = as<Reduce>(s);
  if (!n) return {};
  const DType from = n->source.buffer->type, to = n->destination.buffer->type;
  const bool of_bits = n->op == ReduceOp::bit_and || n->op == ReduceOp::bit_or || n->op == ReduceOp::bit_xor;
  const bool alike = !from.is_bool() && from.is_float() == to.is_float() && !to.is_bool();
  if (alike && !(of_bits && from.is_float())) return {};
  return fmt::format("a reduction of {} into {}", to_string(from), to_string(to));
}

std::string scan_shapes(const Stmt& s, const Surroundings&) {
  const auto* n = as<Scan>(s);
  if (!n) return {};
  const bool axis = n->axis >= 0 && n->axis < int(n->source.extent.size());
  if (axis && n->source.extent == n->destination.extent) return {};
  return fmt::format("a scan of extents {} over axis {} into {}", shown(n->source.extent), n->axis,
                     shown(n->destination.extent));
}

std::string scan_types(const Stmt& s, const Surroundings&) {
  const auto* n = as<Scan>(s);
  if (!n) return {};
  const DType from = n->source.buffer->type, to = n->destination.buffer->type;
  const bool tiles = n->source.buffer->scope != Scope::global && n->destination.buffer->scope != Scope::global;
  if (from == to && !from.is_bool() && tiles) return {};
  return fmt::format("a scan of {} `{}` into {} `{}`", to_string(from), n->source.buffer->name, to_string(to),
                     n->destination.buffer->name);
}

std::string copy_block(const Stmt& s, const Surroundings&) {
  const auto* n = as<Copy>(s);
  if (!n || !n->peer) return {};
  const auto in_shared = [](const Region& region) { return region.buffer->scope == Scope::shared; };
  const bool waits_here = n->mode != CopyMode::complete && n->mode != CopyMode::bulk_load;
  if (n->multicast != 0 || waits_here || !in_shared(n->source) || !in_shared(n->destination))
    return "a copy into another block's memory is none from tile to tile";
  return n->peer->type.is_int() ? "" : "the number of a block is no integer";
}

// Hardware barriers are named by what works on them, and by nothing else.
std::string barrier_place(const Stmt& s, const Surroundings&) {
  const auto* copy = as<Copy>(s);
  const auto* barrier = as<Barrier>(s);
  const Region* named = barrier ? &barrier->barrier : copy && copy->barrier ? &*copy->barrier : nullptr;
  if (copy && (copy->mode == CopyMode::bulk_load) != copy->barrier.has_value())
    return "a bulk load has a barrier, other copies have none";
  if (copy && copy->in_line && copy->mode != CopyMode::bulk_load && copy->mode != CopyMode::bulk_store)
    return "a copy of consecutive bytes is no TMA copy";
  if (barrier && barrier->peer && barrier->op != BarrierOp::arrive) return "another block's barrier is waited for";
  if (named && named->buffer->scope != Scope::barrier) return fmt::format("`{}` is no barrier", named->buffer->name);
  for (const Region* r : regions(s)) {
    if (r->buffer->scope == Scope::barrier && (!named || r->buffer != named->buffer))
      return fmt::format("the barrier `{}` is read or written", r->buffer->name);
  }
  const auto* store = as<Store>(s);
  return store && store->buffer->scope == Scope::barrier ? "a barrier is written" : "";
}

std::string barrier_operand(const Stmt& s, const Surroundings&) {
  const auto* n = as<Barrier>(s);
  if (!n || !n->operand || n->operand->type.is_int()) return {};
  return fmt::format("`{}` of a barrier takes an integer, not {}", "operand", to_string(n->operand->type));
}

std::string async_count(const Stmt& s, const Surroundings&) {
  const auto* n = as<Async>(s);
  if (!n) return {};
  if (n->op == AsyncOp::raise_registers || n->op == AsyncOp::lower_registers)
    return n->count >= 24 && n->count <= 256 && n->count % 8 == 0 ? "" : fmt::format("{} registers", n->count);
  if (n->count == 0) return {};
  const bool counts = n->op == AsyncOp::wait_copies || n->op == AsyncOp::wait_stores || n->op == AsyncOp::wait_gemms;
  return counts && n->count > 0 ? "" : fmt::format("a count of {}", n->count);
}

std::string role_groups(const Stmt& s, const Surroundings& around) {
  const auto* n = as<Roles>(s);
  if (!n) return {};
  const bool ordered = std::is_sorted(n->groups.begin(), n->groups.end(), std::less_equal<>());
  if (n->groups.empty() || !ordered || n->groups.front() < 0) return "warpgroups are not counted up";
  return around.loops.empty() ||
                 (around.loops.back() != LoopKind::parallel && around.loops.back() != LoopKind::vectorized)
             ? ""
             : "warpgroups inside a parallel loop";
}

bool is_element(const Region& r) {
  return std::all_of(r.extent.begin(), r.extent.end(), [](int64_t n) { return n == 1; });
}

std::string element_regions(const Stmt& s, const Surroundings&) {
  const auto* atomic = as<Atomic>(s);
  const auto* all_reduce = as<AllReduce>(s);
  const auto* barrier = as<Barrier>(s);
  const auto* copy = as<Copy>(s);
  const Region* r = atomic                  ? &atomic->element
                    : all_reduce            ? &all_reduce->result
                    : barrier               ? &barrier->barrier
                    : copy && copy->barrier ? &*copy->barrier
                                            : nullptr;
  if (!r || is_element(*r)) return {};
  return fmt::format("one element of `{}` is meant, not extents {}", r->buffer->name, shown(r->extent));
}

std::string atomic_types(const Stmt& s, const Surroundings&) {
  const auto* n = as<Atomic>(s);
  if (!n) return {};
  const DType type = n->element.buffer->type;
  if (n->previous && n->previous->type != type)
    return fmt::format("the old value of `{}` is {}", n->element.buffer->name, to_string(n->previous->type));
  if (n->op == AtomicOp::bit_or && !type.is_int() && !type.is_bool())
    return fmt::format("bits of {} combined", to_string(type));
  return {};
}

// Elements of less than a byte are kept, not computed in place.
std::string whole_bytes(const Stmt& s, const Surroundings&) {
  const Accesses accesses = region_accesses(s);
  const bool only_moves = as<Copy>(s) || as<Fill>(s) || as<Scan>(s);
  if (const auto* n = as<Atomic>(s); n && n->element.buffer->type.is_nibble())
    return fmt::format("an atomic on an element of {}", to_string(n->element.buffer->type));
  for (const Region* r : accesses.writes) {
    if (!only_moves && r->buffer->type.is_nibble())
      return fmt::format("`{}` collects results in elements of {}", r->buffer->name, to_string(r->buffer->type));
  }
  return {};
}

std::string all_reduce_axes(const Stmt& s, const Surroundings&) {
  const auto* n = as<AllReduce>(s);
  if (!n) return {};
  const bool valid = n->lanes > 0 ? n->axes.empty() && n->lanes <= 32
                                  : std::is_sorted(n->axes.begin(), n->axes.end(), std::less_equal<>()) &&
                                        !n->axes.empty() && n->axes.front() >= 0 && n->axes.back() < 3;
  if (valid && n->condition->type.is_bool()) return {};
  return fmt::format("an all-reduce over axes {}, where a {} holds", fmt::join(n->axes, ", "),
                     to_string(n->condition->type));
}

std::string shuffle_types(const Stmt& s, const Surroundings&) {
  const auto* n = as<Shuffle>(s);
  if (!n) return {};
  if (n->width < 1 || n->width > 32 || (n->width & (n->width - 1)) != 0)
    return fmt::format("a shuffle over {} lanes", n->width);
  if (n->value->type == n->result->type && n->lane->type.is_int()) return {};
  return fmt::format("a shuffle of {} by {} gives {}", to_string(n->value->type), to_string(n->lane->type),
                     to_string(n->result->type));
}

// Of a region along its last axis; 0 if it has more.
int64_t elements(const Region& region) {
  const bool is_line = std::all_of(region.extent.begin(), region.extent.end() - 1, [](int64_t n) { return n == 1; });
  return is_line ? region.extent.back() : 0;
}

std::string matrix_loads(const Stmt& s, const Surroundings&) {
  const auto* n = as<LoadMatrix>(s);
  if (!n) return {};
  const BufferData &from = *n->row.buffer, &to = *n->registers.buffer;
  const bool count = n->count == 1 || n->count == 2 || n->count == 4;
  const bool sizes = elements(n->row) * from.type.bits == 128 && elements(n->registers) * to.type.bits == 32 * n->count;
  const bool types = from.type == to.type && from.type.bits >= 8 && (!n->transposed || from.type.bits == 16);
  if (count && sizes && types && from.scope == Scope::shared) return {};
  return fmt::format("{} matrices, of {} elements of {} a row, into {} elements of {}", n->count, elements(n->row),
                     to_string(from.type), elements(n->registers), to_string(to.type));
}

std::string mma_operands(const Stmt& s, const Surroundings&) {
  const auto* n = as<Mma>(s);
  if (!n) return {};
  const DType a = n->a.buffer->type, b = n->b.buffer->type, c = n->c.buffer->type;
  const int64_t k = 2 * elements(n->a), row_bits = k * a.bits;
  const bool sizes = (row_bits == 256 || row_bits == 128) && 4 * elements(n->b) == k && elements(n->c) == 4;
  const bool types = a.bits == b.bits && a.bits >= 8 && a.bits <= 32 && a.is_float() == b.is_float() &&
                     a.is_float() == c.is_float() && c.bits <= 32;
  if (sizes && types) return {};
  return fmt::format("an mma of {} elements of {} and {} of {} into {} of {}", elements(n->a), to_string(a),
                     elements(n->b), to_string(b), elements(n->c), to_string(c));
}

std::string condition_checked(const Stmt& s, const Surroundings&) {
  const auto* n = as<Check>(s);
  return !n || n->condition->type.is_bool() ? "" : fmt::format("a check of {}", to_string(n->condition->type));
}

std::string concurrent_roles(const Stmt& s, const Surroundings& around) {
  const auto* n = as<Concurrent>(s);
  if (!n) return {};
  const bool threads =
      std::all_of(n->roles.begin(), n->roles.end(), [](const Concurrent::Role& role) { return role.threads > 0; });
  return n->roles.empty() || !threads || !around.loops.empty() ? "roles without threads, or inside a loop" : "";
}

// Loops ---------------------------------------------------------------------------------------------------------------

std::string loop_vars(const Stmt& s, const Surroundings&) {
  const auto* n = as<For>(s);
  if (!n) return {};
  if (n->vars.empty() || n->vars.size() != n->extents.size()) {
    return fmt::format("a loop has {} variables and {} extents", n->vars.size(), n->extents.size());
  }
  if (n->vars.size() == 1 || n->kind == LoopKind::parallel) return {};
  return fmt::format("a loop that is not parallel has {} variables", n->vars.size());
}

std::string loop_extent(const Stmt& s, const Surroundings&) {
  const auto* n = as<For>(s);
  for (size_t k = 0; n && k < std::min(n->vars.size(), n->extents.size()); ++k) {
    const DType extent = n->extents[k]->type, var = n->vars[k]->type;
    if (!extent.is_int() || extent != var) {
      return fmt::format("loop variable `{}` is {}, its extent {}", n->vars[k]->name, to_string(var),
                         to_string(extent));
    }
  }
  return {};
}

std::string stages(const Stmt& s, const Surroundings&) {
  const auto* n = as<For>(s);
  if (!n || n->num_stages == 0 || (n->kind == LoopKind::pipelined && n->num_stages > 0)) return {};
  return fmt::format("a loop has {} stages", n->num_stages);
}

std::string jump(const Stmt& s, const Surroundings& around) {
  if (!as<Break>(s) && !as<Continue>(s)) return {};
  if (!around.loops.empty() && around.loops.back() == LoopKind::serial) return {};
  return "`break` or `continue` outside a serial loop";
}

std::string tile_operator_place(const Stmt& s, const Surroundings& around) {
  const bool shared_out = std::any_of(around.loops.begin(), around.loops.end(), [](LoopKind kind) {
    return kind == LoopKind::parallel || kind == LoopKind::vectorized;
  });
  if (!shared_out) return {};
  if (is_tile_operator(*s)) return "a tile operator inside a parallel loop";
  const auto* barrier = as<Barrier>(s);
  const bool waits = barrier && barrier->op == BarrierOp::wait;
  return waits || needs_all_threads(*s) ? "a barrier inside a parallel loop" : "";
}

}  // namespace

const std::vector<Rule>& rules_of_statements() {
  static const std::vector<Rule> rules{
      {"stored_type", "a value written has the type of its buffer", nullptr, stored_type},
      {"let_type", "a let has the type of its value", nullptr, let_type},
      {"defined_once", "no variable is defined where it is in scope", nullptr, defined_once},
      {"region_rank", "a region has a start and an extent for each axis", nullptr, region_rank},
      {"region_extent", "extents of regions are positive", nullptr, region_extent},
      {"region_inside", "a region of a tile lies inside, as far as constants say", nullptr, region_inside},
      {"copy_extents", "both sides of a copy have the same extents other than 1, in order", nullptr, copy_extents},
      {"copy_block", "a copy into another block's memory goes from tile to tile", nullptr, copy_block},
      {"gemm_shapes", "a gemm is [M, K] times [K, N] into [M, N], leading extents 1", nullptr, gemm_shapes},
      {"gemm_types", "a gemm multiplies one type and keeps floats floats", nullptr, gemm_types},
      {"gemm_scopes", "a gemm works on tiles", nullptr, gemm_scopes},
      {"reduce_axis", "a reduction is over an axis of its source", nullptr, reduce_axis},
      {"reduce_shapes", "a reduction's result lacks the axis, or has extent 1 there", nullptr, reduce_shapes},
      {"reduce_types", "a reduction keeps numbers numbers of their kind", nullptr, reduce_types},
      {"scan_shapes", "a scan is over an axis of its source, its result as large", nullptr, scan_shapes},
      {"scan_types", "a scan works on tiles of one type of numbers", nullptr, scan_types},
      {"element_regions", "atomics, all-reduces and barrier operations name one element", nullptr, element_regions},
      {"barrier_place", "barriers are named by bulk loads and barrier operations alone", nullptr, barrier_place},
      {"barrier_operand", "parities and numbers of bytes are integers", nullptr, barrier_operand},
      {"async_count", "waits have a count of 0 or more, other asynchronous operations none", nullptr, async_count},
      {"role_groups", "roles name warpgroups in order, outside parallel loops", nullptr, role_groups},
      {"atomic_types", "an atomic's old value has its element's type; bits are those of integers", nullptr,
       atomic_types},
      {"whole_bytes", "gemms, reductions, atomics and foreign functions write elements of a byte at least", nullptr,
       whole_bytes},
      {"all_reduce_axes", "an all-reduce is over axes of the block, each once, or lanes, where a bool holds", nullptr,
       all_reduce_axes},
      {"shuffle_types", "a shuffle gives its value's type; its width is a power of two up to 32", nullptr,
       shuffle_types},
      {"matrix_loads", "a matrix load takes rows of 16 bytes of shared memory, four bytes a matrix for each thread",
       nullptr, matrix_loads},
      {"mma_operands", "an mma multiplies numbers of one size, rows of 16 or 32 bytes, into four sums a thread",
       nullptr, mma_operands},
      {"condition_checked", "what is checked is a bool", nullptr, condition_checked},
      {"concurrent_roles", "concurrent roles have threads, and stand outside loops", nullptr, concurrent_roles},
      {"loop_vars", "a loop has one variable an extent, and more than one only if parallel", nullptr, loop_vars},
      {"loop_extent", "a loop's extent is an integer of its variable's type", nullptr, loop_extent},
      {"stages", "only pipelined loops have stages", nullptr, stages},
      {"jump", "`break` and `continue` stand in a serial or while loop", nullptr, jump},
      {"tile_operator_place", "no tile operator or barrier stands in a parallel or vectorized loop", nullptr,
       tile_operator_place},
  };
  return rules;
}

}  // namespace tilepilot::ir
