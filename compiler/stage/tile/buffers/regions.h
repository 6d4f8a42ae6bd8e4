// Operands of tile operators: whole buffers, slices and points as IR regions, and how the extents of two sides are
// brought together (reference/tilelang.md section 1.3.1).
#pragma once

#include "compiler/ir/stmt.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/arguments.h"

namespace tilepilot::stage {

struct TileOperand {
  ir::Region region;  // a point: `extent` is empty until the other side gives it
  bool is_point = false;
  bool is_whole = false;
  std::vector<ir::Expr> extents = {};  // as of a RegionObject
};

// Argument `i` as an operand: a buffer, a slice of one, or an element. Its extents are constants.
Result<TileOperand> tile_operand(const TileArguments& arguments, size_t i);
// Likewise; its extents may be known only at run time.
Result<TileOperand> open_operand(const TileArguments& arguments, size_t i);
// The extents other than 1, in order.
std::vector<ir::Expr> long_extents(const TileOperand& operand);
// Likewise; a point is one element.
Result<ir::Region> tile_region(const TileArguments& arguments, size_t i);

// One element as a region, and the indices of the element `step` places further along the last axis.
ir::Region element_at(ir::Buffer buffer, std::vector<ir::Expr> indices, Span span);
std::vector<ir::Expr> neighbour(const ir::Region& region, const ir::Expr& step, Span span);
// A buffer or a slice of one, not an element.
bool names_memory(const Value& value);

// Argument `i` as one hardware barrier.
Result<ir::Region> barrier_operand(const TileArguments& arguments, size_t i);

// Gives points their extents and checks that both sides agree after dropping axes of extent 1.
Status match_extents(const TileArguments& arguments, TileOperand& source, TileOperand& destination);

// What a copy runs over: as many axes longer than 1 on both sides, with the same extents in order.
struct CopyBox {
  ir::Region source, destination;
  std::vector<ir::Expr> extents;
};
// Those of the side that is closer to the threads, the source of equals; the other side reaches as far, whatever
// extents were written there. They have to cover the source.
Result<CopyBox> copy_box(const TileArguments& arguments, TileOperand source, TileOperand destination);
// Gives a region constant extents in place of those longer than 1; false if one is known only at run time.
bool take_extents(ir::Region& region, const std::vector<ir::Expr>& extents);

// A parallel loop over a box; `body` gets a variable for each extent.
Status for_each_element(const TileArguments& arguments, const std::vector<ir::Expr>& extents,
                        const std::function<Status(const std::vector<ir::Expr>& steps)>& body);
// The element of a region that is `steps` away from its start along the axes longer than 1.
std::vector<ir::Expr> stepped(const ir::Region& region, const std::vector<ir::Expr>& steps, Span span);

// The extents other than 1, in order.
std::vector<int64_t> without_ones(const std::vector<int64_t>& extents);
// "`A` (128x32)": the buffer and the extents of its box.
std::string describe(const ir::Region& region);

// The buffer lives on chip; `wrong_scope` otherwise.
Status require_on_chip(const TileArguments& arguments, const ir::Region& region, std::string_view role);

}  // namespace tilepilot::stage
