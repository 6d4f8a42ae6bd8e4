#include "compiler/targets/cuda/barriers.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/search.h"

namespace tilepilot::targets::cuda {

using ir::Expr;
using ir::Stmt;

const ir::BufferData* memory_of(const ir::Buffer& buffer) {
  const ir::BufferData* data = buffer.get();
  while (data->base) data = data->base.get();
  return data;
}

namespace {

struct Touch {
  const ir::BufferData* memory;
  bool writes;
  bool collective;  // all threads together, rather than each for itself
  friend bool operator==(const Touch&, const Touch&) = default;
};
using Touches = std::vector<Touch>;

bool is_meeting(const Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  return (loop && loop->kind == ir::LoopKind::parallel) || ir::is_tile_operator(*stmt) ||
         ir::as<ir::Sync>(stmt) != nullptr;
}

void add(Touches& touches, const Touch& touch) {
  if (std::find(touches.begin(), touches.end(), touch) == touches.end()) touches.push_back(touch);
}

class Placement {
 public:
  Placement(const ir::Kernel& kernel, const std::vector<ir::Buffer>& rings, const Boards& boards,
            const SharesMemory& share, const ir::Sync& meet)
      : simt_(!kernel.thread_vars.empty()), boards_(boards), share_(share), meet_(meet) {
    for (const ir::Buffer& ring : rings) ordered_.insert(ring.get());
  }

  Stmt run(const Stmt& body) {
    Touches pending;
    return list(body, pending);
  }

 private:
  const bool simt_;
  const Boards& boards_;
  const SharesMemory& share_;
  const ir::Sync meet_;
  std::unordered_set<const ir::BufferData*> ordered_;

  bool counts(const ir::Buffer& buffer) const {
    const ir::BufferData* memory = memory_of(buffer);
    return memory->scope == ir::Scope::shared || memory->scope == ir::Scope::global;
  }

  Touches of(const Expr& expr, bool collective) const {
    Touches touches;
    ir::walk(expr, [&](const Expr& part) {
      const auto* load = ir::as<ir::Load>(part);
      if (load && counts(load->buffer)) add(touches, {memory_of(load->buffer), false, collective});
    });
    return touches;
  }

  Touches of(const Stmt& stmt) const {
    const bool collective = !simt_ || is_meeting(stmt);
    Touches touches;
    const auto touch = [&](const ir::Buffer& buffer, bool writes) {
      if (counts(buffer)) add(touches, {memory_of(buffer), writes, collective});
    };
    ir::walk(
        stmt,
        [&](const Stmt& part) {
          if (const auto* store = ir::as<ir::Store>(part)) touch(store->buffer, true);
          const ir::Accesses accesses = ir::region_accesses(part);
          // Atomic updates of different threads do not disturb each other, but what reads or writes plainly does.
          for (const ir::Region* region : accesses.reads) touch(region->buffer, false);
          for (const ir::Region* region : accesses.writes) touch(region->buffer, true);
        },
        [&](const Expr& part) {
          if (const auto* load = ir::as<ir::Load>(part)) touch(load->buffer, false);
        });
    return touches;
  }

  // Tiles that share memory: whatever comes second may destroy what the first one left, or reads.
  bool conflict(const Touches& before, const Touches& now) const {
    for (const Touch& a : before)
      for (const Touch& b : now) {
        if (a.memory == b.memory ? ordered_.contains(a.memory) : !share_(a.memory, b.memory)) continue;
        if ((a.writes || b.writes) && (a.collective || b.collective)) return true;
      }
    return false;
  }

  static void note(Touches& pending, const Touches& touches) {
    for (const Touch& touch : touches) add(pending, touch);
  }

  void meet_before(const Touches& touches, Span span, Touches& pending, std::vector<Stmt>& out) const {
    if (conflict(pending, touches)) {
      out.push_back(ir::make_stmt(meet_, span));
      pending.clear();
    }
    note(pending, touches);
  }

  Stmt list(const Stmt& body, Touches& pending) {
    std::vector<Stmt> out;
    for (const Stmt& stmt : ir::statements(body)) place(stmt, pending, out);
    return ir::make_stmt(ir::Block{std::move(out)}, body->span);
  }

  void place(const Stmt& stmt, Touches& pending, std::vector<Stmt>& out) {
    const auto* sync = ir::as<ir::Sync>(stmt);
    if (sync) {
      const bool of_block = sync->scope == ir::SyncScope::block && sync->threads == 0;
      if (of_block || (sync->threads == meet_.threads && sync->barrier == meet_.barrier)) pending.clear();
      return out.push_back(stmt);
    }
    if (ir::as<ir::Block>(stmt)) return out.push_back(list(stmt, pending));
    const bool enters = !is_meeting(stmt) && (!simt_ || ir::contains(stmt, is_meeting));
    const auto* loop = ir::as<ir::For>(stmt);
    if (enters && loop) return place_loop(stmt, loop->extents[0], loop->body, pending, out);
    if (const auto* loop_while = ir::as<ir::While>(stmt); enters && loop_while)
      return place_loop(stmt, loop_while->condition, loop_while->body, pending, out);
    if (const auto* choice = ir::as<ir::If>(stmt); enters && choice) return place_choice(stmt, *choice, pending, out);
    Touches touches = of(stmt);
    const auto board = boards_.find(stmt.get());
    if (board != boards_.end()) add(touches, {board->second.get(), true, true});
    meet_before(touches, stmt->span, pending, out);
    if (board != boards_.end()) {
      pending = {{board->second.get(), false, true}};
      if (ir::as<ir::Gemm>(stmt)) note(pending, of(stmt));  // which reads its operands on
    }
    out.push_back(stmt);
  }

  // All threads go the same way.
  void place_choice(const Stmt& stmt, const ir::If& choice, Touches& pending, std::vector<Stmt>& out) {
    meet_before(of(choice.condition, true), stmt->span, pending, out);
    Touches other = pending;
    const Stmt then = list(choice.then, pending);
    const Stmt otherwise = choice.otherwise ? list(choice.otherwise, other) : nullptr;
    note(pending, other);
    out.push_back(ir::make_stmt(ir::If{choice.condition, then, otherwise}, stmt->span));
  }

  // What an iteration leaves behind is there when the next one begins.
  void place_loop(const Stmt& stmt, const Expr& control, const Stmt& body, Touches& pending, std::vector<Stmt>& out) {
    const Touches read = of(control, true);
    meet_before(read, stmt->span, pending, out);
    // Once before the loop, rather than in each iteration.
    if (conflict(pending, of(body))) {
      out.push_back(ir::make_stmt(meet_, stmt->span));
      pending.clear();
    }
    Touches around = pending;
    list(body, around);  // twice: what is pending only grows by what one iteration leaves
    note(pending, around);
    Touches last = pending;
    Stmt inner = list(body, last);
    if (ir::as<ir::While>(stmt) && conflict(last, read)) {
      std::vector<Stmt> all = ir::statements(inner);
      all.push_back(ir::make_stmt(meet_, stmt->span));
      inner = ir::make_stmt(ir::Block{std::move(all)}, body->span);
      last = read;
    }
    note(pending, last);
    if (const auto* loop = ir::as<ir::For>(stmt))
      out.push_back(ir::make_stmt(ir::For{loop->kind, loop->vars, loop->extents, loop->num_stages, inner}, stmt->span));
    else
      out.push_back(ir::make_stmt(ir::While{control, inner}, stmt->span));
  }
};

}  // namespace

ir::Kernel place_barriers(const ir::Kernel& kernel, const std::vector<ir::Buffer>& rings, const Boards& boards,
                          const SharesMemory& share, const ir::Sync& meet) {
  ir::Kernel result = kernel;
  result.body = Placement(kernel, rings, boards, share, meet).run(kernel.body);
  return result;
}

}  // namespace tilepilot::targets::cuda
