#include "compiler/stage/tile/kernel/thread_return.h"

#include <utility>

#include "compiler/ir/visit.h"

namespace tilepilot::stage {
namespace {

using List = std::vector<ir::Stmt>;

class Structure {
 public:
  explicit Structure(const ir::Buffer& flag) : flag_(flag) {}

  // `asked`: what comes after the list looks at the flag.
  List list(const List& given, bool asked) {
    List done;
    for (size_t at = 0; at < given.size(); ++at) {
      const ir::Stmt& stmt = given[at];
      if (is_return(stmt)) {
        if (asked) done.push_back(stmt);
        return done;
      }
      if (!may_return(stmt)) {
        done.push_back(stmt);
        continue;
      }
      after(done, stmt, List(given.begin() + static_cast<std::ptrdiff_t>(at) + 1, given.end()), asked);
      return done;
    }
    return done;
  }

  bool uses_flag(const List& statements) const {
    for (const ir::Stmt& stmt : statements)
      if (may_return(stmt)) return true;
    return false;
  }

 private:
  const ir::Buffer& flag_;

  bool is_return(const ir::Stmt& stmt) const {
    const auto* store = ir::as<ir::Store>(stmt);
    return store && store->buffer == flag_;
  }

  bool may_return(const ir::Stmt& stmt) const {
    bool found = false;
    ir::walk(
        stmt, [&](const ir::Stmt& part) { found |= is_return(part); }, [](const ir::Expr&) {});
    return found;
  }

  bool always_returns(const ir::Stmt& stmt) const {
    if (!stmt) return false;
    if (is_return(stmt)) return true;
    if (const auto* choice = ir::as<ir::If>(stmt))
      return always_returns(choice->then) && always_returns(choice->otherwise);
    if (const auto* block = ir::as<ir::Block>(stmt))
      for (const ir::Stmt& part : block->body)
        if (always_returns(part)) return true;
    return false;
  }

  static List parts(const ir::Stmt& stmt) {
    if (!stmt) return {};
    const auto* block = ir::as<ir::Block>(stmt);
    return block ? block->body : List{stmt};
  }

  static ir::Stmt block(List list, Span span) { return ir::make_stmt(ir::Block{std::move(list)}, span); }

  // Appends what a statement becomes that may return, and what follows it.
  void after(List& done, const ir::Stmt& stmt, List rest, bool asked) {
    if (const auto* inner = ir::as<ir::Block>(stmt)) {
      List all = inner->body;
      all.insert(all.end(), rest.begin(), rest.end());
      all = list(all, asked);
      done.insert(done.end(), all.begin(), all.end());
      return;
    }
    if (const auto* choice = ir::as<ir::If>(stmt))
      return after_branch(done, *choice, stmt->span, std::move(rest), asked);
    done.push_back(body_of(stmt));
    unless_returned(done, std::move(rest), stmt->span, asked);
  }

  void after_branch(List& done, const ir::If& choice, Span span, List rest, bool asked) {
    List then = parts(choice.then), otherwise = parts(choice.otherwise);
    const bool then_ends = always_returns(choice.then), otherwise_ends = always_returns(choice.otherwise);
    const bool decided = (then_ends || !uses_flag(then)) && (otherwise_ends || !uses_flag(otherwise));
    if (decided) {  // the rest belongs to the branch that does not return
      List& goes_on = then_ends ? otherwise : then;
      if (!then_ends || !otherwise_ends) goes_on.insert(goes_on.end(), rest.begin(), rest.end());
    }
    const bool asks = asked || (!decided && !rest.empty());
    List first = list(then, asks), second = list(otherwise, asks);
    const Span of_then = choice.then->span, of_else = choice.otherwise ? choice.otherwise->span : span;
    if (first.empty() && !second.empty()) {
      done.push_back(ir::make_stmt(ir::If{ir::unary(ir::UnaryOp::logical_not, choice.condition, span),
                                          block(std::move(second), of_else), nullptr},
                                   span));
    } else if (!first.empty()) {
      ir::Stmt other = second.empty() ? nullptr : block(std::move(second), of_else);
      done.push_back(ir::make_stmt(ir::If{choice.condition, block(std::move(first), of_then), std::move(other)}, span));
    }
    if (!decided) unless_returned(done, std::move(rest), span, asked);
  }

  void unless_returned(List& done, List rest, Span span, bool asked) {
    if (rest.empty()) return;
    done.push_back(ir::make_stmt(ir::If{going_on(span), block(list(rest, asked), span), nullptr}, span));
  }

  ir::Expr returned(Span span) const { return ir::load(flag_, {ir::int_imm(0, ir::kInt32, span)}, span); }
  ir::Expr going_on(Span span) const { return ir::unary(ir::UnaryOp::logical_not, returned(span), span); }

  // A loop whose iterations may return, after which those that follow do nothing; or what warpgroups of their own do.
  ir::Stmt body_of(const ir::Stmt& stmt) {
    const Span span = stmt->span;
    if (const auto* roles = ir::as<ir::Roles>(stmt))
      return ir::make_stmt(ir::Roles{roles->groups, block(list(parts(roles->body), true), span)}, span);
    if (const auto* loop = ir::as<ir::While>(stmt)) {
      ir::While fresh = *loop;
      fresh.body = ending(loop->body, span);
      return ir::make_stmt(std::move(fresh), span);
    }
    ir::For fresh = *ir::as<ir::For>(stmt);
    if (fresh.kind == ir::LoopKind::serial) {
      fresh.body = ending(fresh.body, span);
    } else {
      fresh.body = block(
          {ir::make_stmt(ir::If{going_on(span), block(list(parts(fresh.body), true), span), nullptr}, span)}, span);
    }
    return ir::make_stmt(std::move(fresh), span);
  }

  ir::Stmt ending(const ir::Stmt& body, Span span) {
    List all = list(parts(body), true);
    all.push_back(
        ir::make_stmt(ir::If{returned(span), block({ir::make_stmt(ir::Break{}, span)}, span), nullptr}, span));
    return block(std::move(all), span);
  }
};

}  // namespace

const ir::Buffer& ThreadReturn::flag(Span span) {
  if (!flag_)
    flag_ = std::make_shared<ir::BufferData>(
        ir::BufferData{"returned", ir::kBool, ir::Scope::local, {ir::int_imm(1)}, {}, span, nullptr});
  return flag_;
}

ir::Stmt ThreadReturn::statement(Span span) {
  return ir::make_stmt(ir::Store{flag(span), {ir::int_imm(0, ir::kInt32, span)}, ir::bool_imm(true, span)}, span);
}

ir::Kernel ThreadReturn::applied(ir::Kernel kernel) {
  if (!flag_) return kernel;
  Structure structure(flag_);
  const Span span = kernel.body->span;
  List body = structure.list({kernel.body}, false);
  if (structure.uses_flag(body)) {
    kernel.allocations.push_back(flag_);
    body.insert(body.begin(),
                ir::make_stmt(ir::Store{flag_, {ir::int_imm(0, ir::kInt32, span)}, ir::bool_imm(false, span)}, span));
  }
  kernel.body = ir::make_stmt(ir::Block{std::move(body)}, span);
  flag_ = nullptr;
  return kernel;
}

}  // namespace tilepilot::stage
