#include "compiler/targets/cpu/plan/index_delinearisation.h"

#include <set>

#include "compiler/targets/cpu/plan/linear_index_parts.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr size_t kMostAxes = 8;  // of a grid of blocks, as launches number them

// The loop over threads that the kernel is, or null.
const ir::For* sole_thread_loop(const ir::Stmt& body) {
  const std::vector<ir::Stmt> all = flattened(body);
  const auto* loop = all.size() == 1 ? std::get_if<ir::For>(&all[0]->node) : nullptr;
  return loop != nullptr && loop->kind == ir::LoopKind::parallel ? loop : nullptr;
}

// How many axes a buffer of each thread has for the threads: none where there is one thread.
size_t thread_axes(const ir::For& loop) {
  const auto is_one = [](const ir::Expr& extent) { return ir::constant_int(extent) == 1; };
  return std::all_of(loop.extents.begin(), loop.extents.end(), is_one) ? 0 : loop.vars.size();
}

// Whether each thread has elements of its own of all buffers that are not global: their last axes are its variables.
bool threads_are_apart(const ir::Kernel& kernel, const ir::For& loop) {
  const size_t axes = thread_axes(loop);
  const auto is_own = [&](const ir::Buffer& buffer) {
    return buffer->scope == ir::Scope::local && buffer->rank() >= axes;
  };
  if (!ir::sharing_buffers(kernel).empty()) return false;
  if (!std::all_of(kernel.allocations.begin(), kernel.allocations.end(), is_own)) return false;
  if (ir::contains(loop.body, [](const ir::Stmt& stmt) {
        const auto* inner = std::get_if<ir::For>(&stmt->node);
        return ir::is_tile_operator(*stmt) || (inner != nullptr && inner->kind == ir::LoopKind::parallel);
      }))
    return false;
  if (contains<ir::Atomic, ir::Barrier, ir::Check, ir::Print, ir::ExternCall, ir::Sync, ir::Async, ir::Concurrent>(
          loop.body))
    return false;
  const std::vector<Access> all = accesses({}, loop.body);
  return std::all_of(all.begin(), all.end(), [&](const Access& access) {
    if (access.buffer->scope == ir::Scope::global) return true;
    const size_t leading = access.indices.size() - axes;
    for (size_t k = 0; k < axes; ++k) {
      const auto* ref = std::get_if<ir::VarRef>(&access.indices[leading + k]->node);
      if (ref == nullptr || ref->var != loop.vars[k]) return false;
    }
    return true;
  });
}

// The body with other index arithmetic, and with other last axes of what threads own.
class BodyRewriter : public ir::Rewriter {
 public:
  BodyRewriter(IndexPartRewriter& parts, size_t thread_axes, std::vector<Dimension> axes)
      : parts_(parts), thread_axes_(thread_axes), axes_(std::move(axes)) {}
  using ir::Rewriter::rewrite;

  ir::Buffer own(const ir::Buffer& buffer) {
    ir::Buffer& own = own_[buffer.get()];
    if (own != nullptr) return own;
    ir::BufferData data = *buffer;
    data.shape.resize(data.shape.size() - thread_axes_);
    for (const Dimension& axis : axes_) data.shape.push_back(ir::int_imm(*ir::constant_int(axis.extent)));
    return own = std::make_shared<ir::BufferData>(std::move(data));
  }

  ir::Expr rewrite(const ir::Expr& expr) override {
    const auto* load = std::get_if<ir::Load>(&expr->node);
    if (load != nullptr && load->buffer->scope == ir::Scope::local)
      return ir::load(own(load->buffer), element(load->indices), expr->span);
    return c::is_index_arithmetic(expr) && parts_.is_about_numbers(expr) ? parts_.rewrite(expr)
                                                                         : rewrite_children(expr);
  }
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store == nullptr || store->buffer->scope != ir::Scope::local) return rewrite_children(stmt);
    return ir::make_stmt(ir::Store{own(store->buffer), element(store->indices), rewrite(store->value)}, stmt->span);
  }

 private:
  IndexPartRewriter& parts_;
  const size_t thread_axes_;
  const std::vector<Dimension> axes_;
  std::unordered_map<const ir::BufferData*, ir::Buffer> own_;

  std::vector<ir::Expr> element(const std::vector<ir::Expr>& given) {
    std::vector<ir::Expr> indices =
        rewrite_all({given.begin(), given.end() - static_cast<std::ptrdiff_t>(thread_axes_)});
    for (const Dimension& axis : axes_) indices.push_back(ir::var_ref(axis.var));
    return indices;
  }
};

class PlaceFinder {
 public:
  PlaceFinder(const ir::Kernel& kernel, const ir::For& loop) : kernel_(kernel), loop_(loop) { facts_.learn(kernel); }

  std::optional<DelinearisedLaunch> run() {
    for (size_t axis = kernel_.grid.size(); axis-- > 0;)
      if (!add_number(kernel_.block_vars[axis], kernel_.grid[axis])) return std::nullopt;
    for (size_t k = 0; k < loop_.vars.size(); ++k)
      if (!add_number(loop_.vars[k], loop_.extents[k])) return std::nullopt;
    while (merge_any()) {}
    take_limits();
    cuts_ = cuts(numbering_);
    if (!cuts_ || !make_places()) return std::nullopt;
    return rewritten();
  }

 private:
  // Where numbers are cut: the boundaries of their parts.
  using Cuts = std::unordered_map<const ir::VarData*, std::set<int64_t>>;
  struct Place {
    int64_t low;
    ir::Expr value;  // the place's variable, or 0
  };

  const ir::Kernel& kernel_;
  const ir::For& loop_;
  c::IntegerFacts facts_;
  LinearIndices numbering_;
  std::vector<ir::Var> numbers_;      // slowest first
  std::vector<ir::Expr> conditions_;  // around the body
  ir::Stmt body_;
  std::optional<Cuts> cuts_;
  std::unordered_map<const ir::VarData*, std::vector<Place>> places_;  // of numbers, slowest first
  std::vector<ir::Expr> guards_;                                       // where places make larger numbers
  DelinearisedLaunch result_;

  bool add_number(const ir::Var& var, const ir::Expr& extent) {
    const auto size = ir::constant_int(extent);
    if (!size || *size < 1) return false;
    numbering_.variables[var.get()] = {var, 1, 0};
    numbering_.extents[var.get()] = *size;
    numbers_.push_back(var);
    body_ = loop_.body;
    return true;
  }

  // Nullopt if the body has index arithmetic that is not made of parts.
  std::optional<Cuts> cuts(const LinearIndices& numbering) {
    Cuts found;
    IndexPartRewriter parts(facts_, numbering, [&](const IndexPart& part) {
      for (const int64_t cut : {part.low, part.high})
        if (cut > 1) found[part.number.get()].insert(cut);
      return ir::var_ref(part.number);
    });
    BodyRewriter rewriter(parts, thread_axes(loop_), {});
    rewriter.rewrite(body_);
    for (const ir::Expr& condition : conditions_) rewriter.rewrite(condition);
    if (!parts.succeeded()) return std::nullopt;
    return found;
  }

  // Numbers
  // ---------------------------------------------------------------------------------------------------------

  bool merge_any() {
    for (size_t a = 0; a < numbers_.size(); ++a)
      for (size_t b = 0; b < numbers_.size(); ++b)
        if (a != b && merge(numbers_[a], numbers_[b])) return true;
    return false;
  }

  // `upper * extent + lower` as one number, if the two occur so alone.
  bool merge(const ir::Var& upper, const ir::Var& lower) {
    const int64_t step = numbering_.extents.at(lower.get()), count = numbering_.extents.at(upper.get());
    if (step == 1 || count == 1 || step * count > c::kLargestGrid) return false;
    LinearIndices merged = numbering_;
    const ir::Var number = ir::make_var(lower->name, lower->type);
    merged.extents[number.get()] = step * count;
    for (auto& [var, part] : merged.variables) {
      if (part.number == upper) part = {number, part.low * step, part.high * step};
      if (part.number == lower) part = {number, part.low, part.high == 0 ? step : part.high};
    }
    const auto found = cuts(merged);
    if (!found || (found->contains(number.get()) && found->at(number.get()).contains(step))) return false;
    numbering_ = std::move(merged);
    std::erase(numbers_, lower);
    std::replace(numbers_.begin(), numbers_.end(), upper, number);
    return true;
  }

  // `if i < 1000` around all shortens the number.
  void take_limits() {
    IndexPartRewriter parts(facts_, numbering_, [](const IndexPart& part) { return ir::var_ref(part.number); });
    while (true) {
      const std::vector<ir::Stmt> all = flattened(body_);
      const auto* branch = all.size() == 1 ? std::get_if<ir::If>(&all[0]->node) : nullptr;
      if (branch == nullptr || branch->otherwise != nullptr) return;
      take_condition(parts, branch->condition);
      body_ = branch->then;
    }
  }

  void take_condition(IndexPartRewriter& parts, const ir::Expr& condition) {
    const auto* node = std::get_if<ir::Binary>(&condition->node);
    if (node != nullptr && node->op == ir::BinaryOp::logical_and) {
      take_condition(parts, node->left);
      return take_condition(parts, node->right);
    }
    const auto limit = node != nullptr && node->op == ir::BinaryOp::lt ? ir::constant_int(node->right) : std::nullopt;
    const ir::Var number = limit && *limit > 0 ? parts.number(node->left) : nullptr;
    if (number == nullptr) return conditions_.push_back(condition);
    int64_t& extent = numbering_.extents.at(number.get());
    extent = std::min(extent, *limit);
  }

  // The launch
  // ----------------------------------------------------------------------------------------------------------

  bool make_places() {
    for (const ir::Var& number : numbers_) {
      const int64_t extent = numbering_.extents.at(number.get());
      std::vector<int64_t> lows{1};
      for (const int64_t cut : (*cuts_)[number.get()]) {
        if (cut >= extent) break;
        if (cut % lows.back() != 0) return false;
        lows.push_back(cut);
      }
      std::vector<Place>& places = places_[number.get()];
      for (size_t k = lows.size(); k-- > 0;) {
        const bool is_top = k + 1 == lows.size();
        const int64_t count = is_top ? (extent + lows[k] - 1) / lows[k] : lows[k + 1] / lows[k];
        places.push_back({lows[k], add_place(number, count)});
      }
      if (extent % lows.back() != 0)
        guards_.push_back(ir::binary(ir::BinaryOp::lt, from_places({number, 1, 0}), ir::int_imm(extent, number->type)));
      result_.are_taken_apart = result_.are_taken_apart || lows.size() > 1;
    }
    return true;
  }

  ir::Expr add_place(const ir::Var& number, int64_t count) {
    if (count == 1) return ir::int_imm(0, number->type);
    result_.all.push_back({ir::make_var(number->name, number->type), ir::int_imm(count, number->type)});
    return ir::var_ref(result_.all.back().var);
  }

  ir::Expr from_places(const IndexPart& part) const {
    ir::Expr sum;
    for (const Place& place : places_.at(part.number.get())) {
      if (place.low < part.low || (part.high > 0 && place.low >= part.high) || ir::constant_int(place.value)) continue;
      ir::Expr value = place.value;
      if (place.low > part.low)
        value = ir::binary(ir::BinaryOp::mul, value, ir::int_imm(place.low / part.low, value->type));
      sum = sum ? ir::binary(ir::BinaryOp::add, sum, value) : value;
    }
    return sum ? sum : ir::int_imm(0, part.number->type);
  }

  std::optional<DelinearisedLaunch> rewritten() {
    IndexPartRewriter parts(facts_, numbering_, [&](const IndexPart& part) { return from_places(part); });
    BodyRewriter rewriter(parts, thread_axes(loop_), result_.all);
    ir::Stmt body = rewriter.rewrite(body_);
    for (const ir::Expr& condition : conditions_) guards_.push_back(rewriter.rewrite(condition));
    for (size_t k = guards_.size(); k-- > 0;) body = ir::make_stmt(ir::If{guards_[k], body, nullptr}, body->span);
    if (!parts.succeeded() || result_.all.empty()) return std::nullopt;
    result_.kernel = kernel_;
    for (ir::Buffer& buffer : result_.kernel.allocations) buffer = rewriter.own(buffer);
    result_.body = ir::make_stmt(ir::Block{{body}}, body->span);
    return std::move(result_);
  }
};

// The body of places in blocks.
class Blocker : public ir::Rewriter {
 public:
  Blocker(const DelinearisedLaunch& places, const std::vector<int64_t>& sizes) : places_(places) {
    for (size_t k = 0; k < sizes.size(); ++k) add(places.all[k], sizes[k]);
  }
  using ir::Rewriter::rewrite;

  ir::Kernel run() {
    ir::Kernel result = places_.kernel;
    std::reverse(blocks_.begin(), blocks_.end());
    result.block_vars.clear();
    result.grid.clear();
    if (blocks_.empty()) blocks_.push_back({ir::make_var("b", ir::kInt32), ir::int_imm(1)});
    for (const Dimension& block : blocks_) {
      result.block_vars.push_back(block.var);
      result.grid.push_back(block.extent);
    }
    ir::Stmt body = rewrite(places_.body);
    for (const ir::Expr& guard : guards_) body = ir::make_stmt(ir::If{guard, body, nullptr}, body->span);
    ir::For loop{ir::LoopKind::parallel, {}, {}, 0, ir::make_stmt(ir::Block{{body}}, body->span)};
    result.threads = {1};
    for (const Dimension& thread : threads_) {
      loop.vars.push_back(thread.var);
      loop.extents.push_back(thread.extent);
      result.threads[0] *= *ir::constant_int(thread.extent);
    }
    for (ir::Buffer& buffer : result.allocations) buffer = own(buffer);
    result.body = ir::make_stmt(ir::Block{{ir::make_stmt(std::move(loop), body->span)}}, body->span);
    return result;
  }

  ir::Expr rewrite(const ir::Expr& expr) override {
    if (const auto* ref = std::get_if<ir::VarRef>(&expr->node)) {
      const auto found = values_.find(ref->var.get());
      return found == values_.end() ? expr : found->second;
    }
    const auto* load = std::get_if<ir::Load>(&expr->node);
    if (load == nullptr || load->buffer->scope != ir::Scope::local) return rewrite_children(expr);
    return ir::load(own(load->buffer), element(load->indices), expr->span);
  }
  ir::Stmt rewrite(const ir::Stmt& stmt) override {
    const auto* store = std::get_if<ir::Store>(&stmt->node);
    if (store == nullptr || store->buffer->scope != ir::Scope::local) return rewrite_children(stmt);
    return ir::make_stmt(ir::Store{own(store->buffer), element(store->indices), rewrite(store->value)}, stmt->span);
  }

 private:
  const DelinearisedLaunch& places_;
  std::vector<Dimension> blocks_, threads_;
  std::unordered_map<const ir::VarData*, ir::Expr> values_;
  std::vector<ir::Expr> guards_;
  std::unordered_map<const ir::BufferData*, ir::Buffer> own_;

  void add(const Dimension& place, int64_t size) {
    const ir::DType type = place.var->type;
    const int64_t extent = *ir::constant_int(place.extent);
    if (size >= extent) {
      threads_.push_back(place);
      return;
    }
    const ir::Var block = ir::make_var("b_" + place.var->name, type);
    blocks_.push_back({block, ir::int_imm((extent + size - 1) / size, type)});
    ir::Expr value = ir::var_ref(block);
    if (size > 1) {
      const ir::Var thread = ir::make_var(place.var->name, type);
      threads_.push_back({thread, ir::int_imm(size, type)});
      value = ir::binary(ir::BinaryOp::add, ir::binary(ir::BinaryOp::mul, value, ir::int_imm(size, type)),
                         ir::var_ref(thread));
      if (extent % size != 0) guards_.push_back(ir::binary(ir::BinaryOp::lt, value, ir::int_imm(extent, type)));
    }
    values_.emplace(place.var.get(), value);
  }

  ir::Buffer own(const ir::Buffer& buffer) {
    ir::Buffer& own = own_[buffer.get()];
    if (own != nullptr) return own;
    ir::BufferData data = *buffer;
    data.shape.resize(data.shape.size() - places_.all.size());
    for (const Dimension& thread : threads_) data.shape.push_back(ir::int_imm(*ir::constant_int(thread.extent)));
    return own = std::make_shared<ir::BufferData>(std::move(data));
  }

  std::vector<ir::Expr> element(const std::vector<ir::Expr>& given) {
    std::vector<ir::Expr> indices =
        rewrite_all({given.begin(), given.end() - static_cast<std::ptrdiff_t>(places_.all.size())});
    for (const Dimension& thread : threads_) indices.push_back(ir::var_ref(thread.var));
    return indices;
  }
};

}  // namespace

std::optional<DelinearisedLaunch> delinearise(const ir::Kernel& kernel) {
  const ir::For* loop = sole_thread_loop(kernel.body);
  if (loop == nullptr || !contains_loop(loop->body) || !threads_are_apart(kernel, *loop)) return std::nullopt;
  auto places = PlaceFinder(kernel, *loop).run();
  if (!places || places->all.size() > kMostAxes) return std::nullopt;
  return places;
}

ir::Kernel with_blocks(const DelinearisedLaunch& places, const std::vector<int64_t>& sizes) {
  return Blocker(places, sizes).run();
}

}  // namespace tilepilot::targets::cpu
