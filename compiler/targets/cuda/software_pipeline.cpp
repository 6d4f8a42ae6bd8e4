#include "compiler/targets/cuda/software_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/search.h"
#include "compiler/targets/cuda/copy_engine.h"
#include "compiler/targets/cuda/infer.h"
#include "compiler/targets/cuda/statements.h"

namespace tilepilot::targets::cuda {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Stmt;

namespace {

using Slots = std::unordered_map<const ir::BufferData*, Buffer>;

Expr sum(const Expr& a, int64_t b) {
  return b == 0 ? a : ir::binary(BinaryOp::add, a, ir::int_imm(b, a->type), a->span);
}

// Puts a ring in the place of a tile, at slot `slot`.
class InRing : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  InRing(const Slots& rings, Expr slot) : rings_(rings), slot_(std::move(slot)) {}

  Expr rewrite(const Expr& expr) override {
    const Expr inner = rewrite_children(expr);
    const auto* load = ir::as<ir::Load>(inner);
    const auto ring = load ? rings_.find(load->buffer.get()) : rings_.end();
    if (ring == rings_.end()) return inner;
    std::vector<Expr> indices{slot_};
    indices.insert(indices.end(), load->indices.begin(), load->indices.end());
    return ir::load(ring->second, std::move(indices), expr->span);
  }

 protected:
  ir::Region rewrite_region(const ir::Region& region) override {
    ir::Region result = Rewriter::rewrite_region(region);
    const auto ring = rings_.find(region.buffer.get());
    if (ring == rings_.end()) return result;
    result.buffer = ring->second;
    result.start.insert(result.start.begin(), slot_);
    result.extent.insert(result.extent.begin(), 1);
    return result;
  }

 private:
  const Slots& rings_;
  Expr slot_;
};

std::unordered_set<const ir::BufferData*> written_in(const Stmt& stmt) {
  std::unordered_set<const ir::BufferData*> written;
  ir::walk(
      stmt,
      [&](const Stmt& part) {
        if (const auto* store = ir::as<ir::Store>(part)) written.insert(store->buffer.get());
        for (const ir::Region* region : ir::region_accesses(part).writes) written.insert(region->buffer.get());
      },
      [](const Expr&) {});
  return written;
}

int uses_of(const Stmt& stmt, const ir::BufferData* buffer) {
  int count = 0;
  ir::walk(
      stmt,
      [&](const Stmt& part) {
        if (const auto* store = ir::as<ir::Store>(part)) count += store->buffer.get() == buffer;
        const ir::Accesses accesses = ir::region_accesses(part);
        for (const auto* list : {&accesses.reads, &accesses.writes})
          for (const ir::Region* region : *list) count += region->buffer.get() == buffer;
      },
      [&](const Expr& part) {
        if (const auto* load = ir::as<ir::Load>(part)) count += load->buffer.get() == buffer;
      });
  return count;
}

bool covers(const ir::Region& region) {
  return is_whole(region) && std::all_of(region.start.begin(), region.start.end(),
                                         [](const Expr& start) { return ir::constant_int(start) == 0; });
}

class Pipeliner : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Pipeliner(PipelinedKernel& result, Architecture architecture)
      : result_(result),
        architecture_(architecture),
        sharing_(ir::sharing_buffers(result.kernel)),
        whole_(result.kernel.body) {}

  Stmt rewrite(const Stmt& stmt) override {
    const auto* loop = ir::as<ir::For>(stmt);
    if (loop == nullptr && !ir::as<ir::While>(stmt)) return rewrite_children(stmt);
    if (loop == nullptr || loop->kind != ir::LoopKind::pipelined) {
      ++depth_;
      Stmt inner = rewrite_children(stmt);
      --depth_;
      return inner;
    }
    return pipelined(*loop, stmt->span);
  }

 private:
  PipelinedKernel& result_;
  const Architecture architecture_;
  const std::unordered_set<const ir::BufferData*> sharing_;
  const Stmt whole_;
  int depth_ = 0;

  Stmt serial(const ir::For& loop, Stmt body, Span span) const {
    return ir::make_stmt(ir::For{ir::LoopKind::serial, loop.vars, loop.extents, 0, std::move(body)}, span);
  }

  // Copies that may run ahead: tensors that the loop does not write, whole tiles that only this copy writes and only
  // this loop names, start indices known before the iteration.
  bool may_run_ahead(const ir::Copy& copy, const Stmt& body) const {
    const Buffer &from = copy.source.buffer, &to = copy.destination.buffer;
    if (copy.mode != ir::CopyMode::complete || from->scope != ir::Scope::global || to->scope != ir::Scope::shared)
      return false;
    if (from->type != to->type || !covers(copy.destination) || sharing_.contains(to.get()) || from->type.is_nibble())
      return false;
    if (from->base || from->address) return false;
    for (const Expr& start : copy.source.start)
      if (ir::has_loads(start)) return false;
    if (written_in(body).contains(from.get())) return false;
    return uses_of(whole_, to.get()) == uses_of(body, to.get());
  }

  Stmt pipelined(const ir::For& loop, Span span) {
    const std::vector<Stmt> body = ir::statements(loop.body);
    std::vector<Stmt> ahead, rest;
    Slots rings;
    const int64_t stages = std::max(loop.num_stages, 1);
    bool leading = stages > 1;  // values that the iteration computes first are not known ahead
    for (const Stmt& stmt : body) {
      const auto* copy = ir::as<ir::Copy>(stmt);
      if (ir::as<ir::Let>(stmt)) leading = false;
      const bool first = copy != nullptr && uses_of(loop.body, copy->destination.buffer.get()) > 1 &&
                         written_once(loop.body, copy->destination.buffer.get());
      if (leading && first && may_run_ahead(*copy, loop.body) && !read_before(body, stmt)) {
        ahead.push_back(stmt);
      } else {
        rest.push_back(stmt);
      }
    }
    ++depth_;
    for (Stmt& stmt : rest) stmt = rewrite(stmt);
    --depth_;
    if (ahead.empty()) {
      if (loop.num_stages > 1)
        result_.notes.emplace_back(span, "no copy of this loop can run ahead: its iterations run one after another");
      return serial(loop, block(std::move(rest), loop.body->span), span);
    }
    for (const Stmt& stmt : ahead) {
      const Buffer& tile = ir::as<ir::Copy>(stmt)->destination.buffer;
      ir::BufferData ring = *tile;
      ring.shape.insert(ring.shape.begin(), ir::int_imm(stages));
      rings.emplace(tile.get(), std::make_shared<ir::BufferData>(std::move(ring)));
      auto& all = result_.kernel.allocations;
      *std::find(all.begin(), all.end(), tile) = rings.at(tile.get());
      result_.rings.push_back(rings.at(tile.get()));
    }
    return in_stages(loop, ahead, block(std::move(rest), loop.body->span), rings, span);
  }

  // A loop's only statement beside copies, if that is a product of tiles in shared memory that may run on by itself.
  Stmt as_running_on(const Stmt& body) const {
    const std::vector<Stmt> all = ir::statements(body);
    const auto* gemm = all.size() == 1 ? ir::as<ir::Gemm>(all[0]) : nullptr;
    if (gemm == nullptr || gemm->clear_accumulator || gemm->c.buffer->scope != ir::Scope::fragment) return nullptr;
    if (!plan_gemm(*gemm, thread_count(result_.kernel), architecture_, sharing_).is_wgmma()) return nullptr;
    if (gemm->a.buffer->scope != ir::Scope::shared) return nullptr;
    ir::Gemm running = *gemm;
    running.asynchronous = true;
    return ir::make_stmt(std::move(running), all[0]->span);
  }

  static bool written_once(const Stmt& body, const ir::BufferData* buffer) {
    int count = 0;
    ir::walk(
        body,
        [&](const Stmt& part) {
          if (const auto* store = ir::as<ir::Store>(part)) count += store->buffer.get() == buffer;
          for (const ir::Region* region : ir::region_accesses(part).writes) count += region->buffer.get() == buffer;
        },
        [](const Expr&) {});
    return count == 1;
  }

  // Whether a statement before it names its tile: that would see the iteration before.
  static bool read_before(const std::vector<Stmt>& body, const Stmt& copy) {
    const ir::BufferData* tile = ir::as<ir::Copy>(copy)->destination.buffer.get();
    for (const Stmt& stmt : body) {
      if (stmt == copy) return false;
      if (uses_of(stmt, tile) > 0) return true;
    }
    return false;
  }

  // A ring's tiles arrive through the copy engine, or by the threads' own asynchronous copies.
  struct Ring {
    const std::vector<Stmt>& copies;
    const Slots& slots;
    int64_t stages;
    Buffer full;    // of the copy engine: a barrier a slot, else null
    Buffer phases;  // bit s: the parity of slot s; null if the iteration tells it
  };

  static Expr slot_of(const Ring& ring, const Expr& k) {
    const auto slot = ir::constant_int(k);
    return slot ? ir::int_imm(*slot % ring.stages, k->type)
                : ir::binary(BinaryOp::floor_mod, k, ir::int_imm(ring.stages, k->type), k->span);
  }

  // The copies of iteration `k` into their slots, in a group.
  static std::vector<Stmt> copies_of(const Ring& ring, const ir::Var& var, const Expr& k) {
    std::vector<Stmt> out;
    const Expr slot = slot_of(ring, k);
    InRing in_ring(ring.slots, slot);
    std::optional<ir::Region> barrier;
    if (ring.full) {
      barrier = element(ring.full, {slot}, k->span);
      int64_t bytes = 0;
      for (const Stmt& stmt : ring.copies) bytes += bytes_of_copy(*ir::as<ir::Copy>(stmt));
      out.push_back(ir::make_stmt(ir::Barrier{ir::BarrierOp::arrive_expect, *barrier, ir::int_imm(bytes), 1}, k->span));
    }
    for (const Stmt& stmt : ring.copies) {
      const Stmt at = ir::substitute(stmt, [&](const ir::Var& other) { return other == var ? k : nullptr; });
      ir::Copy copy = *ir::as<ir::Copy>(in_ring.rewrite(at));
      copy.mode = ring.full ? ir::CopyMode::bulk_load : ir::CopyMode::group;
      copy.barrier = barrier;
      out.push_back(ir::make_stmt(std::move(copy), stmt->span));
    }
    return out;
  }

  // Until the tiles of iteration `k` are there.
  static void wait_for(const Ring& ring, const Expr& k, Span span, std::vector<Stmt>& out) {
    if (!ring.full) {
      out.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_copies, ring.stages - 2}, span));
      return;
    }
    const Expr slot = ir::cast(slot_of(ring, k), ir::kInt32);
    Expr parity = ir::binary(BinaryOp::floor_div, k, ir::int_imm(ring.stages, k->type), span);
    if (ring.phases) {
      const Expr bits = ir::load(ring.phases, {ir::int_imm(0)}, span);
      parity = ir::binary(BinaryOp::shr, bits, slot, span);
    }
    out.push_back(ir::make_stmt(
        ir::Barrier{ir::BarrierOp::wait, element(ring.full, {slot}, span), ir::cast(parity, ir::kInt32)}, span));
    if (!ring.phases) return;
    const Expr bits = ir::load(ring.phases, {ir::int_imm(0)}, span);
    const Expr changed =
        ir::binary(BinaryOp::bit_xor, bits, ir::binary(BinaryOp::shl, ir::int_imm(1), slot, span), span);
    out.push_back(ir::make_stmt(ir::Store{ring.phases, {ir::int_imm(0)}, changed}, span));
  }

  Buffer allocated(ir::BufferData data) {
    result_.kernel.allocations.push_back(std::make_shared<ir::BufferData>(std::move(data)));
    return result_.kernel.allocations.back();
  }

  // Barriers for the copy engine, if it can make all of the copies; else the loop's note says why.
  void use_engine(Ring& ring, Span span) {
    if (architecture_ != Architecture::sm_90a) return;
    for (const Stmt& stmt : ring.copies) {
      const std::string why = not_by_engine(*ir::as<ir::Copy>(stmt));
      if (why.empty()) continue;
      result_.notes.emplace_back(stmt->span, "not by the copy engine (TMA): " + why);
      return;
    }
    const auto count = ir::int_imm(ring.stages);
    ring.full = allocated({"full",
                           ir::kUInt64,
                           ir::Scope::barrier,
                           {count},
                           {},
                           span,
                           nullptr,
                           std::vector<int64_t>(static_cast<size_t>(ring.stages), 1)});
    if (depth_ == 0) return;  // each slot's phases are counted from 0
    ring.phases = allocated({"phases", ir::kInt32, ir::Scope::local, {ir::int_imm(1)}, {}, span});
    result_.beginning.push_back(ir::make_stmt(ir::Store{ring.phases, {ir::int_imm(0)}, ir::int_imm(0)}, span));
  }

  Stmt in_stages(const ir::For& loop, const std::vector<Stmt>& ahead, const Stmt& rest, const Slots& rings, Span span) {
    const int64_t stages = loop.num_stages;
    const ir::Var& var = loop.vars[0];
    const Expr& count = loop.extents[0];
    const Expr k = ir::var_ref(var, span);
    Ring ring{ahead, rings, stages, nullptr, nullptr};
    use_engine(ring, span);
    const auto guarded = [&](const Expr& number, std::vector<Stmt>& out) {
      const Expr exists = ir::binary(BinaryOp::lt, number, count, span);
      out.push_back(ir::make_stmt(ir::If{exists, block(copies_of(ring, var, number), span), nullptr}, span));
      if (!ring.full) out.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::commit_copies, 0}, span));
    };
    const Stmt meeting = ir::make_stmt(ir::Sync{}, span);
    std::vector<Stmt> all;
    if (depth_ > 0) all.push_back(meeting);  // readers of an earlier run of this loop
    for (int64_t stage = 0; stage + 1 < stages; ++stage) guarded(ir::int_imm(stage, var->type), all);
    InRing here(rings, slot_of(ring, k));
    std::vector<Stmt> body;
    wait_for(ring, k, span, body);
    // Beside loads element by element products would have to wait for registers.
    const bool lean = std::all_of(ahead.begin(), ahead.end(), [](const Stmt& stmt) {
      return has_constant_rows(*ir::as<ir::Copy>(stmt)->source.buffer);
    });
    if (const Stmt product = lean ? as_running_on(rest) : nullptr) {
      if (!ring.full) body.push_back(meeting);
      body.push_back(here.rewrite(product));
      body.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, 1}, span));
      body.push_back(meeting);
      guarded(sum(k, stages - 1), body);
      all.push_back(serial(loop, block(std::move(body), loop.body->span), span));
      all.push_back(ir::make_stmt(ir::Async{ir::AsyncOp::wait_gemms, 0}, span));
      return block(std::move(all), span);
    }
    body.push_back(meeting);
    guarded(sum(k, stages - 1), body);
    for (const Stmt& stmt : ir::statements(here.rewrite(rest))) body.push_back(stmt);
    all.push_back(serial(loop, block(std::move(body), loop.body->span), span));
    return block(std::move(all), span);
  }
};

}  // namespace

PipelinedKernel pipeline_loops(const ir::Kernel& kernel, Architecture architecture) {
  PipelinedKernel result{kernel, {}, {}, {}};
  const Stmt body = Pipeliner(result, architecture).rewrite(kernel.body);
  std::vector<Stmt> all = std::move(result.beginning);
  for (const Stmt& stmt : ir::statements(body)) all.push_back(stmt);
  result.kernel.body = ir::make_stmt(ir::Block{std::move(all)}, kernel.body->span);
  return result;
}

}  // namespace tilepilot::targets::cuda
