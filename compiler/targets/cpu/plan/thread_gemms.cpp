#include "compiler/targets/cpu/plan/thread_gemms.h"

#include <tuple>

#include "compiler/ir/text/text.h"

namespace tilepilot::targets::cpu {
namespace {

using UseCounts = std::unordered_map<const ir::BufferData*, int64_t>;

// What an iteration keeps in a buffer of its own: buffer[indices] = value, within loops.
struct Temporary {
  ir::Buffer buffer;
  std::vector<ir::Expr> indices;
  ir::Expr value;
  std::vector<Dimension> loops;
};

// The variable that an index is, or null.
ir::Var variable(const ir::Expr& index) {
  const auto* ref = std::get_if<ir::VarRef>(&index->node);
  return ref == nullptr ? nullptr : ref->var;
}

const Dimension* find_dimension(const std::vector<Dimension>& all, const ir::Var& var) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Dimension& d) { return d.var == var; });
  return found == all.end() ? nullptr : &*found;
}

bool same_element(const std::vector<ir::Expr>& a, const std::vector<ir::Expr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ir::Expr& x, const ir::Expr& y) { return ir::structurally_equal(x, y); });
}

// The parts of a conjunction.
void add_conjuncts(const ir::Expr& condition, std::vector<ir::Expr>& all) {
  const auto* node = std::get_if<ir::Binary>(&condition->node);
  if (node == nullptr || node->op != ir::BinaryOp::logical_and) return all.push_back(condition);
  add_conjuncts(node->left, all);
  add_conjuncts(node->right, all);
}

ir::Expr conjunction(const std::vector<ir::Expr>& parts) {
  ir::Expr all;
  for (const ir::Expr& part : parts) all = all ? ir::binary(ir::BinaryOp::logical_and, all, part) : part;
  return all;
}

bool mentions_any(const ir::Expr& expr, const std::vector<Dimension>& dimensions) {
  return std::any_of(dimensions.begin(), dimensions.end(),
                     [&](const Dimension& dimension) { return mentions(expr, dimension.var); });
}

// s = s + factor * other
struct Summand {
  const ir::Binary* product = nullptr;
  ir::Expr condition;  // under which it is not 0, or null
};

// Reads one nest from its first statement to its last, with temporaries replaced by what was put into them.
class NestReader : public ir::Rewriter {
 public:
  NestReader(const c::IntegerFacts& facts, const UseCounts& uses,
             const std::unordered_set<const ir::BufferData*>& sharing, const std::vector<Dimension>& threads)
      : facts_(facts), uses_(uses), sharing_(sharing), threads_(threads) {}

  std::vector<ThreadGemm> read(const ir::Stmt& nest) {
    uses_here_ = count_uses(nest);
    ir::walk(
        nest,
        [&](const ir::Stmt& stmt) {
          if (const auto* store = std::get_if<ir::Store>(&stmt->node)) stored_.insert(store->buffer.get());
        },
        [](const ir::Expr&) {});
    const bool understood = visit(nest) && is_known_;
    return understood ? std::move(products_) : std::vector<ThreadGemm>{};
  }

 private:
  const c::IntegerFacts& facts_;
  const UseCounts& uses_;
  const std::unordered_set<const ir::BufferData*>& sharing_;
  const std::vector<Dimension>& threads_;
  UseCounts uses_here_;
  std::unordered_set<const ir::BufferData*> stored_;
  std::vector<Dimension> loops_;  // around the statement at hand
  std::vector<ir::Expr> guards_;  // likewise; the parts of their conjunction
  std::vector<Temporary> temporaries_;
  std::unordered_map<const ir::VarData*, ir::Expr> lets_;
  std::vector<ThreadGemm> products_;
  bool is_known_ = true;  // what every load gives

  bool visit(const ir::Stmt& stmt) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node))
      return std::all_of(block->body.begin(), block->body.end(), [&](const ir::Stmt& child) { return visit(child); });
    if (const auto* let = std::get_if<ir::Let>(&stmt->node)) {
      lets_[let->var.get()] = rewrite(let->value);
      return true;
    }
    if (const auto* store = std::get_if<ir::Store>(&stmt->node)) return visit(*store);
    if (const auto* branch = std::get_if<ir::If>(&stmt->node)) return visit(*branch);
    const auto* loop = std::get_if<ir::For>(&stmt->node);
    if (loop == nullptr || loop->kind == ir::LoopKind::parallel) return false;
    loops_.push_back({loop->vars[0], loop->extents[0]});
    const bool understood = visit(loop->body);
    loops_.pop_back();
    return understood;
  }

  bool visit(const ir::If& branch) {
    if (branch.otherwise != nullptr) return false;
    const size_t before = guards_.size();
    add_conjuncts(rewrite(branch.condition), guards_);
    const bool understood = visit(branch.then);
    guards_.resize(before);
    return understood;
  }

  bool visit(const ir::Store& store) {
    const ir::Buffer& buffer = store.buffer;
    const bool is_private = buffer->scope == ir::Scope::local || buffer->scope == ir::Scope::fragment;
    if (!is_private || buffer->base || buffer->address || sharing_.contains(buffer.get())) return false;
    const std::vector<ir::Expr> indices = rewrite_all(store.indices);
    if (const Summand added = summand(store); added.product != nullptr) {
      const size_t before = guards_.size();
      if (added.condition) add_conjuncts(rewrite(added.condition), guards_);
      const bool understood = add(store.buffer, indices, *added.product);
      guards_.resize(before);
      return understood;
    }
    if (uses_.at(buffer.get()) != uses_here_.at(buffer.get())) return false;
    ir::Expr value = rewrite(store.value);
    if (!guards_.empty()) value = ir::select(conjunction(guards_), value, rewrite(ir::load(buffer, store.indices)));
    temporaries_.push_back({buffer, indices, std::move(value), loops_});
    return true;
  }

  static Summand summand(const ir::Store& store) {
    const auto* sum = std::get_if<ir::Binary>(&store.value->node);
    if (sum == nullptr || sum->op != ir::BinaryOp::add || store.value->type != ir::kFloat32) return {};
    for (const auto& [old, added] : {std::pair(sum->left, sum->right), std::pair(sum->right, sum->left)}) {
      const auto* load = std::get_if<ir::Load>(&old->node);
      if (load == nullptr || load->buffer != store.buffer || !same_element(load->indices, store.indices)) continue;
      const auto* choice = std::get_if<ir::Select>(&added->node);
      const bool or_nothing = choice != nullptr && is_zero(choice->otherwise);
      const auto* product = std::get_if<ir::Binary>(&(or_nothing ? choice->then : added)->node);
      if (product != nullptr && product->op == ir::BinaryOp::mul)
        return {product, or_nothing ? choice->condition : nullptr};
    }
    return {};
  }

  static bool is_zero(const ir::Expr& expr) {
    const auto* number = std::get_if<ir::FloatImm>(&expr->node);
    return number != nullptr && number->value == 0;
  }

  // Values of temporaries
  // -------------------------------------------------------------------------------------------

  ir::Expr rewrite(const ir::Expr& expr) override {
    if (const auto* ref = std::get_if<ir::VarRef>(&expr->node)) {
      const auto let = lets_.find(ref->var.get());
      return let == lets_.end() ? expr : let->second;
    }
    const auto* load = std::get_if<ir::Load>(&expr->node);
    if (load == nullptr || !stored_.contains(load->buffer.get())) return rewrite_children(expr);
    const std::vector<ir::Expr> indices = rewrite_all(load->indices);
    for (size_t k = temporaries_.size(); k-- > 0;) {
      if (temporaries_[k].buffer != load->buffer || is_apart(temporaries_[k].indices, indices)) continue;
      const ir::Expr value = value_at(temporaries_[k], indices);
      if (value == nullptr) break;
      return value;
    }
    is_known_ = false;
    return expr;
  }

  static bool is_apart(const std::vector<ir::Expr>& a, const std::vector<ir::Expr>& b) {
    for (size_t axis = 0; axis < a.size(); ++axis) {
      const auto here = ir::constant_int(a[axis]), there = ir::constant_int(b[axis]);
      if (here && there && *here != *there) return true;
    }
    return false;
  }

  // Null unless the loops around the temporary that have ended went over the element, once.
  ir::Expr value_at(const Temporary& temporary, const std::vector<ir::Expr>& indices) const {
    size_t common = 0;
    while (common < std::min(loops_.size(), temporary.loops.size()) &&
           loops_[common].var == temporary.loops[common].var)
      ++common;
    const std::vector<Dimension> ended(temporary.loops.begin() + static_cast<std::ptrdiff_t>(common),
                                       temporary.loops.end());
    std::unordered_map<const ir::VarData*, ir::Expr> bound;
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      const ir::Var var = variable(temporary.indices[axis]);
      const Dimension* loop = var ? find_dimension(ended, var) : nullptr;
      if (loop == nullptr) {
        if (!ir::structurally_equal(temporary.indices[axis], indices[axis])) return nullptr;
        continue;
      }
      const auto extent = ir::constant_int(loop->extent);
      const ir::Bounds range = facts_.range(indices[axis]);
      if (!extent || range.lo < 0 || range.hi >= *extent) return nullptr;
      if (!bound.emplace(var.get(), indices[axis]).second) return nullptr;
    }
    if (bound.size() != ended.size()) return nullptr;
    return ir::substitute(temporary.value, [&](const ir::Var& var) -> ir::Expr {
      const auto found = bound.find(var.get());
      return found == bound.end() ? nullptr : found->second;
    });
  }

  // GEMMs
  // --------------------------------------------------------------------------------------------------------

  bool add(const ir::Buffer& sum, const std::vector<ir::Expr>& element, const ir::Binary& product) {
    for (const ThreadGemm& other : products_)
      if (other.sum == sum && !is_apart(other.element, element)) return false;
    ThreadGemm found{sum, element, {}, {rewrite(product.left), {}}, {rewrite(product.right), {}}, {}};
    if (!take_dimensions(found) || !take_steps(found)) return false;
    orient(found);
    if (!take_guards(found)) return false;
    products_.push_back(std::move(found));
    return true;
  }

  bool take_dimensions(ThreadGemm& product) const {
    for (const ir::Expr& index : product.element) {
      if (is_the_same_for_all(index)) continue;
      const ir::Var var = variable(index);
      const Dimension* dimension = var ? find_dimension(loops_, var) : nullptr;
      if (var && dimension == nullptr) dimension = find_dimension(threads_, var);
      if (dimension == nullptr || is_taken(product, var)) return false;
      if (ir::constant_int(dimension->extent).value_or(0) < 1) return false;
      const bool left = mentions(product.rows.factor, var), right = mentions(product.columns.factor, var);
      (left && right ? product.common
       : right       ? product.columns.dimensions
                     : product.rows.dimensions)
          .push_back(*dimension);
    }
    return std::all_of(threads_.begin(), threads_.end(), [&](const Dimension& thread) {
      if (is_taken(product, thread.var)) return true;
      for (GemmSide* side : {&product.rows, &product.columns}) side->factor = at_zero(side->factor, thread.var);
      return ir::constant_int(thread.extent) == 1;
    });
  }

  static ir::Expr at_zero(const ir::Expr& expr, const ir::Var& var) {
    return ir::substitute(
        expr, [&](const ir::Var& other) -> ir::Expr { return other == var ? ir::int_imm(0, var->type) : nullptr; });
  }

  bool is_the_same_for_all(const ir::Expr& index) const {
    const auto differs = [&](const Dimension& dimension) { return mentions(index, dimension.var); };
    return c::is_index_arithmetic(index) && std::none_of(loops_.begin(), loops_.end(), differs) &&
           std::none_of(threads_.begin(), threads_.end(), differs);
  }

  static bool is_taken(const ThreadGemm& product, const ir::Var& var) {
    return product.rows.has(var) || product.columns.has(var) || find_dimension(product.common, var) != nullptr;
  }

  // The loops that the element does not name. They have the same length for all elements, which for several is known.
  bool take_steps(ThreadGemm& product) const {
    for (const Dimension& loop : loops_)
      if (!is_taken(product, loop.var)) product.steps.push_back(loop);
    const auto is_plain = [&](const Dimension& step) {
      if (product.steps.size() > 1) return ir::constant_int(step.extent).value_or(0) >= 1;
      return c::is_index_arithmetic(step.extent) && !mentions_any(step.extent, loops_) &&
             !mentions_any(step.extent, threads_);
    };
    return !product.steps.empty() && std::all_of(product.steps.begin(), product.steps.end(), is_plain);
  }

  // What a guard leaves out adds 0 instead. Each part must be about one side.
  bool take_guards(ThreadGemm& product) const {
    for (GemmSide* side : {&product.rows, &product.columns}) {
      const GemmSide& other = side == &product.rows ? product.columns : product.rows;
      std::vector<ir::Expr> parts;
      for (ir::Expr guard : guards_) {
        const bool is_here = mentions_any(guard, side->dimensions), is_there = mentions_any(guard, other.dimensions);
        if (is_here && is_there) return false;
        if (!is_here && (is_there || side == &product.rows)) continue;
        for (const Dimension& thread : threads_)
          if (!is_taken(product, thread.var)) guard = at_zero(guard, thread.var);
        parts.push_back(std::move(guard));
      }
      if (parts.empty()) continue;
      side->factor = ir::select(conjunction(parts), side->factor, ir::float_imm(0.0));
      side->is_guarded = true;
    }
    return true;
  }

  // Columns are what is walked along in memory, if that is to be seen: then what the last thread variable counts.
  void orient(ThreadGemm& product) const {
    const bool rows = walks_along(product.rows), columns = walks_along(product.columns);
    const bool is_last = !threads_.empty() && product.rows.has(threads_.back().var);
    if (rows != columns ? rows : is_last) std::swap(product.rows, product.columns);
    for (GemmSide* side : {&product.rows, &product.columns}) sort(*side);
  }

  static bool walks_along(const GemmSide& side) {
    bool walks = false;
    ir::walk(side.factor, [&](const ir::Expr& part) {
      const auto* load = std::get_if<ir::Load>(&part->node);
      for (const Dimension& dimension : side.dimensions)
        walks = walks || (load != nullptr && !load->indices.empty() && mentions(load->indices.back(), dimension.var));
    });
    return walks;
  }

  // By the step in memory from one to the next, as far as that is to be seen.
  static void sort(GemmSide& side) {
    using Step = std::pair<int64_t, int64_t>;  // the axis, the negative coefficient
    std::unordered_map<const ir::VarData*, Step> steps;
    ir::walk(side.factor, [&](const ir::Expr& part) {
      const auto* load = std::get_if<ir::Load>(&part->node);
      for (size_t axis = 0; load != nullptr && axis < load->indices.size(); ++axis) {
        const auto form = ir::affine(load->indices[axis]);
        for (const Dimension& dimension : side.dimensions)
          if (mentions(load->indices[axis], dimension.var))
            steps.emplace(dimension.var.get(), Step{axis, form ? -form->coefficient(dimension.var) : 0});
      }
    });
    std::stable_sort(side.dimensions.begin(), side.dimensions.end(), [&](const Dimension& a, const Dimension& b) {
      const auto step = [&](const Dimension& d) {
        return steps.contains(d.var.get()) ? steps.at(d.var.get()) : Step{-1, 0};
      };
      return step(a) < step(b);
    });
  }
};

}  // namespace

bool GemmSide::has(const ir::Var& var) const { return find_dimension(dimensions, var) != nullptr; }

int64_t GemmSide::size() const {
  int64_t size = 1;
  for (const Dimension& dimension : dimensions) size *= ir::constant_int(dimension.extent).value_or(1);
  return size;
}

std::vector<ThreadGemm> GemmFinder::find(const ir::Stmt& nest, const std::vector<Dimension>& threads) const {
  if (!std::holds_alternative<ir::For>(nest->node)) return {};
  return NestReader(facts_, uses_, sharing_, threads).read(nest);
}

}  // namespace tilepilot::targets::cpu
