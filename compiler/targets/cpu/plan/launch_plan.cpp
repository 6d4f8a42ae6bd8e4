#include "compiler/targets/cpu/plan/launch_plan.h"

#include "compiler/passes/scans.h"
#include "compiler/targets/cpu/loops/index_lets.h"
#include "compiler/targets/cpu/plan/fuse_copies.h"
#include "compiler/targets/cpu/plan/gemm_tiles.h"
#include "compiler/targets/cpu/plan/index_delinearisation.h"
#include "compiler/targets/cpu/plan/split_threads.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr SmallestGemm kWorthATile{4, 16, 1024};  // what is packed is used so often
constexpr int64_t kCoarsenedSide = 64;            // rows, and columns, of the GEMM that coarsened blocks do

// GEMMs of any size, to see what blocks share.
std::optional<TiledGemms> any_gemms(const ir::Kernel& kernel) { return tile_gemms(kernel, {1, 1, 1}); }

// How many blocks along an axis make the side of the GEMM that they enlarge long enough.
int64_t blocks_along(const ir::Kernel& kernel, size_t axis, int64_t size) {
  const int64_t wanted = std::max<int64_t>(kCoarsenedSide / size, 1);
  const auto extent = ir::constant_int(kernel.grid[axis]);
  if (!extent) return wanted;
  const int64_t most = std::clamp<int64_t>(*extent, 1, wanted);
  for (int64_t count = most; count * 2 > most; --count)
    if (*extent % count == 0) return count;
  return most;
}

// Where blocks that are neighbours along an axis share one operand of a GEMM and differ in the other.
std::optional<CoarsenedBlocks> coarsen_gemms(const ir::Kernel& kernel) {
  const auto can_coarsen = [&](size_t axis) {
    return axis < kernel.grid.size() && ir::constant_int(kernel.grid[axis]) != 1;
  };
  for (const std::vector<bool>& axes : {std::vector{true, true}, std::vector{true, false}, std::vector{false, true}}) {
    std::vector<int64_t> counts(kernel.grid.size(), 1);
    for (size_t axis = 0; axis < 2; ++axis)
      if (axes[axis] && can_coarsen(axis)) counts[axis] = 2;
    const auto pairs = coarsen_blocks(kernel, counts);
    const auto found = pairs ? any_gemms(pairs->kernel) : std::nullopt;
    if (!found) continue;
    const ThreadGemm& product = found->gemms.front();
    for (size_t axis = 0; axis < counts.size(); ++axis) {
      if (counts[axis] == 1) continue;
      const bool in_columns = product.columns.has(pairs->members[axis]);
      const GemmSide& side = in_columns ? product.columns : product.rows;
      counts[axis] = blocks_along(kernel, axis, side.size() / 2);
    }
    auto coarsened = coarsen_blocks(kernel, counts);
    const auto tiled = coarsened ? tile_gemms(coarsened->kernel, kWorthATile) : std::nullopt;
    if (!tiled) continue;
    coarsened->kernel = tiled->kernel;
    return coarsened;
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
    if (!any_gemms(form)) continue;
    auto coarsened = coarsen_gemms(form);
    const auto tiled = tile_gemms(form, kWorthATile);
    if (coarsened || tiled) return LaunchPlan{tiled ? tiled->kernel : kernel, std::move(coarsened)};
  }
  return std::nullopt;
}

// Where threads count what they do
// ---------------------------------------------------------------------------------------

constexpr int64_t kRowsOfBlock = 64, kColumnsOfBlock = 512;  // of a GEMM
constexpr int64_t kFewestColumns = 64;                       // where that makes more blocks
constexpr int64_t kPlacesOfBlock = 1024;                     // where there is no GEMM
constexpr int64_t kFewestBlocks = 16;                        // for the machine's threads

// The GEMM that all places do together, if they do one.
std::optional<ThreadGemm> gemm_of(const DelinearisedLaunch& places) {
  std::vector<int64_t> whole;
  for (const Dimension& place : places.all) whole.push_back(*ir::constant_int(place.extent));
  const ir::Kernel all = with_blocks(places, whole);
  c::IntegerFacts facts;
  facts.learn(all);
  const GemmFinder finder(all, facts);
  std::optional<ThreadGemm> found;
  ir::walk(
      all.body,
      [&](const ir::Stmt& stmt) {
        if (found) return;
        const std::vector<ThreadGemm> products = finder.find(stmt, places.all);
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
void take_places(const DelinearisedLaunch& places, const std::vector<Dimension>& dimensions, int64_t wanted,
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

int64_t count_blocks(const DelinearisedLaunch& places, const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (size_t k = 0; k < sizes.size(); ++k)
    count *= (*ir::constant_int(places.all[k].extent) + sizes[k] - 1) / sizes[k];
  return count;
}

std::optional<ir::Kernel> delinearised_gemm(const DelinearisedLaunch& places) {
  const std::optional<ThreadGemm> product = gemm_of(places);
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
  const auto tiled = tile_gemms(with_blocks(places, sizes), kWorthATile);
  return tiled ? std::optional(tiled->kernel) : std::nullopt;
}

ir::Kernel delinearised_others(const DelinearisedLaunch& places) {
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
  const std::optional<DelinearisedLaunch> places = delinearise(with_threads(plain));
  if (places && places->are_taken_apart)
    if (auto kernel = delinearised_gemm(*places)) return {std::move(*kernel), std::nullopt};
  if (auto plan = plan_products(plain)) {
    if (plan->block.body == plain.body) plan->block = fused;
    return std::move(*plan);
  }
  if (places)
    if (auto kernel = delinearised_gemm(*places)) return {std::move(*kernel), std::nullopt};
  auto coarsened = coarsen_blocks(plain, blocks_sharing_operands(plain));
  if (!coarsened && places && places->are_taken_apart) return {delinearised_others(*places), std::nullopt};
  return {fused, std::move(coarsened)};
}

}  // namespace tilepilot::targets::cpu
