// Requests that change speed on some targets and results on none: checked for their form, announced, then dropped.
#include <fmt/format.h>

#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/compile_requests.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

Result<Value> accept(TileArguments&) { return Value(); }

// T.use_swizzle(panel_size, order="row", enable=True)
Result<Value> use_swizzle(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::BlockOrder order{TRY(arguments.integer(0)), false, arguments.span()};
  const std::string by = arguments.has(1) ? TRY(arguments.text(1)) : "row";
  if (order.panel < 1 || (by != "row" && by != "col" && by != "column"))
    return make_error(DiagnosticKind::value_error, arguments.span(),
                      fmt::format("`T.use_swizzle` of {} {}", order.panel, by),
                      "a panel has at least one row or column: `order` is \"row\" or \"col\"");
  order.of_columns = by != "row";
  if (TRY(arguments.flag_or(2, true))) builder.set_order(order);
  return Value();
}

// T.annotate_pass_configs(configs), T.annotate_compile_flags(flags)
Result<Value> annotate_pass_configs(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  if (TRY(fast_math_of_configs(arguments, 0))) builder.allow_fast_math();
  return Value();
}
Result<Value> annotate_compile_flags(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  if (TRY(fast_math_of_flags(arguments, 0))) builder.allow_fast_math();
  return Value();
}

// T.assume(condition)
Result<Value> assume(TileArguments& arguments) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  const ir::Expr holds = TRY(to_condition(arguments[0], arguments.span(0)));
  if (ir::constant_int(holds) == 1) return Value();
  TRY(builder.emit(ir::Check{holds, "what the program assumes does not hold", true}, arguments.span()));
  return Value();
}

Result<Value> unchanged(TileArguments& arguments) { return arguments[0]; }

}  // namespace

const std::vector<TileFunction>& hint_functions() {
  constexpr Effect kHint = Effect::hint;
  static const std::vector<TileFunction> kFunctions = {
      {"use_swizzle", "panel_size, order=, enable=",
       "blocks run in panels of so many rows (or columns: `order=\"col\"`) of the grid, so that caches serve "
       "neighbours",
       use_swizzle},
      {"annotate_l2_hit_ratio", "l2_hit_ratio_map", "a hint: what to keep in the L2 cache", accept, kHint},
      {"annotate_min_blocks_per_sm", "n", "a hint: occupancy", accept, kHint},
      {"annotate_restrict_buffers", "*buffers", "a hint: buffers that do not overlap", accept, kHint},
      {"annotate_compile_flags", "flags", "options of the device compiler: `--use_fast_math` counts here",
       annotate_compile_flags},
      {"annotate_pass_configs", "configs", "options of the compiler's passes: `TL_ENABLE_FAST_MATH` counts here",
       annotate_pass_configs},
      {"func_attr", "attributes", "a hint: attributes of the function", accept, kHint},
      {"no_set_max_nreg", "", "a hint: registers of threads stay as they are", accept, kHint},
      {"disable_warp_group_reg_alloc", "", "a hint: warpgroups share registers evenly", accept, kHint},
      {"annotate_producer_reg_dealloc", "reg_count=", "a hint: registers that loading threads give up", accept, kHint},
      {"annotate_consumer_reg_alloc", "reg_count=", "a hint: registers that computing threads get", accept, kHint},
      {"pdl_trigger", "", "a hint: the next launch may begin", accept, kHint},
      {"pdl_sync", "", "a hint: what needs the launch before begins here", accept, kHint},
      {"assume", "condition",
       "the program's word for a fact: code for GPUs need not check what follows from it; `--explain` names those that "
       "prove nothing",
       assume},
      {"likely", "condition", "the condition itself, expected to hold", unchanged},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
