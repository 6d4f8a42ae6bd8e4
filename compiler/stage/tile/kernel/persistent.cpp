// `for i, j in T.Persistent([m, n], wave_size, index, group_size)`: the tiles of a grid that block `index` of
// `wave_size` takes. Groups of `group_size` positions of the last axis come together: the order is that of the box
// [ceildiv(n, group), m, group], whose first and last axes make up the grid's last.
#include <fmt/format.h>

#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/kernel/loops.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

class PersistentLoop final : public StagedLoop {
 public:
  static constexpr Type kType{"tile loop"};
  PersistentLoop(TileContext& context, std::vector<ir::Expr> domain, ir::Expr waves, ir::Expr index)
      : context_(context), domain_(std::move(domain)), wave_size_(std::move(waves)), index_(std::move(index)) {}
  const Type& type() const override { return kType; }

  void set_group(ir::Expr size, Span span) {
    const ir::Expr& last = domain_.back();
    ir::Expr fitting = fold_binary(ir::BinaryOp::min, fold_cast(std::move(size), last->type, span), last, span);
    group_ = fold_binary(ir::BinaryOp::max, constant(1, span), std::move(fitting), span);
    box_ = {ceil_div(last, group_, span)};
    box_.insert(box_.end(), domain_.begin(), domain_.end() - 1);
    box_.push_back(group_);
  }

  Status run(Interpreter&, const std::function<Status(Value)>& bind_and_run, Span span) override {
    ProgramBuilder& builder = *TRY(require_kernel(context_, "`T.Persistent`", span));
    ir::Expr count = box_[0];
    for (size_t axis = 1; axis < box_.size(); ++axis) count = fold_binary(ir::BinaryOp::mul, count, box_[axis], span);
    ir::Var wave = builder.make_var("wave", count->type);
    auto body = [&] { return one_wave(builder, wave, count, bind_and_run, span); };
    ir::Stmt block = TRY(builder.nested(BlockKind::serial_loop, {wave}, body, span));
    return builder.emit(ir::For{ir::LoopKind::serial, {wave}, {ceil_div(count, wave_size_, span)}, 0, std::move(block)},
                        span);
  }

 private:
  ir::Expr constant(int64_t value, Span span) const { return ir::int_imm(value, domain_.back()->type, span); }
  ir::Expr ceil_div(const ir::Expr& a, const ir::Expr& b, Span span) const {
    ir::Expr more = fold_binary(ir::BinaryOp::sub, b, constant(1, span), span);
    return fold_binary(ir::BinaryOp::floor_div, fold_binary(ir::BinaryOp::add, a, std::move(more), span), b, span);
  }

  // The block's tile of one wave: past the last one it leaves the loop; one past the grid's last axis it passes over.
  Status one_wave(ProgramBuilder& builder, const ir::Var& wave, const ir::Expr& count,
                  const std::function<Status(Value)>& bind_and_run, Span span) const {
    ir::Expr first = fold_binary(ir::BinaryOp::mul, ir::var_ref(wave, span), wave_size_, span);
    ir::Expr rest = TRY(builder.let("tile", fold_binary(ir::BinaryOp::add, std::move(first), index_, span), span));
    ir::If past{fold_binary(ir::BinaryOp::le, count, rest, span), nullptr, nullptr};
    past.then = TRY(builder.nested(
        BlockKind::branch, {}, [&] { return builder.emit(ir::Break{}, span); }, span));
    TRY(builder.emit(std::move(past), span));
    std::vector<ir::Expr> position(box_.size());
    for (size_t axis = box_.size(); axis-- > 1;) {
      position[axis] = fold_binary(ir::BinaryOp::floor_mod, rest, box_[axis], span);
      rest = fold_binary(ir::BinaryOp::floor_div, rest, box_[axis], span);
    }
    std::vector<Value> coordinates;
    for (size_t axis = 1; axis + 1 < box_.size(); ++axis)
      coordinates.push_back(make_expr(context_, TRY(builder.let("", position[axis], span))));
    ir::Expr group_start = fold_binary(ir::BinaryOp::mul, std::move(rest), group_, span);
    ir::Expr last = fold_binary(ir::BinaryOp::add, std::move(group_start), position.back(), span);
    last = TRY(builder.let("", std::move(last), span));
    coordinates.push_back(make_expr(context_, last));
    Value bound = coordinates.size() == 1 ? coordinates[0] : make_tuple(std::move(coordinates));
    ir::If inside{fold_binary(ir::BinaryOp::lt, last, domain_.back(), span), nullptr, nullptr};
    inside.then = TRY(builder.nested(
        BlockKind::branch, {}, [&] { return bind_and_run(bound); }, span));
    return builder.emit(std::move(inside), span);
  }

  TileContext& context_;
  std::vector<ir::Expr> domain_;
  ir::Expr wave_size_, index_, group_;
  std::vector<ir::Expr> box_;
};

Result<Value> persistent(TileArguments& arguments) {
  TRY(require_kernel(arguments.context(), "`T.Persistent`", arguments.span()));
  auto number = [&](const Value& value, std::string_view what) -> Result<ir::Expr> {
    return fold_cast(TRY(to_index(value, what, arguments.span())), ir::kInt32, arguments.span());
  };
  std::vector<ir::Expr> domain;
  for (const Value& extent : TRY(arguments.context().interpreter.to_vector(arguments[0], arguments.span(0))))
    domain.push_back(TRY(number(extent, "an extent of `T.Persistent`")));
  if (domain.empty())
    return make_error(DiagnosticKind::value_error, arguments.span(0), "the domain of `T.Persistent` is empty");
  auto loop = std::make_shared<PersistentLoop>(arguments.context(), std::move(domain),
                                               TRY(number(arguments[1], "`wave_size` of `T.Persistent`")),
                                               TRY(number(arguments[2], "`index` of `T.Persistent`")));
  constexpr int64_t kGroup = 8;
  Value group = arguments.has(3) ? arguments[3] : Value(kGroup);
  loop->set_group(TRY(number(group, "`group_size` of `T.Persistent`")), arguments.span());
  return Value(std::move(loop));
}

}  // namespace

const std::vector<TileFunction>& persistent_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"Persistent", "domain, wave_size, index, group_size=",
       "a loop over the tiles of a grid that one of `wave_size` blocks takes", persistent},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
