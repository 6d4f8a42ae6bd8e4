#include "compiler/targets/cpu/plan/launch_plan.h"

#include "compiler/passes/scans.h"
#include "compiler/targets/cpu/loops/index_lets.h"
#include "compiler/targets/cpu/plan/fuse_copies.h"
#include "compiler/targets/cpu/plan/product_tiles.h"
#include "compiler/targets/cpu/plan/renumber.h"
#include "compiler/targets/cpu/plan/split_threads.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr LeastProduct kWorthATile{4, 16, 1024};  // what is packed is used so often
constexpr int64_t kJoinedSide = 64;               // rows, and columns, of the product that joined blocks do

// Products of any size, to see what blocks share.
std::optional<TiledProducts> any_products(const ir::Kernel& kernel) { return tile_products(kernel, {1, 1, 1}); }

// How many blocks along an axis make the side of the product that they enlarge long enough.
int64_t blocks_along(const ir::Kernel& kernel, size_t axis, int64_t size) {
  const int64_t wanted = std::max<int64_t>(kJoinedSide / size, 1);
  const auto extent = ir::constant_int(kernel.grid[axis]);
  if (!extent) return wanted;
  const int64_t most = std::clamp<int64_t>(*extent, 1, wanted);
  for (int64_t count = most; count * 2 > most; --count)
    if (*extent % count == 0) return count;
  return most;
}

// Where blocks that are neighbours along an axis share one operand of a product and differ in the other.
std::optional<JoinedBlocks> join_products(const ir::Kernel& kernel) {
  const auto can_join = [&](size_t axis) {
    return axis < kernel.grid.size() && ir::constant_int(kernel.grid[axis]) != 1;
  };
  for (const std::vector<bool>& axes : {std::vector{true, true}, std::vector{true, false}, std::vector{false, true}}) {
    std::vector<int64_t> counts(kernel.grid.size(), 1);
    for (size_t axis = 0; axis < 2; ++axis)
      if (axes[axis] && can_join(axis)) counts[axis] = 2;
    const auto pairs = join_blocks(kernel, counts);
    const auto found = pairs ? any_products(pairs->kernel) : std::nullopt;
    if (!found) continue;
    const Product& product = found->products.front();
    for (size_t axis = 0; axis < counts.size(); ++axis) {
      if (counts[axis] == 1) continue;
      const bool in_columns = product.columns.has(pairs->members[axis]);
      const ProductSide& side = in_columns ? product.columns : product.rows;
      counts[axis] = blocks_along(kernel, axis, side.size() / 2);
    }
    auto joined = join_blocks(kernel, counts);
    const auto tiled = joined ? tile_products(joined->kernel, kWorthATile) : std::nullopt;
    if (!tiled) continue;
    joined->kernel = tiled->kernel;
    return joined;
  }
  return std::nullopt;
}

// Where no threads are told apart, the block as a loop over one.
ir::Kernel with_threads(const ir::Kernel& kernel) {
  const bool is_scalar = !ir::contains(kernel.body, [](const ir::Stmt& stmt) {
    const auto* loop = std::get_if<ir::For>(&stmt->node);
    const bool is_parallel = loop != nullptr && loop->kind == ir::LoopKind::parallel;
    return is_parallel || ir::is_tile_operator(*stmt) || std::holds_alternative<ir::Sync>(stmt->node) ||
           std::holds_alternative<ir::Concurrent>(stmt->node);
  });
  if (!is_scalar) return kernel;
  ir::Kernel result = kernel;
  ir::For threads{ir::LoopKind::parallel, {ir::make_var("t", ir::kInt32)}, {ir::int_imm(1)}, 0, kernel.body};
  result.body = ir::make_stmt(ir::Block{{ir::make_stmt(std::move(threads), kernel.body->span)}}, kernel.body->span);
  return result;
}

std::optional<LaunchPlan> plan_products(const ir::Kernel& kernel) {
  std::vector<ir::Kernel> forms{with_threads(kernel)};
  for (const int64_t row : thread_rows(kernel)) forms.push_back(split_threads(kernel, row));
  for (const ir::Kernel& form : forms) {
    if (!any_products(form)) continue;
    auto joined = join_products(form);
    const auto tiled = tile_products(form, kWorthATile);
    if (joined || tiled) return LaunchPlan{tiled ? tiled->kernel : kernel, std::move(joined)};
  }
  return std::nullopt;
}

// Where threads count what they do
// ---------------------------------------------------------------------------------------

constexpr int64_t kRowsOfBlock = 64, kColumnsOfBlock = 512;  // of a product
constexpr int64_t kFewestColumns = 64;                       // where that makes more blocks
constexpr int64_t kPlacesOfBlock = 1024;                     // where there is no product
constexpr int64_t kFewestBlocks = 16;                        // for the machine's threads

// The product that all places do together, if they do one.
std::optional<Product> product_of(const Places& places) {
  std::vector<int64_t> whole;
  for (const Dimension& place : places.all) whole.push_back(*ir::constant_int(place.extent));
  const ir::Kernel all = with_blocks(places, whole);
  c::IntegerFacts facts;
  facts.learn(all);
  const ProductFinder finder(all, facts);
  std::optional<Product> found;
  ir::walk(
      all.body,
      [&](const ir::Stmt& stmt) {
        if (found) return;
        const std::vector<Product> products = finder.find(stmt, places.all);
        if (!products.empty()) found = products.front();
      },
      [](const ir::Expr&) {});
  return found;
}

// At most so many of the extent; rather somewhat less if that divides it.
int64_t even_size(int64_t extent, int64_t most) {
  const int64_t size = std::min(extent, most);
  for (int64_t divisor = size; divisor * 2 > size; --divisor)
    if (extent % divisor == 0) return divisor;
  return size;
}

// Gives the dimensions, the last first, so many places of a block in all.
void take_places(const Places& places, const std::vector<Dimension>& dimensions, int64_t wanted,
                 std::vector<int64_t>& sizes) {
  for (size_t k = dimensions.size(); k-- > 0 && wanted > 1;) {
    for (size_t place = 0; place < places.all.size(); ++place) {
      if (places.all[place].var != dimensions[k].var) continue;
      const int64_t extent = *ir::constant_int(places.all[place].extent);
      sizes[place] = even_size(extent, wanted);
      wanted = sizes[place] == extent ? wanted / extent : 1;
    }
  }
}

int64_t count_blocks(const Places& places, const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (size_t k = 0; k < sizes.size(); ++k)
    count *= (*ir::constant_int(places.all[k].extent) + sizes[k] - 1) / sizes[k];
  return count;
}

std::optional<ir::Kernel> renumber_product(const Places& places) {
  const std::optional<Product> product = product_of(places);
  if (!product) return std::nullopt;
  std::vector<int64_t> sizes;
  for (int64_t columns = kColumnsOfBlock; columns >= kFewestColumns; columns /= 2) {
    std::vector<int64_t> next(places.all.size(), 1);
    take_places(places, product->columns.dimensions, columns, next);
    take_places(places, product->rows.dimensions, kRowsOfBlock, next);
    int64_t elements = 1;
    for (const int64_t size : next) elements *= size;
    if (!sizes.empty() && elements < kWorthATile.elements) break;
    sizes = std::move(next);
    if (count_blocks(places, sizes) >= kFewestBlocks) break;
  }
  const auto tiled = tile_products(with_blocks(places, sizes), kWorthATile);
  return tiled ? std::optional(tiled->kernel) : std::nullopt;
}

ir::Kernel renumber_others(const Places& places) {
  std::vector<int64_t> sizes(places.all.size(), 1);
  take_places(places, places.all, kPlacesOfBlock, sizes);
  return with_blocks(places, sizes);
}

}  // namespace

LaunchPlan plan_launch(const ir::Kernel& kernel) {
  const ir::Kernel fused = fuse_copies(passes::expand_scans(kernel));
  if (!contains<ir::For>(fused.body)) return {fused, std::nullopt};
  ir::Kernel plain = fused;
  plain.body = without_index_lets(fused.body, [](const ir::Expr&) { return false; });
  const std::optional<Places> places = find_places(with_threads(plain));
  if (places && places->are_taken_apart)
    if (auto kernel = renumber_product(*places)) return {std::move(*kernel), std::nullopt};
  if (auto plan = plan_products(plain)) {
    if (plan->block.body == plain.body) plan->block = fused;
    return std::move(*plan);
  }
  if (places)
    if (auto kernel = renumber_product(*places)) return {std::move(*kernel), std::nullopt};
  auto joined = join_blocks(plain, blocks_sharing_operands(plain));
  if (!joined && places && places->are_taken_apart) return {renumber_others(*places), std::nullopt};
  return {fused, std::move(joined)};
}

}  // namespace tilepilot::targets::cpu
