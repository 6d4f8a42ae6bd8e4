#include <fmt/format.h>
#include <bit>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/ir/one_symbol.h"
#include "compiler/ir/verify/verify_rules.h"
#include "compiler/ir/visit.h"

namespace tilepilot::ir {
namespace {

constexpr int64_t kMostThreads = 1024;

std::string threads(const Kernel& k, const Surroundings&) {
  const bool positive =
      std::all_of(k.threads.begin(), k.threads.end(), [](int64_t n) { return n > 0 && n <= kMostThreads; });
  const bool count = !k.threads.empty() && k.threads.size() <= 3;
  if (count && positive) {
    const int64_t all = std::accumulate(k.threads.begin(), k.threads.end(), int64_t{1}, std::multiplies<>());
    if (all <= kMostThreads) return {};
  }
  return fmt::format("a kernel has [{}] threads", fmt::join(k.threads, ", "));
}

std::string block_order(const Kernel& k, const Surroundings&) {
  return k.order.panel >= 0 ? "" : fmt::format("panels of {} blocks", k.order.panel);
}

std::string layouts(const Kernel& k, const Surroundings&) {
  std::unordered_set<const BufferData*> asked;
  for (const RequestedLayout& request : k.layouts) {
    const Buffer& b = request.buffer;
    bool known = true;
    for (const Expr& e : {request.thread, request.position}) {
      if (!e) continue;
      walk(e, [&](const Expr& part) {
        const auto* ref = std::get_if<VarRef>(&part->node);
        known &= !std::holds_alternative<Load>(part->node) && part->type.is_int();
        known &= !ref || std::find(request.vars.begin(), request.vars.end(), ref->var) != request.vars.end();
      });
    }
    const bool complete = (request.thread || request.position) && request.replicas > 0 &&
                          request.replicas <= kMostThreads && request.rank() <= b->rank();
    if (!asked.insert(b.get()).second || !known || !complete)
      return fmt::format("the layout that is asked for `{}` is none of its elements", b->name);
  }
  return {};
}

std::string cluster(const Kernel& k, const Surroundings&) {
  const bool positive = std::all_of(k.cluster.begin(), k.cluster.end(), [](int64_t n) { return n > 0; });
  if (k.cluster.empty() || (positive && k.cluster.size() == k.grid.size())) return {};
  return fmt::format("clusters of [{}] blocks in a grid of {} axes", fmt::join(k.cluster, ", "), k.grid.size());
}

std::string thread_vars(const Kernel& k, const Surroundings&) {
  const bool integers =
      std::all_of(k.thread_vars.begin(), k.thread_vars.end(), [](const Var& v) { return v->type.is_int(); });
  if (k.thread_vars.empty() || (integers && k.thread_vars.size() == k.threads.size())) return {};
  return fmt::format("a kernel has {} thread variables and {} thread extents", k.thread_vars.size(), k.threads.size());
}

std::string grid(const Kernel& k, const Surroundings&) {
  if (k.grid.empty() || k.grid.size() > 3 || k.grid.size() != k.block_vars.size()) {
    return fmt::format("a kernel has {} block variables and {} grid extents", k.block_vars.size(), k.grid.size());
  }
  for (size_t i = 0; i < k.grid.size(); ++i) {
    if (!k.grid[i]->type.is_int() || !k.block_vars[i]->type.is_int()) {
      return fmt::format("grid axis {} of a kernel is no integer", i);
    }
  }
  return {};
}

std::string body(const Kernel& k, const Surroundings&) {
  return std::holds_alternative<Block>(k.body->node) ? std::string() : "a kernel's body is not a block";
}

std::string all_reduce_threads(const Kernel& k, const Surroundings&) {
  std::string problem;
  walk(
      k.body,
      [&](const Stmt& s) {
        const auto* n = as<AllReduce>(s);
        if (!n) return;
        const int last = n->axes.empty() ? 0 : n->axes.back();
        if (last >= int(k.thread_vars.size())) problem = fmt::format("an all-reduce over axis {} of the threads", last);
      },
      [](const Expr&) {});
  return problem;
}

std::optional<int64_t> bits(const Buffer& b) {
  int64_t count = b->type.bits;
  for (const Expr& extent : b->shape) {
    const auto size = constant_int(extent);
    if (!size) return std::nullopt;
    count *= *size;
  }
  return count;
}

std::string views(const Kernel& k, const Surroundings& around) {
  std::unordered_set<const BufferData*> known = around.buffers;
  for (const Buffer& b : k.allocations) {
    if (b->base) {
      if (known.count(b->base.get()) == 0) return fmt::format("`{}` is a view of no buffer before it", b->name);
      if (b->base->base) return fmt::format("`{}` is a view of a view", b->name);
      const auto own = bits(b), of_base = bits(b->base);
      if (b->scope != b->base->scope || (own && of_base && own != of_base))
        return fmt::format("`{}` does not fit the memory that it views", b->name);
    }
    known.insert(b.get());
  }
  return {};
}

std::string addresses(const Kernel& k, const Surroundings&) {
  std::unordered_set<const BufferData*> known;
  for (const Buffer& b : k.allocations) {
    known.insert(b.get());
    if (b->base && b->base->address) return fmt::format("`{}` is a view of memory by its address", b->name);
    if (!b->address) continue;
    const Buffer& at = b->address;
    const bool holds_one = at->type == kInt64 && at->rank() == 1 && constant_int(at->shape[0]) == 1;
    if (!holds_one || at->scope != Scope::local || known.count(at.get()) == 0)
      return fmt::format("`{}` holds no address before `{}`", at->name, b->name);
    if (b->scope != Scope::global || b->type.is_nibble() || b->base)
      return fmt::format("`{}` is no global memory by its address", b->name);
  }
  return {};
}

bool is_odd(const Expr& e) {
  const auto value = constant_int(e);
  return value && *value % 2 != 0;
}

std::string nibble_rows(const Buffer& b) {
  if (!b->type.is_nibble() || b->shape.empty()) return {};
  bool apart = b->strides.empty() || constant_int(b->strides.back()) == 1;
  for (size_t axis = 0; axis + 1 < b->strides.size(); ++axis) apart &= !is_odd(b->strides[axis]);
  if (apart && !is_odd(b->shape.back())) return {};
  return fmt::format("rows of `{}` do not begin at whole bytes", b->name);
}

// Of what is seen by others.
std::string nibbles(const Kernel& k, const Surroundings&) {
  const auto sharing = sharing_buffers(k);
  for (const Buffer& b : k.allocations) {
    if (sharing.count(b.get()) == 0) continue;
    if (std::string problem = nibble_rows(b); !problem.empty()) return problem;
  }
  return {};
}

std::string arrivals(const Kernel& k, const Surroundings&) {
  for (const Buffer& b : k.allocations) {
    const bool is_barrier = b->scope == Scope::barrier;
    const bool counted = b->rank() == 1 && constant_int(b->shape[0]) == int64_t(b->arrivals.size()) &&
                         std::all_of(b->arrivals.begin(), b->arrivals.end(), [](int64_t n) { return n > 0; });
    if (is_barrier ? b->type != kUInt64 || !counted : !b->arrivals.empty())
      return fmt::format("`{}` has {} arrival counts", b->name, b->arrivals.size());
  }
  return {};
}

std::string allocation(const Kernel& k, const Surroundings&) {
  for (const Buffer& b : k.allocations) {
    if (b->scope == Scope::global && (b->base || b->address)) continue;
    if (b->scope == Scope::global) return fmt::format("allocation `{}` is global", b->name);
    if (!b->strides.empty()) return fmt::format("allocation `{}` has strides", b->name);
    for (const Expr& extent : b->shape) {
      const auto size = constant_int(extent);
      if (!size || *size <= 0)
        return fmt::format("allocation `{}` has an extent that is no positive constant", b->name);
    }
  }
  return {};
}

std::string allocated_once(const Program& p, const Surroundings&) {
  std::unordered_set<const BufferData*> seen;
  for (const Kernel& k : p.kernels) {
    for (const Buffer& b : k.allocations) {
      if (!seen.insert(b.get()).second) return fmt::format("buffer `{}` is allocated twice", b->name);
    }
  }
  return {};
}

std::vector<Buffer> buffer_parameters(const Program& p) {
  std::vector<Buffer> result;
  for (const auto& parameter : p.parameters) {
    if (const auto* b = std::get_if<Buffer>(&parameter)) result.push_back(*b);
  }
  return result;
}

std::vector<Buffer> global_buffers(const Program& p) {
  std::vector<Buffer> result = buffer_parameters(p);
  result.insert(result.end(), p.workspaces.begin(), p.workspaces.end());
  return result;
}

std::string parameters(const Program& p, const Surroundings&) {
  std::unordered_set<const void*> seen;
  for (const Var& symbol : p.symbols) seen.insert(symbol.get());
  for (const auto& parameter : p.parameters) {
    const void* identity = std::visit([](const auto& x) -> const void* { return x.get(); }, parameter);
    if (!seen.insert(identity).second) return "a parameter or symbol stands twice";
  }
  for (const Buffer& b : p.workspaces) {
    if (!seen.insert(b.get()).second) return fmt::format("workspace `{}` stands twice", b->name);
    if (!b->strides.empty()) return fmt::format("workspace `{}` has strides", b->name);
  }
  for (const Buffer& b : global_buffers(p)) {
    if (b->scope != Scope::global || b->base) return fmt::format("parameter `{}` is not global memory", b->name);
    if (b->alignment < b->type.bytes() || !std::has_single_bit(static_cast<uint64_t>(b->alignment)))
      return fmt::format("parameter `{}` is aligned to {} bytes", b->name, b->alignment);
    if (b->row_alignment < 1 || !std::has_single_bit(static_cast<uint64_t>(b->row_alignment)))
      return fmt::format("rows of parameter `{}` are aligned to {} bytes", b->name, b->row_alignment);
  }
  return {};
}

// Extents and strides are integers made of constants and symbols.
std::string parameter_shape(const Program& p, const Surroundings&) {
  for (const Buffer& b : global_buffers(p)) {
    if (!b->strides.empty() && b->strides.size() != b->rank()) {
      return fmt::format("parameter `{}` has {} strides for {} axes", b->name, b->strides.size(), b->rank());
    }
    std::vector<Expr> all = b->shape;
    all.insert(all.end(), b->strides.begin(), b->strides.end());
    for (const Expr& e : all) {
      bool known = e->type.is_int();
      walk(e, [&](const Expr& part) {
        const auto* ref = std::get_if<VarRef>(&part->node);
        known &= !std::holds_alternative<Load>(part->node);
        known &= !ref || std::find(p.symbols.begin(), p.symbols.end(), ref->var) != p.symbols.end();
      });
      if (!known) return fmt::format("the shape of `{}` is not made of integers and symbols", b->name);
    }
  }
  return {};
}

std::string global_nibbles(const Program& p, const Surroundings&) {
  for (const Buffer& b : global_buffers(p)) {
    if (std::string problem = nibble_rows(b); !problem.empty()) return problem;
  }
  return {};
}

std::string symbol_bound(const Program& p, const Surroundings&) {
  std::unordered_set<const VarData*> bound;
  for (const Buffer& b : buffer_parameters(p)) {
    for (const auto* list : {&b->shape, &b->strides}) {
      for (const Expr& e : *list) {
        if (const auto form = one_symbol(e)) bound.insert(form->symbol.get());
      }
    }
  }
  for (const Var& symbol : p.symbols) {
    if (bound.count(symbol.get()) == 0)
      return fmt::format("no parameter's extent or stride determines the symbol `{}`", symbol->name);
  }
  return {};
}

}  // namespace

const std::vector<Rule>& rules_of_programs() {
  static const std::vector<Rule> rules{
      {"block_order", "panels of blocks are 0 or more", nullptr, nullptr, block_order},
      {"layouts", "a requested layout, one a tile, is made of integers and variables of its axes", nullptr, nullptr,
       layouts},
      {"cluster", "a cluster has an extent for each axis of the grid", nullptr, nullptr, cluster},
      {"threads", "a block has 1 to 3 thread extents, 1 to 1024 threads in all", nullptr, nullptr, threads},
      {"thread_vars", "a kernel has no thread variables or an integer for each thread extent", nullptr, nullptr,
       thread_vars},
      {"all_reduce_threads", "an all-reduce is over threads that the kernel has", nullptr, nullptr, all_reduce_threads},
      {"grid", "a grid has 1 to 3 integer extents, one a block variable", nullptr, nullptr, grid},
      {"body", "a kernel's body is a block", nullptr, nullptr, body},
      {"allocation", "an allocation is a tile with constant positive extents, or a view", nullptr, nullptr, allocation},
      {"arrivals", "barriers are uint64, each with a positive arrival count; nothing else has one", nullptr, nullptr,
       arrivals},
      {"views", "a view has the scope and the bits of a buffer before it, which is no view", nullptr, nullptr, views},
      {"addresses", "memory by its address is global and no view, a local int64 before it holds the address", nullptr,
       nullptr, addresses},
      {"nibbles", "elements of 4 bits that others see lie in rows of whole bytes", nullptr, nullptr, nibbles,
       global_nibbles},
      {"allocated_once", "each tile is allocated once", nullptr, nullptr, nullptr, allocated_once},
      {"parameters", "parameters and workspaces are distinct, their buffers global", nullptr, nullptr, nullptr,
       parameters},
      {"parameter_shape", "parameters' shapes are made of integers and symbols", nullptr, nullptr, nullptr,
       parameter_shape},
      {"symbol_bound", "each symbol is alone in an extent or stride of a parameter, which is linear in it", nullptr,
       nullptr, nullptr, symbol_bound},
  };
  return rules;
}

}  // namespace tilepilot::ir
