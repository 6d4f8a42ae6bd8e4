#include "compiler/targets/cuda/tile_stores.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/search.h"
#include "compiler/targets/cuda/barriers.h"
#include "compiler/targets/cuda/copy_engine.h"
#include "compiler/targets/cuda/statements.h"

namespace tilepilot::targets::cuda {

using ir::Expr;
using ir::Scope;
using ir::Stmt;

namespace {

constexpr int64_t kWholeAccess = 16;  // bytes; threads that hold as many in a row store them well themselves

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

// Whether nothing in the kernel comes after this copy that its tensor's elements must be there for.
bool is_last_word(const Stmt& body, const Stmt& stmt, bool persistent) {
  const ir::BufferData* tensor = memory_of(ir::as<ir::Copy>(stmt)->destination.buffer);
  int uses = 0, loops = 0;
  ir::walk(
      body,
      [&](const Stmt& part) {
        if (ir::as<ir::For>(part) || ir::as<ir::While>(part))
          loops += ir::contains(part, [&](const Stmt& inner) { return inner == stmt; });
        if (const auto* store = ir::as<ir::Store>(part)) uses += memory_of(store->buffer) == tensor;
        const ir::Accesses accesses = ir::region_accesses(part);
        for (const auto* list : {&accesses.reads, &accesses.writes})
          for (const ir::Region* region : *list) uses += memory_of(region->buffer) == tensor;
      },
      [&](const Expr& part) {
        if (const auto* load = ir::as<ir::Load>(part)) uses += memory_of(load->buffer) == tensor;
      });
  return uses == 1 && loops <= (persistent ? 1 : 0);
}

class Stores : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  bool found = false;
  std::vector<Decision> decisions;  // about copies that the threads make
  Stores(const Inference& inference, ir::Kernel& kernel, bool persistent)
      : inference_(inference), kernel_(kernel), persistent_(persistent), viewed_(ir::sharing_buffers(kernel)) {}

  Stmt rewrite(const Stmt& stmt) override {
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
  const bool persistent_;
  const std::unordered_set<const ir::BufferData*> viewed_;

  // The engine writes a box whose extents are the tile's. Why it cannot, "" if it can.
  static std::string not_stored(const ir::Copy& copy) {
    const ir::BufferData& tile = *copy.source.buffer;
    if (tile.type != copy.destination.buffer->type) return "elements change on the way";
    if (tile.rank() < 2) return fmt::format("`{}` has one axis", tile.name);
    if (!is_whole(copy.source)) return fmt::format("it takes a part of `{}` alone", tile.name);
    return not_by_engine(copy);
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
    return block({ir::make_stmt(std::move(stored), stmt->span), wait(stmt->span)}, stmt->span);
  }

  static Stmt wait(Span span) { return ir::make_stmt(ir::Async{ir::AsyncOp::wait_stores, 0}, span); }

  Stmt from_fragment(const Stmt& stmt, const ir::Copy& copy) {
    const layout::Fragment& held = inference_.fragments.at(copy.source.buffer.get());
    if (run_of(held) * copy.destination.buffer->type.bytes() >= kWholeAccess) return stmt;
    ir::BufferData data{copy.destination.buffer->name + "_tile",
                        copy.destination.buffer->type,
                        Scope::shared,
                        copy.source.buffer->shape,
                        {},
                        stmt->span};
    const ir::Buffer tile = std::make_shared<ir::BufferData>(std::move(data));
    ir::Copy stored{whole(tile, stmt->span), copy.destination, copy.options, ir::CopyMode::bulk_store};
    if (!is_whole(copy.source))
      return by_threads(stmt, copy, fmt::format("it takes a part of `{}` alone", copy.source.buffer->name));
    if (const std::string why = not_stored(stored); !why.empty()) return by_threads(stmt, copy, why);
    found = true;
    kernel_.allocations.push_back(tile);
    const Stmt filled = ir::make_stmt(ir::Copy{copy.source, whole(tile, stmt->span), {}}, stmt->span);
    const Stmt leaves = ir::make_stmt(std::move(stored), stmt->span);
    // One block's tile may be under way while the next block is computed.
    if (persistent_ && is_last_word(kernel_.body, stmt, persistent_))
      return block({wait(stmt->span), filled, leaves}, stmt->span);
    return block({filled, leaves, wait(stmt->span)}, stmt->span);
  }
};

}  // namespace

std::optional<ir::Kernel> store_by_engine(const ir::Kernel& kernel, const Inference& inference, bool persistent,
                                          std::vector<Decision>& decisions) {
  ir::Kernel result = kernel;
  Stores stores(inference, result, persistent);
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

}  // namespace tilepilot::targets::cuda
