#include "compiler/targets/cpu/plan/gemm_tiles.h"

#include "compiler/targets/cpu/plan/gemm_operands.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kSteps = 128;      // of one `gemm`, at most: its operands stay in the first caches
constexpr int64_t kFewestSteps = 8;  // of a product: for each its sums are loaded and stored

// The sum of a product with its axes as a matrix: those whose index is the same for all, then rows, then columns.
struct SumTile {
  ir::Buffer tile;
  std::vector<size_t> fixed, rows, columns;  // axes of the program's buffer

  friend bool operator==(const SumTile& a, const SumTile& b) {
    return a.fixed == b.fixed && a.rows == b.rows && a.columns == b.columns;
  }
};
using SumTiles = std::unordered_map<const ir::BufferData*, SumTile>;

class IntoTiles : public ir::Rewriter {
 public:
  explicit IntoTiles(const SumTiles& sums) : sums_(sums) {}
  using ir::Rewriter::rewrite;

  ir::Expr rewrite(const ir::Expr& expr) override {
    const auto* load = std::get_if<ir::Load>(&expr->node);
    const SumTile* sum = load ? tile_of(load->buffer) : nullptr;
    return sum ? ir::load(sum->tile, element(load->buffer, *sum, load->indices), expr->span) : rewrite_children(expr);
  }
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    const SumTile* sum = store ? tile_of(store->buffer) : nullptr;
    if (sum == nullptr) return rewrite_children(stmt);
    return ir::make_stmt(ir::Store{sum->tile, element(store->buffer, *sum, store->indices), rewrite(store->value)},
                         stmt->span);
  }

 private:
  const SumTiles& sums_;

  const SumTile* tile_of(const ir::Buffer& buffer) const {
    const auto found = sums_.find(buffer.get());
    return found == sums_.end() || found->second.tile == buffer ? nullptr : &found->second;
  }

  std::vector<ir::Expr> element(const ir::Buffer& buffer, const SumTile& sum, const std::vector<ir::Expr>& given) {
    const std::vector<ir::Expr> indices = rewrite_all(given);
    const std::vector<int64_t> shape = c::extents(buffer);
    std::vector<ir::Expr> result;
    for (const size_t axis : sum.fixed) result.push_back(indices[axis]);
    for (const auto* axes : {&sum.rows, &sum.columns}) {
      std::vector<ir::Expr> parts;
      std::vector<int64_t> part_extents;
      for (const size_t axis : *axes) {
        parts.push_back(indices[axis]);
        part_extents.push_back(shape[axis]);
      }
      result.push_back(flat_index(parts, part_extents));
    }
    return result;
  }
};

// Replaces a loop by the part of it that begins at `first`.
class LaterSteps : public ir::Rewriter {
 public:
  LaterSteps(const ir::Var& var, ir::Expr first, ir::Expr count)
      : var_(var), first_(std::move(first)), count_(std::move(count)), later_(ir::make_var(var->name, var->type)) {}
  using ir::Rewriter::rewrite;

  ir::Expr rewrite(const ir::Expr& expr) override {
    const auto* ref = std::get_if<ir::VarRef>(&expr->node);
    if (ref == nullptr || ref->var != var_) return rewrite_children(expr);
    return ir::binary(ir::BinaryOp::add, first_, ir::var_ref(later_));
  }
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* loop = std::get_if<ir::For>(&stmt->node);
    if (loop == nullptr || loop->vars[0] != var_) return rewrite_children(stmt);
    ir::For rest = *loop;
    rest.vars[0] = later_;
    rest.extents[0] = count_;
    rest.body = rewrite(loop->body);
    return ir::make_stmt(std::move(rest), stmt->span);
  }

 private:
  ir::Var var_;
  ir::Expr first_, count_;
  ir::Var later_;
};

int64_t count_loads(const ir::Stmt& body, const ir::Buffer& buffer) {
  int64_t count = 0;
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        for (const ir::Region* region : ir::region_accesses(stmt).reads) count += region->buffer == buffer;
      },
      [&](const ir::Expr& expr) {
        const auto* load = std::get_if<ir::Load>(&expr->node);
        count += load != nullptr && load->buffer == buffer;
      });
  return count;
}

bool is_in_regions(const ir::Stmt& body, const ir::Buffer& buffer) {
  return ir::contains(body, [&](const ir::Stmt& stmt) {
    const ir::Accesses regions = ir::region_accesses(stmt);
    const auto is_it = [&](const ir::Region* region) { return region->buffer == buffer; };
    return std::any_of(regions.reads.begin(), regions.reads.end(), is_it) ||
           std::any_of(regions.writes.begin(), regions.writes.end(), is_it);
  });
}

class GemmTiler {
 public:
  GemmTiler(const ir::Kernel& kernel, const SmallestGemm& least)
      : kernel_(kernel), least_(least), facts_(learned(kernel)), finder_(kernel, facts_) {}

  std::optional<TiledGemms> run() {
    const ir::Stmt body = visit(kernel_.body);
    if (done_.gemms.empty()) return std::nullopt;
    ir::Kernel result = kernel_;
    result.body = IntoTiles(done_.sums).rewrite(body);
    for (ir::Buffer& buffer : result.allocations)
      if (const auto sum = done_.sums.find(buffer.get()); sum != done_.sums.end()) buffer = sum->second.tile;
    result.allocations.insert(result.allocations.end(), done_.tiles.begin(), done_.tiles.end());
    return TiledGemms{std::move(result), std::move(done_.gemms)};
  }

 private:
  struct Done {
    SumTiles sums;
    std::vector<ir::Buffer> tiles;  // of operands
    std::vector<ThreadGemm> gemms;
  };

  // A product, where its sums are, and the loops that it is written as.
  struct Work {
    const ThreadGemm& product;
    const SumTile& sum;
    const ir::Stmt& nest;
  };

  const ir::Kernel& kernel_;
  const SmallestGemm least_;
  const c::IntegerFacts facts_;
  const GemmFinder finder_;
  Done done_;
  std::vector<ir::Var> around_;  // variables of the loops around what is looked at, that of the threads apart
  std::vector<Dimension> threads_;
  std::vector<const ir::If*> guards_;  // of some threads
  Span span_;
  bool is_torn_ = false;  // something would be used apart from where it is bound

  static c::IntegerFacts learned(const ir::Kernel& kernel) {
    c::IntegerFacts facts;
    facts.learn(kernel);
    return facts;
  }

  // What the threads of a block do together
  // -------------------------------------------------------------------------

  ir::Stmt visit(const ir::Stmt& stmt) {
    if (const auto* block = std::get_if<ir::Block>(&stmt->node)) {
      std::vector<ir::Stmt> body;
      for (const ir::Stmt& child : block->body) body.push_back(visit(child));
      return ir::make_stmt(ir::Block{std::move(body)}, stmt->span);
    }
    if (const auto* branch = std::get_if<ir::If>(&stmt->node)) {
      const ir::Stmt then = visit(branch->then);
      return ir::make_stmt(ir::If{branch->condition, then, branch->otherwise ? visit(branch->otherwise) : nullptr},
                           stmt->span);
    }
    const auto* loop = std::get_if<ir::For>(&stmt->node);
    if (loop == nullptr) return stmt;
    if (loop->kind == ir::LoopKind::parallel) return visit_region(*loop, stmt);
    if (const ir::Stmt turned = inside_out(stmt)) {
      const size_t before = done_.gemms.size();
      const ir::Stmt result = visit_region(std::get<ir::For>(turned->node), turned);
      if (done_.gemms.size() > before) return result;
    }
    around_.push_back(loop->vars[0]);
    ir::For result = *loop;
    result.body = visit(loop->body);
    around_.pop_back();
    return ir::make_stmt(std::move(result), stmt->span);
  }

  // Serial loops around nothing but a parallel one as the parallel one around the serial ones, or null. That is the
  // same for products, whose elements have nothing to do with each other.
  static ir::Stmt inside_out(const ir::Stmt& stmt) {
    const std::vector<ir::Stmt> all = flattened(stmt);
    const auto* loop = all.size() == 1 ? std::get_if<ir::For>(&all[0]->node) : nullptr;
    if (loop == nullptr) return nullptr;
    if (loop->kind == ir::LoopKind::parallel) return all[0];
    const ir::Stmt inner = inside_out(loop->body);
    if (inner == nullptr) return nullptr;
    ir::For threads = std::get<ir::For>(inner->node), serial = *loop;
    if (mentions(threads.extents, loop->vars[0])) return nullptr;
    serial.body = threads.body;
    threads.body = ir::make_stmt(std::move(serial), stmt->span);
    return ir::make_stmt(std::move(threads), inner->span);
  }

  ir::Stmt visit_region(const ir::For& loop, const ir::Stmt& stmt) {
    threads_.clear();
    for (size_t k = 0; k < loop.vars.size(); ++k) {
      if (!ir::constant_int(loop.extents[k])) return stmt;
      threads_.push_back({loop.vars[k], loop.extents[k]});
    }
    if (contains<ir::Sync, ir::ExternCall>(loop.body) || !stores_are_private(facts_, threads_, loop.body)) return stmt;
    const Done before = done_;
    span_ = stmt->span;
    is_torn_ = false;
    std::vector<ir::Stmt> parts = distribute(loop.body);
    if (!is_torn_ && done_.gemms.size() > before.gemms.size())
      return ir::make_stmt(ir::Block{std::move(parts)}, stmt->span);
    done_ = before;
    return stmt;
  }

  // What each thread does for itself
  // --------------------------------------------------------------------------------

  // GEMMs, and between them loops over the threads.
  std::vector<ir::Stmt> distribute(const ir::Stmt& body) {
    const std::vector<ir::Stmt> all = flattened(body);
    std::vector<ir::Stmt> result, waiting;
    for (size_t k = 0; k < all.size(); ++k) {
      std::vector<ir::Stmt> parts = tiled(all[k]);
      if (parts.empty()) {
        waiting.push_back(all[k]);
        continue;
      }
      for (const ir::Stmt& stmt : waiting)
        if (const ir::Var var = ir::bound_variable(*stmt))
          for (size_t later = k; later < all.size(); ++later) is_torn_ = is_torn_ || mentions(all[later], var);
      flush(waiting, result);
      result.insert(result.end(), parts.begin(), parts.end());
    }
    flush(waiting, result);
    return result;
  }

  void flush(std::vector<ir::Stmt>& waiting, std::vector<ir::Stmt>& result) const {
    if (!waiting.empty()) result.push_back(by_threads(ir::make_stmt(ir::Block{std::exchange(waiting, {})}, span_)));
  }

  ir::Stmt by_threads(ir::Stmt body) const {
    for (size_t k = guards_.size(); k-- > 0;) body = ir::make_stmt(ir::If{guards_[k]->condition, body, nullptr}, span_);
    ir::For loop{ir::LoopKind::parallel, {}, {}, 0, ir::make_stmt(ir::Block{{body}}, span_)};
    for (const Dimension& thread : threads_) {
      loop.vars.push_back(thread.var);
      loop.extents.push_back(thread.extent);
    }
    return ir::make_stmt(std::move(loop), span_);
  }

  bool is_uniform(const ir::Expr& expr) const {
    return !ir::has_loads(expr) && std::none_of(threads_.begin(), threads_.end(),
                                                [&](const Dimension& thread) { return mentions(expr, thread.var); });
  }

  // Empty if the statement stays as it is.
  std::vector<ir::Stmt> tiled(const ir::Stmt& stmt) {
    if (const auto* branch = std::get_if<ir::If>(&stmt->node)) return tiled_branch(*branch, stmt);
    const auto* loop = std::get_if<ir::For>(&stmt->node);
    if (loop == nullptr || loop->kind == ir::LoopKind::parallel) return {};
    const std::vector<ThreadGemm> products = finder_.find(stmt, threads_);
    if (!products.empty() && accept(products)) return multiply(stmt, products);
    if (!is_uniform(loop->extents[0]) || contains<ir::Break, ir::Continue>(loop->body)) return {};
    const size_t before = done_.gemms.size();
    around_.push_back(loop->vars[0]);
    std::vector<ir::Stmt> parts = distribute(loop->body);
    around_.pop_back();
    if (done_.gemms.size() == before) return {};
    ir::For result = *loop;
    result.body = ir::make_stmt(ir::Block{std::move(parts)}, stmt->span);
    return {ir::make_stmt(std::move(result), stmt->span)};
  }

  std::vector<ir::Stmt> tiled_branch(const ir::If& branch, const ir::Stmt& stmt) {
    if (branch.otherwise != nullptr || ir::has_loads(branch.condition)) return {};
    const bool uniform = is_uniform(branch.condition);
    const size_t before = done_.gemms.size();
    if (!uniform) guards_.push_back(&branch);
    std::vector<ir::Stmt> parts = distribute(branch.then);
    if (!uniform) guards_.pop_back();
    if (done_.gemms.size() == before) return {};
    const ir::Stmt all = ir::make_stmt(ir::Block{std::move(parts)}, stmt->span);
    return {uniform ? ir::make_stmt(ir::If{branch.condition, all, nullptr}, stmt->span) : all};
  }

  // GEMMs
  // --------------------------------------------------------------------------------------------------------

  bool accept(const std::vector<ThreadGemm>& products) const {
    return std::all_of(products.begin(), products.end(), [&](const ThreadGemm& product) {
      const int64_t rows = product.rows.size(), columns = product.columns.size();
      if (rows < least_.rows || columns < least_.columns || rows * columns < least_.elements) return false;
      if (!product.common.empty() || ((product.rows.is_guarded || product.columns.is_guarded) && products.size() > 1))
        return false;
      return count_steps(product) >= kFewestSteps && is_harmless(product) && sum_tile(product);
    });
  }

  static int64_t count_steps(const ThreadGemm& product) {
    int64_t count = 1;
    for (const Dimension& step : product.steps) count *= ir::constant_int(step.extent).value_or(kFewestSteps);
    return count;
  }

  // Threads whose guard does not hold sum up something, too. Nothing may see that, and it must not read what is not
  // there.
  bool is_harmless(const ThreadGemm& product) const {
    if (guards_.empty()) return true;
    for (const ir::If* guard : guards_)
      for (const ir::Var& var : around_)
        if (mentions(guard->condition, var)) return false;
    if (count_loads(guards_[0]->then, product.sum) != count_loads(kernel_.body, product.sum)) return false;
    return is_safe(product.rows.factor) && is_safe(product.columns.factor);
  }

  bool is_safe(const ir::Expr& factor) const {
    bool safe = true;
    ir::walk(factor, [&](const ir::Expr& part) {
      if (const auto* load = std::get_if<ir::Load>(&part->node); load && load->buffer->scope != ir::Scope::global)
        for (size_t axis = 0; axis < load->indices.size(); ++axis)
          safe = safe && facts_.in_bounds(load->indices[axis], load->buffer->shape[axis]);
      const auto* node = std::get_if<ir::Binary>(&part->node);
      const bool divides = node && (node->op == ir::BinaryOp::floor_div || node->op == ir::BinaryOp::floor_mod);
      safe = safe && !(divides && ir::constant_int(node->right).value_or(0) == 0);
    });
    return safe;
  }

  // Nullopt if the buffer has another form elsewhere.
  std::optional<SumTile> sum_tile(const ThreadGemm& product) const {
    const ir::Buffer& sum = product.sum;
    SumTile tile;
    std::vector<ir::Expr> shape;
    for (size_t axis = 0; axis < product.element.size(); ++axis) {
      const auto* ref = std::get_if<ir::VarRef>(&product.element[axis]->node);
      if (ref != nullptr && (product.rows.has(ref->var) || product.columns.has(ref->var))) continue;
      if (!facts_.in_bounds(product.element[axis], sum->shape[axis])) return std::nullopt;
      tile.fixed.push_back(axis);
      shape.push_back(sum->shape[axis]);
    }
    for (const auto& [side, axes] :
         {std::pair(&product.rows, &tile.rows), std::pair(&product.columns, &tile.columns)}) {
      for (const Dimension& dimension : side->dimensions) {
        axes->push_back(axis_of(product, dimension.var));
        if (ir::constant_int(sum->shape[axes->back()]) != ir::constant_int(dimension.extent)) return std::nullopt;
      }
      shape.push_back(ir::int_imm(side->size()));
    }
    const auto known = done_.sums.find(sum.get());
    if (known != done_.sums.end()) return known->second == tile ? std::optional(known->second) : std::nullopt;
    const size_t rank = sum->rank();
    const bool is_matrix =
        tile.fixed.size() + 2 == rank && tile.rows == std::vector{rank - 2} && tile.columns == std::vector{rank - 1};
    if (!is_matrix && is_in_regions(kernel_.body, sum)) return std::nullopt;
    ir::BufferData data = *sum;
    data.shape = std::move(shape);
    tile.tile = is_matrix ? sum : std::make_shared<ir::BufferData>(std::move(data));
    return tile;
  }

  static size_t axis_of(const ThreadGemm& product, const ir::Var& var) {
    size_t axis = 0;
    while (!mentions(product.element[axis], var)) ++axis;
    return axis;
  }

  std::vector<ir::Stmt> multiply(const ir::Stmt& nest, const std::vector<ThreadGemm>& products) {
    std::vector<ir::Stmt> result;
    for (const ThreadGemm& product : products) {
      const std::optional<SumTile> sum = sum_tile(product);
      is_torn_ = is_torn_ || !sum;
      if (!sum) continue;
      done_.sums.emplace(product.sum.get(), *sum);
      add_steps({product, *sum, nest}, result);
      done_.gemms.push_back(product);
    }
    const Dimension& step = products.front().steps.front();
    if (ir::constant_int(step.extent)) return result;
    for (const ThreadGemm& product : products)
      if (product.steps.front().var != step.var) is_torn_ = true;
    const ir::Expr count = whole_steps(step);
    const ir::Expr rest = ir::binary(ir::BinaryOp::sub, length(step), count);
    result.push_back(by_threads(LaterSteps(step.var, ir::cast(count, step.var->type), rest).rewrite(nest)));
    return result;
  }

  static ir::Expr length(const Dimension& step) {
    return ir::binary(ir::BinaryOp::max, step.extent, ir::int_imm(0, step.extent->type));
  }
  // Of a length that is known when the kernel runs: a multiple of kSteps; the threads do the rest.
  static ir::Expr whole_steps(const Dimension& step) {
    const ir::Expr size = ir::int_imm(kSteps, step.extent->type);
    return ir::binary(ir::BinaryOp::mul, ir::binary(ir::BinaryOp::floor_div, length(step), size), size);
  }

  // Of several loops the inner ones are done whole, as far as they fit into one `gemm`; around them stand the outer
  // ones, each step of them by itself.
  void add_steps(const Work& work, std::vector<ir::Stmt>& result) {
    const std::vector<Dimension>& all = work.product.steps;
    size_t cut = all.size() - 1;
    Steps steps{nullptr, nullptr, 0, {}};
    const auto length_of = [&](size_t k) { return ir::constant_int(all[k].extent).value_or(kSteps); };
    for (int64_t inside = 1; cut > 0 && inside * length_of(cut) <= kSteps; --cut) {
      inside *= length_of(cut);
      steps.inner.insert(steps.inner.begin(), all[cut]);
    }
    steps.var = all[cut].var;
    const int64_t inside = Steps{nullptr, nullptr, 1, steps.inner}.size();
    std::vector<ir::Stmt> parts;
    add_chunks(work, all[cut], kSteps / inside, steps, parts);
    if (cut == 0) return void(result.insert(result.end(), parts.begin(), parts.end()));
    ir::Stmt body = ir::make_stmt(ir::Block{std::move(parts)}, span_);
    while (cut-- > 0)
      body = ir::make_stmt(ir::For{ir::LoopKind::serial, {all[cut].var}, {all[cut].extent}, 0, body}, span_);
    result.push_back(body);
  }

  // All steps of one loop, at most so many at once.
  void add_chunks(const Work& work, const Dimension& step, int64_t most, Steps steps, std::vector<ir::Stmt>& result) {
    const ir::DType type = step.var->type;
    const ir::Var chunk = ir::make_var(step.var->name + "_0", type);
    int64_t rest = 0;
    ir::Expr chunks = ir::binary(ir::BinaryOp::floor_div, length(step), ir::int_imm(most, step.extent->type));
    steps.count = most;
    if (const auto all = ir::constant_int(step.extent)) {
      steps.count = even_part(*all, most);
      rest = *all % steps.count;
      chunks = ir::int_imm(*all / steps.count, step.extent->type);
    }
    if (ir::constant_int(chunks) == 1) {
      steps.first = ir::int_imm(0, type);
      add_gemm(work, steps, result);
    } else {
      std::vector<ir::Stmt> body;
      steps.first = ir::binary(ir::BinaryOp::mul, ir::var_ref(chunk), ir::int_imm(steps.count, type));
      add_gemm(work, steps, body);
      const ir::Stmt all = ir::make_stmt(ir::Block{std::move(body)}, span_);
      result.push_back(ir::make_stmt(ir::For{ir::LoopKind::serial, {chunk}, {chunks}, 0, all}, span_));
    }
    steps.first = ir::int_imm(ir::constant_int(chunks).value_or(0) * steps.count, type);
    steps.count = rest;
    if (rest > 0) add_gemm(work, steps, result);
  }

  // Parts of nearly the same size, of exactly the same where that does not make them much smaller.
  static int64_t even_part(int64_t all, int64_t most) {
    for (int64_t part = std::min(all, most); part * 2 > std::min(all, most); --part)
      if (all % part == 0) return part;
    const int64_t count = (all + most - 1) / most;
    return (all + count - 1) / count;
  }

  void add_gemm(const Work& work, const Steps& steps, std::vector<ir::Stmt>& result) {
    const ThreadGemm& product = work.product;
    const GemmOperand left = gemm_operand(facts_, product.rows, steps, true);
    const GemmOperand right = gemm_operand(facts_, product.columns, steps, false);
    for (const GemmOperand* operand : {&left, &right}) {
      if (operand->tile) done_.tiles.push_back(operand->tile);
      if (operand->fill) result.push_back(operand->fill);
    }
    ir::Region to{work.sum.tile, {}, std::vector<int64_t>(work.sum.fixed.size(), 1), span_};
    for (const size_t axis : work.sum.fixed) to.start.push_back(product.element[axis]);
    for (const GemmSide* side : {&product.rows, &product.columns}) {
      to.start.push_back(ir::int_imm(0));
      to.extent.push_back(side->size());
    }
    ir::Stmt multiply = ir::make_stmt(
        ir::Gemm{left.matrix, right.matrix, std::move(to), left.is_transposed, right.is_transposed}, span_);
    ir::Expr condition;
    if (product.columns.is_guarded) condition = is_finite(left.matrix, result);
    if (product.rows.is_guarded) {
      const ir::Expr other = is_finite(right.matrix, result);
      condition = condition ? ir::binary(ir::BinaryOp::logical_and, condition, other) : other;
    }
    if (condition) multiply = ir::make_stmt(ir::If{condition, multiply, by_steps(work, steps)}, span_);
    result.push_back(multiply);
  }

  // Whether all elements are, which the statements added to `before` find out: where one is not, the product with the
  // 0 that stands for a step left out is no 0.
  ir::Expr is_finite(const ir::Region& matrix, std::vector<ir::Stmt>& before) {
    ir::Region from = matrix;
    for (size_t axis = from.extent.size(); axis-- > 0;) {
      if (from.extent[axis] == 1) continue;
      ir::BufferData data;
      data.name = "largest";
      data.type = from.buffer->type;
      data.scope = ir::Scope::shared;
      ir::Region to{nullptr, {}, from.extent, {}};
      to.extent[axis] = 1;
      for (const int64_t extent : to.extent) {
        data.shape.push_back(ir::int_imm(extent));
        to.start.push_back(ir::int_imm(0));
      }
      to.buffer = std::make_shared<ir::BufferData>(std::move(data));
      done_.tiles.push_back(to.buffer);
      ir::Reduce reduce{ir::ReduceOp::abs_max, from, to, static_cast<int>(axis), true};
      reduce.nan_propagate = true;
      before.push_back(ir::make_stmt(std::move(reduce), span_));
      from = to;
    }
    return ir::math(ir::MathFn::isfinite, ir::load(from.buffer, from.start));
  }

  // What the threads do in these steps.
  ir::Stmt by_steps(const Work& work, const Steps& steps) const {
    ir::Stmt nest = work.nest;
    for (const Dimension& step : work.product.steps) {
      const ir::DType type = step.extent->type;
      if (step.var == steps.var) {
        nest = LaterSteps(step.var, steps.first, ir::int_imm(steps.count, type)).rewrite(nest);
        break;
      }
      nest = LaterSteps(step.var, ir::var_ref(step.var), ir::int_imm(1, type)).rewrite(nest);
    }
    return by_threads(nest);
  }
};

}  // namespace

std::optional<TiledGemms> tile_gemms(const ir::Kernel& kernel, const SmallestGemm& least) {
  return GemmTiler(kernel, least).run();
}

}  // namespace tilepilot::targets::cpu
