// Requests that change speed on some targets and results on none: checked for their form, then dropped.
#include "compiler/stage/tile/builder.h"
#include "compiler/stage/tile/tables.h"

namespace tilepilot::stage {
namespace {

Result<Value> accept(TileArguments&) { return Value(); }

Result<Value> unchanged(TileArguments& arguments) { return arguments[0]; }

}  // namespace

const std::vector<TileFunction>& hint_functions() {
  static const std::vector<TileFunction> kFunctions = {
      {"use_swizzle", "panel_size, order=, enable=", "a hint: order of blocks for cache locality", accept},
      {"annotate_l2_hit_ratio", "ratios", "a hint: what to keep in the L2 cache", accept},
      {"annotate_min_blocks_per_sm", "count", "a hint: occupancy", accept},
      {"annotate_restrict_buffers", "*buffers", "a hint: buffers that do not overlap", accept},
      {"func_attr", "attributes", "a hint: attributes of the function", accept},
      {"assume", "condition", "a hint: a fact for the compiler's proofs", accept},
      {"likely", "condition", "the condition itself, expected to hold", unchanged},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
