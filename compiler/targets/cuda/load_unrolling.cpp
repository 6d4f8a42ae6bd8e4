#include "compiler/targets/cuda/load_unrolling.h"

#include <string_view>

#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/statements.h"

namespace tilepilot::targets::cuda {

using ir::Stmt;

namespace {

constexpr int64_t kMostOnTheWay = 128;   // that a thread has on the way
constexpr int64_t kMostUnrolled = 4096;  // of statements and expressions, in all iterations

constexpr std::string_view kVectorCopy = "copy_vector<", kVectorOfZeros = "zero_vector<";

bool stands_in_tensor(const ir::Buffer& buffer) { return buffer->scope == ir::Scope::global; }

// What an iteration of a loop consists of.
class Iteration {
 public:
  explicit Iteration(const Stmt& body) { add(body, 1); }

  // Whether so many of them may stand one after the other, and gain by it: later loads do not wait for earlier ones.
  bool gains(int64_t times) const {
    return fits_ && bytes_ > 0 && bytes_ * times <= kMostOnTheWay && nodes_ * times <= kMostUnrolled;
  }

 private:
  bool fits_ = true;  // each thread goes through it for itself, writes no tensor, and its length is known
  int64_t bytes_ = 0, nodes_ = 0;

  void add(const Stmt& stmt, int64_t times) {
    if (const auto* loop = ir::as<ir::For>(stmt)) {
      const auto extent = loop->vars.size() == 1 ? ir::constant_int(loop->extents[0]) : std::nullopt;
      fits_ = fits_ && extent && *extent <= kMostUnrolled && loop->kind == ir::LoopKind::unrolled;
      if (fits_) add(loop->body, times * *extent);
    } else if (const auto* list = ir::as<ir::Block>(stmt)) {
      for (const Stmt& part : list->body) add(part, times);
    } else if (const auto* choice = ir::as<ir::If>(stmt)) {
      add(choice->condition, times);
      add(choice->then, times);
      if (choice->otherwise) add(choice->otherwise, times);
    } else if (const auto* let = ir::as<ir::Let>(stmt)) {
      add(let->value, times);
    } else if (const auto* store = ir::as<ir::Store>(stmt)) {
      fits_ = fits_ && !stands_in_tensor(store->buffer);
      for (const ir::Expr& index : store->indices) add(index, times);
      add(store->value, times);
    } else if (const auto* call = ir::as<ir::ExternCall>(stmt)) {
      add(*call, times);
    } else {
      fits_ = false;
    }
  }

  void add(const ir::Expr& expr, int64_t times) {
    ir::walk(expr, [&](const ir::Expr& part) {
      nodes_ += times;
      const auto* load = ir::as<ir::Load>(part);
      if (load && stands_in_tensor(load->buffer)) bytes_ += times * std::max<int64_t>(part->type.bytes(), 4);
    });
  }

  void add(const ir::ExternCall& call, int64_t times) {
    nodes_ += times;
    const auto region = [&](size_t number) { return std::get_if<ir::Region>(&call.arguments[number]); };
    const bool copies = call.function.starts_with(kVectorCopy) && call.arguments.size() == 2 && region(0) && region(1);
    fits_ = fits_ && (call.function.starts_with(kVectorOfZeros) || (copies && !stands_in_tensor(region(0)->buffer)));
    if (copies && stands_in_tensor(region(1)->buffer))
      bytes_ += times * std::stoll(call.function.substr(kVectorCopy.size()));
  }
};

class Unrolling : public ir::Rewriter {
 public:
  using ir::Rewriter::rewrite;
  Stmt rewrite(const Stmt& stmt) override {
    const Stmt inner = rewrite_children(stmt);
    const auto* loop = inner ? ir::as<ir::For>(inner) : nullptr;
    if (loop == nullptr || loop->kind != ir::LoopKind::serial || loop->vars.size() != 1) return inner;
    const auto extent = ir::constant_int(loop->extents[0]);
    if (!extent || *extent > kMostOnTheWay || !Iteration(loop->body).gains(*extent)) return inner;
    ir::For unrolled = *loop;
    unrolled.kind = ir::LoopKind::unrolled;
    return ir::make_stmt(std::move(unrolled), inner->span);
  }
};

}  // namespace

Stmt unroll_loads(const Stmt& body) { return Unrolling().rewrite(body); }

}  // namespace tilepilot::targets::cuda
