// Loops whose iterations one thread does side by side (`T.vectorized`): what they load from memory or store there is
// moved as vectors where neighbours lie side by side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/targets/gpu/facts/loop_body.h"
#include "compiler/targets/gpu/lower/picked_vectors.h"
#include "compiler/targets/gpu/lower/vectors.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {

class Vectorizer {
 public:
  Vectorizer(Lowering& lowering, const ir::For& loop, Span span, int64_t lanes)
      : lowering_(lowering),
        loop_(loop),
        body_(loop, lowering.inference.machine.adds_vectors),
        span_(span),
        lanes_(lanes) {}

  void run(Stmts& out) {
    Stmts before, after, lanes;
    std::map<const ir::ExprNode*, Expr> loads;
    std::map<const ir::StmtNode*, Buffer> stores;
    std::map<std::string, Buffer> known;
    for (const Stmt& stmt : body_.statements()) {
      ir::walk(
          stmt, [](const Stmt&) {},
          [&](const Expr& part) {
            const auto* load = ir::as<ir::Load>(part);
            if (load == nullptr) return;
            const auto [found, is_new] = known.emplace(ir::to_text(part), nullptr);
            if (is_new) found->second = moved(load->buffer, load->indices, nullptr, before);
            if (is_new && !found->second) found->second = picked(*load, before);
            if (found->second) loads.emplace(part.get(), ir::load(found->second, {lane()}, part->span));
          });
      const auto* store = ir::as<ir::Store>(stmt);
      const auto* sum = ir::as<ir::Atomic>(stmt);
      const Buffer held = store ? moved(store->buffer, store->indices, store_vector, after)
                          : sum ? moved(sum->element.buffer, sum->element.start, add_vector, after)
                                : nullptr;
      if (held) stores.emplace(stmt.get(), held);
    }
    for (const Stmt& stmt : body_.statements()) lanes.push_back(Held(loads, stores, lane()).rewrite(stmt));
    out.insert(out.end(), before.begin(), before.end());
    Stmts placed;
    for (const Stmt& stmt : lanes) placed.push_back(in_places(lowering_, stmt, nullptr));
    out.push_back(unrolled(loop_.vars[0], lanes_, std::move(placed), span_));
    out.insert(out.end(), after.begin(), after.end());
    decide();
  }

 private:
  Lowering& lowering_;
  const ir::For& loop_;
  const LoopBody body_;
  const Span span_;
  const int64_t lanes_;
  std::vector<std::string> widths_, obstacles_;

  // What the vectors hold in the place of the accesses that they stand for.
  class Held : public ir::Rewriter {
   public:
    using Rewriter::rewrite;
    Held(const std::map<const ir::ExprNode*, Expr>& loads, const std::map<const ir::StmtNode*, Buffer>& stores,
         Expr lane)
        : loads_(loads), stores_(stores), lane_(std::move(lane)) {}
    Expr rewrite(const Expr& expr) override {
      const auto found = loads_.find(expr.get());
      return found == loads_.end() ? rewrite_children(expr) : found->second;
    }
    Stmt rewrite(const Stmt& stmt) override {
      const auto found = stores_.find(stmt.get());
      if (found == stores_.end()) return rewrite_children(stmt);
      const auto* store = ir::as<ir::Store>(stmt);
      const Expr value = rewrite(store ? store->value : ir::as<ir::Atomic>(stmt)->value);
      return ir::make_stmt(ir::Store{found->second, {lane_}, value}, stmt->span);
    }

   private:
    const std::map<const ir::ExprNode*, Expr>& loads_;
    const std::map<const ir::StmtNode*, Buffer>& stores_;
    Expr lane_;
  };

  Expr lane() const { return ir::var_ref(loop_.vars[0]); }

  // Moves the lanes between memory and registers, which it gives; null if that takes no vectors. `write`: how they get
  // into memory; null: they are loaded.
  Buffer moved(const Buffer& buffer, const std::vector<Expr>& given, decltype(&store_vector) write, Stmts& out) {
    if (buffer->scope != Scope::global && buffer->scope != Scope::shared) return nullptr;
    std::vector<Expr> indices;
    for (const Expr& index : given) {
      if (body_.mentions_values(index) || body_.is_written(index) || !body_.may_move_together(buffer)) return nullptr;
      indices.push_back(ir::cast(in_places(lowering_, index, nullptr), ir::kInt32));
    }
    Stmts reads;
    indices = with_named_loads(indices, loop_.vars[0], span_, reads);
    const VectorChoice choice =
        vector_access({lowering_.facts, lowering_.inference.tiles}, buffer, indices, loop_.vars[0], lanes_);
    if (!choice.obstacle.empty()) obstacles_.push_back("no wider: " + choice.obstacle);
    if (!choice.vector) return nullptr;
    out.insert(out.end(), reads.begin(), reads.end());
    const Buffer held = lowering_.local(buffer->name + "_v", buffer->type, lanes_);
    widths_.push_back(fmt::format("{} by {} bytes", buffer->name, choice.vector->elements * buffer->type.bytes()));
    const VectorMove move{*choice.vector, held, ir::int_imm(0)};
    for (int64_t first = 0; first < lanes_; first += choice.vector->elements) {
      if (write)
        write(lowering_, move, first, nullptr, span_, out);
      else
        load_vector(lowering_, move, first, span_, out);
    }
    return held;
  }

  // Reads the lanes from an array of the thread's own; null if that is no matter of vectors.
  Buffer picked(const ir::Load& load, Stmts& out) {
    if (load.buffer->scope != Scope::local || !body_.may_move_together(load.buffer)) return nullptr;
    for (const Expr& index : load.indices)
      if (body_.mentions_values(index) || body_.is_written(index)) return nullptr;
    return picked_vector(lowering_, load, loop_.vars[0], lanes_, span_, out);
  }

  void decide() {
    if (widths_.empty() && obstacles_.empty()) return;
    lowering_.decisions.push_back({span_, fmt::format("{} lanes of one thread", lanes_),
                                   widths_.empty() ? "element by element" : fmt::format("{}", fmt::join(widths_, ", ")),
                                   std::move(obstacles_)});
  }
};

}  // namespace

bool lower_vectorized(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  const auto& loop = *ir::as<ir::For>(stmt);
  const auto lanes = ir::constant_int(loop.extents[0]);
  bool has_fragments = false;
  ir::each_effect(stmt, [&](const Buffer& buffer, bool) { has_fragments |= buffer->scope == Scope::fragment; });
  if (!lanes || *lanes < 2 || has_fragments || !LoopBody(loop, lowering.inference.machine.adds_vectors).is_straight())
    return false;
  Vectorizer(lowering, loop, stmt->span, *lanes).run(out);
  return true;
}

}  // namespace tilepilot::targets::gpu
