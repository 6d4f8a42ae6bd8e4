#include "compiler/passes/iterations/block_races.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "compiler/ir/search.h"
#include "compiler/ir/visit.h"
#include "compiler/passes/algebra/fold.h"
#include "compiler/passes/iterations/iteration_races.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

constexpr int64_t kBlocks = 8;        // along an axis of the grid that are tried
constexpr size_t kMostTried = 27;     // of what loops' variables may be
constexpr int64_t kExtent = 1 << 20;  // of an axis whose extent is symbolic

using Values = std::unordered_map<const VarData*, int64_t>;
using Place = std::vector<int64_t>;

// An element that a block reads or stores, the first one of a region: where, and what decides whether it does.
struct Access {
  Stmt stmt;
  Buffer buffer;
  std::vector<Expr> indices, conditions;
  std::vector<std::pair<Var, Expr>> loops;  // and their extents, outermost first
};

class BlockRaces {
 public:
  BlockRaces(const Program& program, const Kernel& kernel) : program_(program), kernel_(kernel) { visit(kernel.body); }
  std::vector<BlockRace> found;

 private:
  const Program& program_;
  const Kernel& kernel_;
  std::unordered_map<const VarData*, Expr> lets_;
  std::vector<Expr> conditions_;
  std::vector<std::pair<Var, Expr>> loops_;
  std::vector<Access> reads_;  // that no barrier of the grid stands behind
  bool ordered_ = false;       // blocks may wait for each other

  void visit(const Stmt& stmt) {
    if (!stmt || ordered_) return;
    if (const auto* block = as<Block>(stmt)) {
      for (const Stmt& part : block->body) visit(part);
    } else if (const auto* let = as<Let>(stmt)) {
      read_all(stmt, let->value);
      lets_.emplace(let->var.get(), let->value);
    } else if (const auto* choice = as<If>(stmt)) {
      read_all(stmt, choice->condition);
      within({choice->condition}, {}, choice->then);
      within({unary(UnaryOp::logical_not, choice->condition, stmt->span)}, {}, choice->otherwise);
    } else if (const auto* loop = as<For>(stmt)) {
      if (contains<Break, Continue>(loop->body)) return;  // which may come first in all blocks but one
      std::vector<std::pair<Var, Expr>> loops;
      for (size_t k = 0; k < loop->vars.size(); ++k) loops.emplace_back(loop->vars[k], loop->extents[k]);
      within({}, loops, loop->body);
    } else if (const auto* store = as<Store>(stmt)) {
      for (const Expr& index : store->indices) read_all(stmt, index);
      read_all(stmt, store->value);
      if (store->buffer->scope == Scope::global) look(access(stmt, store->buffer, store->indices));
    } else if (const auto* copy = as<Copy>(stmt)) {
      if (copy->source.buffer->scope == Scope::global)
        reads_.push_back(access(stmt, copy->source.buffer, copy->source.start));
      if (copy->destination.buffer->scope == Scope::global)
        look(access(stmt, copy->destination.buffer, copy->destination.start));
    } else {
      visit_order(stmt);
    }
  }

  void visit_order(const Stmt& stmt) {
    const auto* sync = as<Sync>(stmt);
    const bool here = sync && (sync->scope == SyncScope::block || sync->scope == SyncScope::warp);
    if (sync && sync->scope == SyncScope::grid && conditions_.empty() && loops_.empty()) {
      reads_.clear();
    } else if ((sync && !here) || as<While>(stmt) || as<ExternCall>(stmt) || as<Roles>(stmt) ||
               (as<Atomic>(stmt) && bound_variable(*stmt))) {
      ordered_ = true;  // a lock, or a counter
    }
  }

  void within(const std::vector<Expr>& conditions, const std::vector<std::pair<Var, Expr>>& loops, const Stmt& body) {
    const size_t outer_conditions = conditions_.size(), outer_loops = loops_.size();
    conditions_.insert(conditions_.end(), conditions.begin(), conditions.end());
    loops_.insert(loops_.end(), loops.begin(), loops.end());
    visit(body);
    conditions_.resize(outer_conditions);
    loops_.resize(outer_loops);
  }

  Access access(const Stmt& stmt, const Buffer& buffer, const std::vector<Expr>& indices) const {
    return {stmt, buffer, indices, conditions_, loops_};
  }

  void read_all(const Stmt& stmt, const Expr& expr) {
    for (const Expr& part : certain_loads(expr))
      if (const auto& load = *as<Load>(part); load.buffer->scope == Scope::global)
        reads_.push_back(access(stmt, load.buffer, load.indices));
  }

  std::optional<int64_t> value_of(const Expr& expr, const Values& values) const {
    if (const auto* imm = as<IntImm>(expr)) return imm->value;
    if (const auto* use = as<VarRef>(expr)) {
      if (const auto known = values.find(use->var.get()); known != values.end()) return known->second;
      if (const auto let = lets_.find(use->var.get()); let != lets_.end()) return value_of(let->second, values);
      return is_extent(program_, use->var) ? std::optional(kExtent) : std::nullopt;
    }
    if (const auto* node = as<Cast>(expr); node && expr->type.is_int() && node->value->type.is_int())
      return value_of(node->value, values);
    if (const auto* node = as<Unary>(expr)) {
      const auto operand = value_of(node->operand, values);
      if (!operand || node->op == UnaryOp::bit_not) return std::nullopt;
      return node->op == UnaryOp::logical_not ? int64_t{*operand == 0} : -*operand;
    }
    const auto* node = as<Binary>(expr);
    if (!node || !(node->left->type.is_int() || node->left->type.is_bool())) return std::nullopt;
    const auto left = value_of(node->left, values), right = value_of(node->right, values);
    return left && right ? fold(node->op, *left, *right, node->left->type) : std::nullopt;
  }

  // Its element, if the access is made for sure: nullopt where it is outside of the tensor, too.
  std::optional<Place> place_of(const Access& access, const Values& values) const {
    const auto holds = [&](const Expr& condition) { return value_of(condition, values).value_or(0) != 0; };
    const auto runs = [&](const auto& loop) {
      return values.at(loop.first.get()) < value_of(loop.second, values).value_or(0);
    };
    if (!std::all_of(access.conditions.begin(), access.conditions.end(), holds)) return std::nullopt;
    if (!std::all_of(access.loops.begin(), access.loops.end(), runs)) return std::nullopt;
    Place place;
    for (size_t axis = 0; axis < access.indices.size(); ++axis) {
      const auto index = value_of(access.indices[axis], values);
      const auto extent = value_of(access.buffer->shape[axis], values);
      if (!index || !extent || *index < 0 || *index >= *extent) return std::nullopt;
      place.push_back(*index);
    }
    return place;
  }

  // `values` with each of the loops' variables at one of its first iterations.
  static std::vector<Values> tries(const Access& access, const Values& values) {
    std::vector<Values> all{values};
    for (const auto& loop : access.loops) {
      const size_t known = all.size();
      for (size_t k = 0; k < known; ++k) all[k][loop.first.get()] = 0;
      for (int64_t iteration = 1; iteration < 3 && all.size() + known <= kMostTried; ++iteration)
        for (size_t k = 0; k < known; ++k) {
          all.push_back(all[k]);
          all.back()[loop.first.get()] = iteration;
        }
    }
    return all;
  }

  bool reads(const Buffer& buffer, const Place& place, const Values& block) const {
    return std::any_of(reads_.begin(), reads_.end(), [&](const Access& read) {
      if (read.buffer != buffer) return false;
      const std::vector<Values> all = tries(read, block);
      return std::any_of(all.begin(), all.end(), [&](const Values& values) { return place_of(read, values) == place; });
    });
  }

  void look(const Access& store) {
    const bool is_read =
        std::any_of(reads_.begin(), reads_.end(), [&](const Access& read) { return read.buffer == store.buffer; });
    if (!is_read) return;
    Values first;
    for (const Var& var : kernel_.block_vars) first[var.get()] = 0;
    for (const Var& var : kernel_.thread_vars) first[var.get()] = 0;
    for (size_t axis = 0; axis < kernel_.block_vars.size(); ++axis) {
      const Var& var = kernel_.block_vars[axis];
      const int64_t blocks = std::min(kBlocks, value_of(kernel_.grid[axis], first).value_or(1));
      std::map<Place, int64_t> readers;  // blocks that read the element and store it
      for (int64_t number = 0; number < blocks; ++number) {
        Values block = first;
        block[var.get()] = number;
        std::vector<Place> own;
        for (const Values& values : tries(store, block))
          if (const auto place = place_of(store, values)) own.push_back(*place);
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
        for (const Place& place : own)
          if (reads(store.buffer, place, block) && ++readers[place] > 1)
            return found.push_back({store.stmt, store.buffer, var});
      }
    }
  }
};

}  // namespace

std::vector<BlockRace> block_races(const Program& program, const Kernel& kernel) {
  return BlockRaces(program, kernel).found;
}

}  // namespace tilepilot::passes
