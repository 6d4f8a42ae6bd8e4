#include "compiler/stage/tile/kernel/loops.h"

#include <fmt/format.h>

#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr std::string_view kLoopNames[] = {"i", "j", "k", "l", "m", "n"};

ir::Expr constant(int64_t value, Span span) { return integer_literal(value, std::nullopt, span); }

// How many iterations: ceil((stop - start) / step), also for negative steps.
ir::Expr trip_count(const LoopRange& range, Span span) {
  ir::Expr distance = range.step > 0 ? fold_binary(ir::BinaryOp::sub, range.stop, range.start, span)
                                     : fold_binary(ir::BinaryOp::sub, range.start, range.stop, span);
  ir::DType type = distance->type;
  if (auto known = constant_difference(range.stop, range.start, nullptr))
    distance = ir::int_imm(range.step > 0 ? *known : -*known, type, span);
  int64_t step = range.step > 0 ? range.step : -range.step;
  ir::Expr rounded = fold_binary(ir::BinaryOp::add, distance, ir::int_imm(step - 1, type, span), span);
  return fold_binary(ir::BinaryOp::floor_div, rounded, ir::int_imm(step, type, span), span);
}

BlockKind block_kind(ir::LoopKind kind) {
  if (kind == ir::LoopKind::serial) return BlockKind::serial_loop;
  bool parallel = kind == ir::LoopKind::parallel || kind == ir::LoopKind::vectorized;
  return parallel ? BlockKind::parallel_loop : BlockKind::ordered_loop;
}

class CountingIterator final : public Iterator {
 public:
  CountingIterator(int64_t next, int64_t count, int64_t step) : next_(next), count_(count), step_(step) {}
  Result<std::optional<Value>> next(Interpreter&) override {
    if (count_-- <= 0) return std::optional<Value>();
    int64_t value = next_;
    next_ += step_;
    return std::optional<Value>(Value(value));
  }

 private:
  int64_t next_, count_, step_;
};

Result<Value> make_loop(const TileArguments& arguments, ir::LoopKind kind, std::vector<Value> bounds) {
  TRY(require_kernel(arguments));
  LoopRange range = TRY(to_loop_range(arguments.function(), bounds, arguments.span()));
  return Value(std::make_shared<LoopObject>(arguments.context(), std::string(arguments.function()), kind,
                                            std::vector<LoopRange>{range}));
}

// start, stop= and step= as one axis; a lone start is the stop.
std::vector<Value> given_bounds(const TileArguments& arguments) {
  std::vector<Value> bounds;
  if (arguments.has(2) && !arguments.has(1)) bounds.emplace_back(int64_t{0});
  for (size_t i : {0, 1, 2})
    if (arguments.has(i)) bounds.push_back(arguments[i]);
  return bounds;
}

template <ir::LoopKind kind>
Result<Value> counted(TileArguments& arguments) {
  return make_loop(arguments, kind, given_bounds(arguments));
}

Result<Value> pipelined(TileArguments& arguments) {
  std::vector<Value> bounds;
  for (size_t i : {0, 1})
    if (arguments.has(i)) bounds.push_back(arguments[i]);
  int64_t stages = TRY(arguments.integer_or(2, 0));
  constexpr int64_t kMaxStages = 64;
  if (stages < 0 || stages > kMaxStages)
    return make_error(DiagnosticKind::value_error, arguments.span(2),
                      fmt::format("`num_stages` must be from 0 to {}, not {}", kMaxStages, stages));
  Value loop = TRY(make_loop(arguments, ir::LoopKind::pipelined, std::move(bounds)));
  static_cast<LoopObject*>(loop.if_object()->get())->set_stages(static_cast<int>(stages));
  return loop;
}

Result<Value> box(TileArguments& arguments, ir::LoopKind kind) {
  TRY(require_kernel(arguments));
  if (arguments.rest().empty())
    return make_error(DiagnosticKind::wrong_arguments, arguments.span(),
                      fmt::format("`{}` needs at least one extent", arguments.function()));
  std::vector<LoopRange> ranges;
  for (const Value& extent : arguments.rest())
    ranges.push_back(TRY(to_loop_range(arguments.function(), {extent}, arguments.span())));
  return Value(
      std::make_shared<LoopObject>(arguments.context(), std::string(arguments.function()), kind, std::move(ranges)));
}

Result<Value> parallel(TileArguments& arguments) { return box(arguments, ir::LoopKind::parallel); }
Result<Value> grid(TileArguments& arguments) { return box(arguments, ir::LoopKind::serial); }

Result<Value> emit_jump(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  TRY(builder.emit(ir::Break{}, arguments.span()));
  return Value();
}

Result<Value> thread_return(TileArguments& arguments) {
  TRY(TRY(require_kernel(arguments))->return_thread(arguments.span()));
  return Value();
}

}  // namespace

Result<LoopRange> to_loop_range(std::string_view what, const std::vector<Value>& bounds, Span span) {
  LoopRange range;
  std::string label = fmt::format("a bound of `{}`", what);
  bool only_stop = bounds.size() == 1;
  range.start = only_stop ? constant(0, span) : TRY(to_index(bounds[0], label, span));
  range.stop = TRY(to_index(bounds[only_stop ? 0 : 1], label, span));
  if (bounds.size() > 2) range.step = TRY(meta_integer(bounds[2], fmt::format("the step of `{}`", what), span));
  if (range.step == 0) return make_error(DiagnosticKind::value_error, span, fmt::format("the step of `{}` is 0", what));
  ir::DType type = ir::promote(range.start->type, range.stop->type);
  range.start = fold_cast(range.start, type, span);
  range.stop = fold_cast(range.stop, type, span);
  return range;
}

LoopObject::Axis LoopObject::make_axis(size_t index, Span span) {
  const LoopRange& range = ranges_[index];
  Axis axis;
  axis.extent = trip_count(range, span);
  if (axis.extent->type.bits < 64) axis.extent = fold_cast(axis.extent, ir::kInt32, span);
  axis.var = context_.builder->make_var(std::string(kLoopNames[index % std::size(kLoopNames)]), axis.extent->type);
  ir::Expr counter = fold_cast(ir::var_ref(axis.var, span), range.start->type, span);
  ir::Expr stride = ir::int_imm(range.step > 0 ? range.step : -range.step, counter->type, span);
  ir::Expr offset = fold_binary(ir::BinaryOp::mul, std::move(counter), std::move(stride), span);
  axis.value = make_expr(context_, range.step > 0 ? fold_binary(ir::BinaryOp::add, offset, range.start, span)
                                                  : fold_binary(ir::BinaryOp::sub, range.start, offset, span));
  return axis;
}

Status LoopObject::run(Interpreter&, const std::function<Status(Value)>& bind_and_run, Span span) {
  TRY(require_kernel(context_, fmt::format("`{}`", name_), span));
  std::vector<Axis> axes;
  std::vector<Value> values;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    axes.push_back(make_axis(i, span));
    values.push_back(axes.back().value);
    if (auto extent = ir::constant_int(axes.back().extent); extent && *extent <= 0) return {};
  }
  Value variables = values.size() == 1 ? values[0] : make_tuple(values);
  ir::Stmt body = TRY(trace(
      axes, [&] { return bind_and_run(variables); }, span));
  return emit(axes, std::move(body), span);
}

Result<ir::Stmt> LoopObject::trace(const std::vector<Axis>& axes, const std::function<Status()>& body, Span span) {
  std::vector<ir::Var> vars;
  for (const Axis& axis : axes) vars.push_back(axis.var);
  return context_.builder->nested(block_kind(kind_), vars, body, span);
}

// A parallel loop has all its axes in one statement; others nest, the last axis innermost.
Status LoopObject::emit(const std::vector<Axis>& axes, ir::Stmt body, Span span) {
  if (kind_ == ir::LoopKind::parallel) {
    ir::For loop{kind_, {}, {}, 0, std::move(body)};
    for (const Axis& axis : axes) {
      loop.vars.push_back(axis.var);
      loop.extents.push_back(axis.extent);
    }
    return context_.builder->emit(std::move(loop), span);
  }
  for (size_t i = axes.size(); i-- > 1;) {
    ir::For inner{kind_, {axes[i].var}, {axes[i].extent}, num_stages_, std::move(body)};
    body = ir::make_stmt(ir::Block{{ir::make_stmt(std::move(inner), span)}}, span);
  }
  return context_.builder->emit(ir::For{kind_, {axes[0].var}, {axes[0].extent}, num_stages_, std::move(body)}, span);
}

Result<std::unique_ptr<Iterator>> LoopObject::iterate(Interpreter&, Span span) {
  bool countable = ranges_.size() == 1 && kind_ != ir::LoopKind::parallel;
  auto start = countable ? ir::constant_int(ranges_[0].start) : std::nullopt;
  auto count = countable ? ir::constant_int(trip_count(ranges_[0], span)) : std::nullopt;
  if (start && count)
    return std::unique_ptr<Iterator>(std::make_unique<CountingIterator>(*start, *count, ranges_[0].step));
  return make_error(DiagnosticKind::staged_value_misused, span,
                    fmt::format("`{}` can only be iterated by a `for` statement of a kernel", name_));
}

namespace {

// `with T.While(condition):` the condition is evaluated before each iteration.
struct WhileFrame final : TypedObject<WhileFrame> {
  static constexpr Type kType{"while loop"};
  WhileFrame(TileContext& context_, ir::Expr condition_, Span span_)
      : context(context_), condition(std::move(condition_)), span(span_) {}
  Result<Value> enter(Interpreter&, Span) override {
    context.builder->open(BlockKind::serial_loop, {});
    return Value();
  }
  Status exit(Interpreter&, Span) override {
    ir::Stmt body = context.builder->close(span);
    return context.builder->emit(ir::While{condition, std::move(body)}, span);
  }
  TileContext& context;
  const ir::Expr condition;
  const Span span;
};

Result<Value> while_loop(TileArguments& arguments) {
  TRY(require_kernel(arguments));
  ir::Expr condition = TRY(to_condition(arguments[0], arguments.span(0)));
  return Value(std::make_shared<WhileFrame>(arguments.context(), std::move(condition), arguments.span()));
}

}  // namespace

const std::vector<TileFunction>& loop_functions() {
  static constexpr std::string_view kCounted = "start, stop=, step=, annotations?";
  static constexpr std::string_view kUnrolled = "start, stop=, step=, explicit?=False, unroll_factor?, annotations?";
  static constexpr std::string_view kSerial = "a sequential loop; `range` in a kernel is the same";
  static constexpr std::string_view kUnroll = "a loop that is unrolled";
  static constexpr std::string_view kVectorized = "a loop that becomes vector instructions";
  static const std::vector<TileFunction> kFunctions = {
      {"Parallel", "*extents, coalesced_width?, loop_layout?, prefer_async?=False, annotations?",
       "a loop over a box whose iterations are independent and shared by all threads", parallel},
      {"Pipelined", "start, stop=, num_stages=, order?, stage?, sync?, group?, annotations?",
       "a serial loop whose copies may run `num_stages` iterations ahead", pipelined},
      {"serial", kCounted, kSerial, counted<ir::LoopKind::serial>},
      {"Serial", kCounted, kSerial, counted<ir::LoopKind::serial>},
      {"unroll", kUnrolled, kUnroll, counted<ir::LoopKind::unrolled>},
      {"Unroll", kUnrolled, kUnroll, counted<ir::LoopKind::unrolled>},
      {"vectorized", kCounted, kVectorized, counted<ir::LoopKind::vectorized>},
      {"Vectorized", kCounted, kVectorized, counted<ir::LoopKind::vectorized>},
      {"parallel", kCounted, "a loop whose iterations are independent", counted<ir::LoopKind::parallel>},
      {"grid", "*extents", "nested sequential loops, the last extent fastest", grid},
      {"While", "condition", "`with T.While(condition):` a loop while the condition holds", while_loop},
      {"loop_break", "", "leaves the innermost loop, like `break`", emit_jump},
      {"thread_return", "", "the thread that comes here does nothing more in this kernel", thread_return},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
