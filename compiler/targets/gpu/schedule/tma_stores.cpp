#include "compiler/targets/gpu/schedule/tma_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/guarded_rows.h"
#include "compiler/targets/gpu/facts/statements.h"
#include "compiler/targets/gpu/layout/vector_access.h"
#include "compiler/targets/gpu/machine/tma_rules.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using ir::Scope;
using ir::Stmt;

namespace {

// Elements of a row that each thread holds in consecutive registers.
int64_t run_of(const layout::Fragment& held) {
  int64_t run = 1;
  const auto goes_on = [&](int64_t length) {
    for (int64_t first = 0; first + length <= held.register_count(); first += length) {
      const auto start = held.element({0, first});
      for (int64_t k = 1; k < length; ++k) {
        const auto next = held.element({0, first + k});
        if (!start || !next || *next != *start + k) return false;
      }
    }
    return held.register_count() % length == 0;
  };
  while (run * 2 <= held.shape().back() && goes_on(run * 2)) run *= 2;
  return run;
}

// Whether a warp that stores runs of so many elements writes whole lines of memory, or whole rows.
bool writes_whole_lines(const layout::Fragment& held, int64_t run, int64_t element_bytes) {
  constexpr int64_t kLineBytes = 128;
  const int64_t columns = held.shape().back(), line = std::min(columns, kLineBytes / element_bytes);
  if (columns % line != 0 || line % run != 0) return false;
  for (int64_t first = 0; first < held.register_count(); first += run) {
    std::map<int64_t, std::set<int64_t>> runs;  // those that are written, by line
    for (int64_t lane = 0; lane < std::min<int64_t>(layout::kWarpSize, held.thread_count()); ++lane) {
      const auto element = held.element({lane, first});
      if (!element) return false;
      runs[*element / line].insert(*element % line / run);
    }
    for (const auto& [number, written] : runs)
      if (static_cast<int64_t>(written.size()) * run != line) return false;
  }
  return true;
}

constexpr int64_t kSectorBytes = 32;

// Whether threads that store themselves write pieces of less than so many bytes at once: of runs of so many elements,
// or parts of them where rows of the tensor lie so. Pieces that begin within a sector had better be two of them.
bool writes_short_pieces(const layout::Fragment& held, int64_t run, const ir::BufferData& tensor, int64_t shortest) {
  for (const Multiple& distance : row_distances(tensor).value_or(std::vector<Multiple>{{1, false}}))
    run = std::gcd(run, distance.of);
  std::set<int64_t> written;
  for (int64_t lane = 0; lane < std::min<int64_t>(layout::kWarpSize, held.thread_count()); ++lane)
    if (const auto element = held.element({lane, 0}))
      for (int64_t k = 0; k < run; ++k) written.insert(*element + k);
  const auto begins = [&](int64_t element) { return !written.contains(element - 1); };
  const int64_t pieces = std::count_if(written.begin(), written.end(), begins);
  return static_cast<int64_t>(written.size()) * tensor.type.bytes() < pieces * shortest;
}

// Whether they have no element in common, for all that the compiler knows.
bool are_apart(const ir::Region& a, const ir::Region& b) {
  for (size_t axis = 0; axis < a.start.size(); ++axis) {
    const auto left = ir::affine(a.start[axis]), right = ir::affine(b.start[axis]);
    const auto apart = left && right ? ir::difference(*left, *right) : std::nullopt;
    if (!apart || !apart->is_constant()) continue;
    if (apart->constant >= b.extent[axis] || -apart->constant >= a.extent[axis]) return true;
  }
  return false;
}

// Whether nothing in the kernel comes after this copy that its tensor's elements must be there for. Stores of other
// elements need no order.
bool is_last_word(const Stmt& body, const Stmt& stmt, bool persistent) {
  const ir::Region& stored = ir::as<ir::Copy>(stmt)->destination;
  const ir::BufferData* tensor = ir::memory_of(stored.buffer);
  int uses = 0, loops = 0;
  ir::each_effect(body, [&](const ir::Buffer& buffer, bool) { uses += ir::memory_of(buffer) == tensor; });
  ir::walk(
      body,
      [&](const Stmt& part) {
        if (ir::as<ir::For>(part) || ir::as<ir::While>(part))
          loops += ir::contains(part, [&](const Stmt& inner) { return inner == stmt; });
        const auto* copy = ir::as<ir::Copy>(part);
        const bool beside = copy && copy->mode == ir::CopyMode::bulk_store &&
                            copy->destination.buffer == stored.buffer && are_apart(copy->destination, stored);
        if (beside)
          ir::each_own_effect(part, [&](const ir::Buffer& buffer, bool) { uses -= ir::memory_of(buffer) == tensor; });
      },
      [](const Expr&) {});
  return uses == 1 && loops <= (persistent ? 1 : 0);
}

class Stores : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  bool found = false;
  std::vector<Decision> decisions;  // about copies that the threads make
  Stores(const Inference& inference, ir::Kernel& kernel, const StoreOptions& options)
      : inference_(inference), kernel_(kernel), options_(options), viewed_(ir::sharing_buffers(kernel)) {}

  Stmt rewrite(const Stmt& stmt) override {
    if (const auto* loop = ir::as<ir::For>(stmt))
      if (const auto rows = guarded_rows(*loop, written_)) return from_sums(stmt, *rows);
    const auto* copy = ir::as<ir::Copy>(stmt);
    if (copy == nullptr) return rewrite_children(stmt);
    if (copy->mode != ir::CopyMode::complete || copy->destination.buffer->scope != Scope::global) return stmt;
    if (copy->destination.buffer->address || copy->destination.buffer->type.is_nibble()) return stmt;
    return copy->source.buffer->scope == Scope::fragment ? from_fragment(stmt, *copy)
           : copy->source.buffer->scope == Scope::shared ? from_tile(stmt, *copy)
                                                         : stmt;
  }

 private:
  const Inference& inference_;
  ir::Kernel& kernel_;
  const StoreOptions options_;
  const std::unordered_set<const ir::BufferData*> viewed_;
  const ir::BufferSet written_ = ir::memory_effects_of(kernel_.body).writes;

  // TMA writes a box whose extents are the tile's. Why it cannot, "" if it can.
  static std::string not_stored(const ir::Copy& copy) {
    const ir::BufferData& tile = *copy.source.buffer;
    if (tile.type != copy.destination.buffer->type) return "elements change on the way";
    if (tile.rank() < 2) return fmt::format("`{}` has one axis", tile.name);
    if (!is_whole(copy.source)) return fmt::format("it takes a part of `{}` alone", tile.name);
    return tma_obstacle(copy);
  }

  Stmt by_threads(const Stmt& stmt, const ir::Copy& copy, const std::string& why) {
    decisions.push_back(
        {stmt->span, name_of_copy(copy.source.buffer, copy.destination.buffer), "by the threads", {"not TMA: " + why}});
    return stmt;
  }

  Stmt from_tile(const Stmt& stmt, const ir::Copy& copy) {
    if (viewed_.contains(copy.source.buffer.get()))
      return by_threads(stmt, copy, fmt::format("`{}` is seen as another type or shape", copy.source.buffer->name));
    if (const std::string why = not_stored(copy); !why.empty()) return by_threads(stmt, copy, why);
    found = true;
    ir::Copy stored = copy;
    stored.mode = ir::CopyMode::bulk_store;
    return block({ir::make_stmt(std::move(stored), stmt->span), commit(stmt->span), wait(stmt->span)}, stmt->span);
  }

  // All that is computed goes into a tile, of which threads copy the rows where the condition holds.
  Stmt from_sums(const Stmt& stmt, const GuardedRows& rows) {
    const auto layout = inference_.fragments.find(rows.held.get());
    if (layout == inference_.fragments.end() || options_.low_memory) return stmt;
    const ir::Buffer& tensor = rows.store.buffer;
    const int64_t run = run_of(layout->second);
    if (run * tensor->type.bytes() >= kAccessBytes || !writes_short_pieces(layout->second, run, *tensor, kSectorBytes))
      return stmt;
    const Span span = stmt->span;
    const ir::Buffer tile = std::make_shared<ir::BufferData>(
        ir::BufferData{tensor->name + "_tile", tensor->type, Scope::shared, rows.loop.extents, {}, span});
    kernel_.allocations.push_back(tile);
    decisions.push_back({span,
                         name_of_copy(rows.held, tensor),
                         "through a tile, by the threads",
                         {"not TMA: a condition says which rows are stored"}});
    found = true;
    std::vector<Expr> at;
    for (const ir::Var& var : rows.loop.vars) at.push_back(ir::var_ref(var));
    ir::For fills = rows.loop, leaves = rows.loop;
    fills.body = ir::make_stmt(ir::Store{tile, at, rows.store.value}, span);
    for (ir::Var& var : leaves.vars) var = ir::make_var(var->name, var->type);
    const auto renamed = [&](const ir::Var& var) -> Expr {
      const auto place = std::find(rows.loop.vars.begin(), rows.loop.vars.end(), var);
      return place == rows.loop.vars.end()
                 ? nullptr
                 : ir::var_ref(leaves.vars[static_cast<size_t>(place - rows.loop.vars.begin())]);
    };
    const Stmt stores = ir::make_stmt(ir::Store{tensor, rows.store.indices, ir::load(tile, at, span)}, span);
    leaves.body = ir::substitute(ir::make_stmt(ir::If{rows.guard.condition, stores, nullptr}, span), renamed);
    return block({ir::make_stmt(std::move(fills), span), ir::make_stmt(std::move(leaves), span)}, span);
  }

  static Stmt commit(Span span) { return ir::make_stmt(ir::Async{ir::AsyncOp::commit_stores}, span); }
  // Until at most so many are under way.
  static Stmt wait(Span span, int64_t under_way = 0) {
    return ir::make_stmt(ir::Async{ir::AsyncOp::wait_stores, under_way}, span);
  }

  // A tile that elements go through.
  static ir::Buffer tile_for(const ir::Copy& copy, const std::string& name, std::vector<Expr> shape, Span span) {
    return std::make_shared<ir::BufferData>(ir::BufferData{copy.destination.buffer->name + name,
                                                           copy.destination.buffer->type,
                                                           Scope::shared,
                                                           std::move(shape),
                                                           {},
                                                           span});
  }
  static Expr plus(const Expr& a, int64_t b) {
    return ir::binary(ir::BinaryOp::add, a, ir::int_imm(b, a->type), a->span);
  }

  Stmt from_fragment(const Stmt& stmt, const ir::Copy& copy) {
    const layout::Fragment& held = inference_.fragments.at(copy.source.buffer.get());
    const int64_t run = run_of(held), element_bytes = copy.destination.buffer->type.bytes();
    if (run * element_bytes >= kAccessBytes) return stmt;
    if (!options_.persistent && writes_whole_lines(held, run, element_bytes)) return stmt;
    if (!is_whole(copy.source))
      return by_threads(stmt, copy, fmt::format("it takes a part of `{}` alone", copy.source.buffer->name));
    if (options_.low_memory)
      if (const Stmt parts = in_parts(stmt, copy)) return parts;
    const ir::Buffer tile = tile_for(copy, "_tile", copy.source.buffer->shape, stmt->span);
    ir::Copy stored{whole(tile, stmt->span), copy.destination, copy.options, ir::CopyMode::bulk_store};
    const Stmt filled = ir::make_stmt(ir::Copy{copy.source, whole(tile, stmt->span), {}}, stmt->span);
    if (const std::string why = not_stored(stored); !why.empty()) {
      if (tile->rank() < 2 || !writes_short_pieces(held, run, *copy.destination.buffer, 2 * kSectorBytes))
        return by_threads(stmt, copy, why);
      stored.mode = ir::CopyMode::complete;
      found = true;
      kernel_.allocations.push_back(tile);
      decisions.push_back({stmt->span,
                           name_of_copy(copy.source.buffer, copy.destination.buffer),
                           "through a tile, by the threads",
                           {"not TMA: " + why}});
      return block({filled, ir::make_stmt(std::move(stored), stmt->span)}, stmt->span);
    }
    found = true;
    kernel_.allocations.push_back(tile);
    const Stmt leaves = ir::make_stmt(std::move(stored), stmt->span);
    // One block's tile may be under way while the next block is computed.
    if (runs_on(stmt)) return block({wait(stmt->span), filled, leaves, commit(stmt->span)}, stmt->span);
    return block({filled, leaves, commit(stmt->span), wait(stmt->span)}, stmt->span);
  }

  bool runs_on(const Stmt& stmt) const {
    return options_.persistent && is_last_word(kernel_.body, stmt, options_.persistent);
  }

  // Two tiles of some columns in turn: one is filled while the other leaves. Null if TMA cannot store those.
  Stmt in_parts(const Stmt& stmt, const ir::Copy& copy) {
    const Span span = stmt->span;
    const int64_t columns = copy.source.extent.back();
    // As wide as the widest swizzle.
    const int64_t width = static_cast<int64_t>(layout::SwizzleSpan::bytes_128) / copy.destination.buffer->type.bytes();
    const int64_t count = columns / width;
    if (count < 2 || columns % width != 0 || copy.destination.extent.back() != columns) return nullptr;
    std::vector<Expr> shape = copy.source.buffer->shape;
    shape.back() = ir::int_imm(width);
    const ir::Buffer tiles[] = {tile_for(copy, "_part_0", shape, span), tile_for(copy, "_part_1", shape, span)};
    const auto part_of = [&](ir::Region region, int64_t first) {
      if (first > 0) region.start.back() = plus(region.start.back(), first);
      region.extent.back() = width;
      return region;
    };
    const auto stored = [&](int64_t part) {
      return ir::Copy{whole(tiles[part % 2], span), part_of(copy.destination, part * width), copy.options,
                      ir::CopyMode::bulk_store};
    };
    if (!not_stored(stored(0)).empty()) return nullptr;
    found = true;
    kernel_.allocations.insert(kernel_.allocations.end(), std::begin(tiles), std::end(tiles));
    decisions.push_back({span,
                         name_of_copy(copy.source.buffer, copy.destination.buffer),
                         fmt::format("through two tiles of {} columns in turn", width),
                         {"not through one tile: shared memory is too short for all columns at once"}});
    std::vector<Stmt> all;
    for (int64_t part = 0; part < count; ++part) {
      // The one that left this tile, which after an odd number of parts is the last one of the block before.
      all.push_back(wait(span, part == 0 && count % 2 == 1 ? 0 : 1));
      all.push_back(ir::make_stmt(options_.sync, span));
      all.push_back(
          ir::make_stmt(ir::Copy{part_of(copy.source, part * width), whole(tiles[part % 2], span), {}}, span));
      all.push_back(ir::make_stmt(stored(part), span));
      all.push_back(commit(span));
    }
    if (!runs_on(stmt)) all.push_back(wait(span));
    return block(std::move(all), span);
  }
};

}  // namespace

std::optional<ir::Kernel> store_by_tma(const ir::Kernel& kernel, const Inference& inference,
                                       const StoreOptions& options, std::vector<Decision>& decisions) {
  ir::Kernel result = kernel;
  Stores stores(inference, result, options);
  result.body = stores.rewrite(kernel.body);
  decisions.insert(decisions.end(), stores.decisions.begin(), stores.decisions.end());
  return stores.found ? std::optional(result) : std::nullopt;
}

bool are_last_words(const Stmt& body, bool persistent) {
  bool all = true;
  ir::walk(
      body,
      [&](const Stmt& part) {
        const auto* copy = ir::as<ir::Copy>(part);
        if (copy && copy->mode == ir::CopyMode::bulk_store) all = all && is_last_word(body, part, persistent);
      },
      [](const Expr&) {});
  return all;
}

}  // namespace tilepilot::targets::gpu
