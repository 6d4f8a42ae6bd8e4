#include "compiler/targets/gpu/layout/gemm_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/layout/reshape.h"
#include "compiler/targets/gpu/facts/coordinates.h"
#include "compiler/targets/gpu/machine/machine.h"
#include "compiler/targets/gpu/machine/wgmma_shape.h"

namespace tilepilot::targets::gpu {

using ir::Expr;
using layout::Across;
using layout::Atom;
using layout::Fragment;
using layout::Layout;

namespace {

// Types of A (and B), of C, and the instruction that multiplies them. For tensor_float elements keep 32 bits in memory.
struct MatrixTypes {
  ir::DType operand, result;
  std::string_view operands;  // as in layout::Atom
  int64_t k;
};
constexpr MatrixTypes kMatrixTypes[] = {
    {ir::kFloat16, ir::kFloat32, "f16 bf16", 16},
    {ir::kBFloat16, ir::kFloat32, "f16 bf16", 16},
    {ir::kFloat16, ir::kFloat16, "f16 bf16", 16},
    {ir::kTensorFloat32, ir::kFloat32, "tf32", 8},
    {ir::kInt8, ir::kInt32, "s8 u8", 32},
    {ir::kUInt8, ir::kInt32, "s8 u8", 32},
    {ir::kFloat8E4M3, ir::kFloat32, "e4m3 e5m2", 32},
    {ir::kFloat8E5M2, ir::kFloat32, "e4m3 e5m2", 32},
    {ir::kFloat64, ir::kFloat64, "f64", 4},
};

const Atom* find_atom(ir::DType a, ir::DType b, ir::DType c, const Machine& machine) {
  if (a != b) return nullptr;
  for (const MatrixTypes& row : kMatrixTypes) {
    if (row.operand != a || row.result != c) continue;
    for (const Atom& atom : layout::atoms())
      if (atom.operands == row.operands && atom.k == row.k && atom.threads == 32 &&
          atom.sm <= machine.compute_capability && atom.n == 8)
        return &atom;
  }
  return nullptr;
}

int64_t extent(const ir::Region& region, size_t from_last) { return region.extent[region.extent.size() - from_last]; }

// Rows and columns of warps: all pairs whose product is the number of warps and that divide the atoms evenly. What is
// read again and again from shared memory decides: a warp reads its rows of A and its columns of B.
bool place_warps(GemmPlan& plan, ir::WarpPolicy policy, int64_t warps) {
  const int64_t rows = plan.m / plan.atom->m, columns = plan.n / plan.atom->n;
  int64_t best = INT64_MAX;
  for (int64_t m = 1; m <= warps; ++m) {
    if (warps % m != 0 || rows % m != 0 || columns % (warps / m) != 0) continue;
    const int64_t n = warps / m;
    const int64_t cost = policy == ir::WarpPolicy::full_row   ? n
                         : policy == ir::WarpPolicy::full_col ? m
                                                              : plan.m / m + plan.n / n;
    if (cost >= best) continue;
    best = cost;
    plan.warps_m = m;
    plan.warps_n = n;
  }
  return best != INT64_MAX;
}

Fragment over_warps(Fragment one, int64_t axis, int64_t tiles, int64_t warps) {
  if (tiles > 1) one = *layout::repeated(one, {.axis = size_t(axis), .count = tiles, .across = Across::registers});
  if (warps > 1) one = *layout::repeated(one, {.axis = size_t(axis), .count = warps, .across = Across::threads});
  return one;
}

void hold_by_warps(GemmPlan& plan) {
  const auto repeat = [](Fragment one, size_t axis, int64_t count) {
    return count == 1 ? one : *layout::repeated(one, {.axis = axis, .count = count, .across = Across::registers});
  };
  Fragment c = repeat(layout::c_fragment(*plan.atom), 1, plan.tiles_n());
  c = over_warps(std::move(c), 0, plan.tiles_m(), plan.warps_m);
  plan.c = over_warps(std::move(c), 1, 1, plan.warps_n);
  Fragment a = repeat(layout::a_fragment(*plan.atom), 1, plan.steps());
  a = over_warps(std::move(a), 0, plan.tiles_m(), plan.warps_m);
  plan.a = plan.warps_n > 1 ? layout::replicated(a, plan.warps_n) : a;
  if (plan.is_wgmma()) return;  // which reads B from shared memory
  const Fragment b = repeat(repeat(layout::b_fragment(*plan.atom), 0, plan.steps()), 1, plan.tiles_n());
  const Fragment same = plan.warps_m > 1 ? layout::replicated(b, plan.warps_m) : b;
  plan.b = over_warps(same, 1, 1, plan.warps_n);
}

// Threads in rows, each with neighbours along n that lie side by side in B. Where columns of B are rows of its tile,
// neighbouring threads have neighbouring ones: they have no bank conflict in a swizzled tile, every fourth would.
Fragment thread_tiles(int64_t m, int64_t n, int64_t threads, bool transpose_b) {
  const int64_t vector = std::gcd<int64_t>(n, 4);
  int64_t across = 1;
  for (int64_t count = 1; count <= threads; ++count)
    if (threads % count == 0 && count * vector <= n && count * count <= 2 * threads) across = count;
  const int64_t down = threads / across;
  const int64_t iterations_n = (n + across * vector - 1) / (across * vector), iterations_m = (m + down - 1) / down;
  const int64_t width = across * vector * iterations_n, together = transpose_b ? 1 : vector;
  return Fragment({m, n}, Layout{{across, together}, {down, width}},
                  Layout{{together, 1}, {width / (across * together), across * together}, {iterations_m, down * width}},
                  {down * iterations_m, width});
}

using Viewed = std::unordered_set<const ir::BufferData*>;
constexpr int64_t kTensorFloatStep = 8;  // along k, of an instruction

// The atom with n columns. Plans point to atoms, so that all of them are made once.
const Atom* wgmma_atom(ir::DType operand, int64_t n) {
  static const std::vector<Atom> all = [] {
    std::vector<Atom> sized;
    for (const Atom& atom : layout::atoms())
      for (int64_t columns = 8; atom.threads == layout::kWarpgroupSize && columns <= 256; columns += 8)
        sized.push_back(layout::with_n(atom, columns));
    return sized;
  }();
  for (const MatrixTypes& row : kMatrixTypes)
    for (const Atom& atom : all)
      if (row.operand == operand && atom.operands.find(row.operands) != std::string_view::npos && atom.n == n)
        return &atom;
  return nullptr;
}

// Why an operand in shared memory cannot be described to wgmma; "" if it can. `k_last`: stored with k along its rows.
std::string not_described(const ir::Region& region, bool k_last, const Viewed& viewed) {
  const ir::BufferData& tile = *region.buffer;
  const int64_t bits = tile.type.bits;
  if (tile.scope != ir::Scope::shared) return fmt::format("`{}` is not in shared memory", tile.name);
  if (tile.base || tile.address || viewed.contains(&tile))
    return fmt::format("`{}` is seen as another type or shape", tile.name);
  const auto length = ir::constant_int(tile.shape.back());
  const ir::Expr &column = region.start.back(), &row = region.start[region.start.size() - 2];
  const int64_t span = length ? static_cast<int64_t>(layout::span_of_rows(*length * bits / 8)) : 0;
  if (span == 0) return fmt::format("rows of `{}` are no multiple of 32 bytes", tile.name);
  if (!k_last && bits != 16) return fmt::format("`{}` is not stored along k", tile.name);
  const int64_t pieces = (k_last ? 32 : span) * 8 / bits;
  if (!is_multiple(column, pieces) || !is_multiple(row, 8))
    return fmt::format("the part of `{}` starts within a swizzle", tile.name);
  return "";
}

// Warpgroups over C, and columns of an instruction: what is read from shared memory decides, since each instruction
// reads its rows of A and its columns of B. `unit`: what columns of an instruction must be a multiple of.
bool place_warpgroups(GemmPlan& plan, const ir::Gemm& gemm, int64_t groups, int64_t unit) {
  int64_t best = INT64_MAX;
  const int64_t threads = groups * layout::kWarpgroupSize;
  for (int64_t down = 1; down <= groups; ++down) {
    const int64_t across = groups / down;
    if (groups % down != 0 || plan.m % (64 * down) != 0 || plan.n % (8 * across) != 0) continue;
    const int64_t columns = plan.n / across;
    for (int64_t n = std::min<int64_t>(256, columns); n >= 8; --n) {
      const Wgmma shape{mma_operand_type(gemm, gemm.a.buffer->type), mma_operand_type(gemm, gemm.b.buffer->type),
                        gemm.c.buffer->type, n};
      if (columns % n != 0 || !is_wgmma(shape) || (n % unit != 0 && n != plan.n)) continue;
      const int64_t of_a = gemm.a.buffer->scope == ir::Scope::fragment ? plan.m * plan.k / threads : 0;
      if (plan.splits &&
          !has_room_for_parts(plan.m * plan.n / threads + of_a, registers_of_parts(n, plan.steps_together()), threads))
        continue;
      const int64_t read = plan.m / (64 * down) * (columns / n) * (64 + n);
      const int64_t cost = gemm.policy == ir::WarpPolicy::full_row   ? across * plan.m * plan.n + read
                           : gemm.policy == ir::WarpPolicy::full_col ? down * plan.m * plan.n + read
                                                                     : read;
      if (cost >= best) continue;
      best = cost;
      plan.warps_m = down;
      plan.warps_n = across;
      plan.atom = wgmma_atom(shape.a, n);
    }
  }
  return plan.atom != nullptr;
}

// Sets the atom, or says why there is none.
std::string choose_wgmma(GemmPlan& plan, const ir::Gemm& gemm, int64_t threads, const Viewed& viewed) {
  const ir::DType a = mma_operand_type(gemm, gemm.a.buffer->type), b = mma_operand_type(gemm, gemm.b.buffer->type),
                  c = gemm.c.buffer->type;
  if (a != b || !is_wgmma({a, b, c, 64}))
    return fmt::format("wgmma does not multiply {} by {} into {}", ir::to_string(a), ir::to_string(b),
                       ir::to_string(c));
  if (threads % layout::kWarpgroupSize != 0) return fmt::format("{} threads are no whole warpgroups", threads);
  if (plan.m % 64 != 0 || plan.k * a.bits % 256 != 0)
    return fmt::format("{} x {} is no multiple of 64 x {}", plan.m, plan.k, 256 / a.bits);
  const bool a_held = gemm.a.buffer->scope == ir::Scope::fragment && !gemm.transpose_a;
  // A split-precision wgmma reads A into registers, and B from where it has written the parts.
  std::string why = a_held || plan.splits ? "" : not_described(gemm.a, !gemm.transpose_a, viewed);
  if (why.empty()) why = not_described(gemm.b, gemm.transpose_b, viewed);
  plan.moves_b = plan.splits && !why.empty();
  for (const ir::Region* region : {&gemm.a, &gemm.b})
    if (plan.splits && region->buffer->scope != ir::Scope::shared && !(a_held && region == &gemm.a))
      return fmt::format("`{}` is not in shared memory", region->buffer->name);
  if (!why.empty() && !plan.moves_b) return why;
  // Columns along rows lie in panels as wide as the swizzle; an instruction starts at one.
  const int64_t row_bytes = ir::constant_int(gemm.b.buffer->shape.back()).value_or(0) * a.bits / 8;
  const int64_t unit =
      gemm.transpose_b || plan.moves_b ? 1 : static_cast<int64_t>(layout::span_of_rows(row_bytes)) * 8 / a.bits;
  if (place_warpgroups(plan, gemm, threads / layout::kWarpgroupSize, unit)) return "";
  return fmt::format("{} warpgroups cannot share {} x {} evenly{}", threads / layout::kWarpgroupSize, plan.m, plan.n,
                     plan.splits ? ", or registers do not suffice for the parts" : "");
}

}  // namespace

ir::DType mma_operand_type(const ir::Gemm& gemm, ir::DType operand) {
  return operand == ir::kFloat32 && gemm.precision != ir::Precision::ieee ? ir::kTensorFloat32 : operand;
}

int64_t GemmPlan::steps_together() const {
  const int64_t steps = k / kTensorFloatStep;
  int64_t together = kStepsOfParts;
  while (steps % together != 0) together /= 2;
  return together;
}

GemmPlan plan_gemm(const ir::Gemm& gemm, int64_t threads, const Machine& machine, const Viewed& viewed) {
  const int64_t m = extent(gemm.c, 2), n = extent(gemm.c, 1), k = extent(gemm.a, gemm.transpose_a ? 2 : 1);
  const ir::DType a = mma_operand_type(gemm, gemm.a.buffer->type), b = mma_operand_type(gemm, gemm.b.buffer->type),
                  c = gemm.c.buffer->type;
  GemmPlan plan{nullptr, m, n, k, 1, 1, thread_tiles(m, n, threads, gemm.transpose_b), {}, {}};
  plan.splits = gemm.precision == ir::Precision::fp32 && gemm.a.buffer->type == ir::kFloat32 && a == b;
  if (machine.has_wgmma) {
    plan.wgmma_obstacle = choose_wgmma(plan, gemm, threads, viewed);
    if (plan.wgmma_obstacle.empty()) {
      hold_by_warps(plan);
      return plan;
    }
  }
  const Atom* atom = find_atom(a, b, c, machine);
  if (atom == nullptr) {
    plan.has_instruction = false;
    plan.reason = fmt::format("no tensor-core instruction multiplies {} by {} into {}", ir::to_string(a),
                              ir::to_string(b), ir::to_string(c));
  } else if (m % atom->m != 0 || n % atom->n != 0 || k % atom->k != 0) {
    plan.reason = fmt::format("{} x {} x {} is no multiple of {} x {} x {}", m, n, k, atom->m, atom->n, atom->k);
  } else if (threads % layout::kWarpSize != 0) {
    plan.reason = fmt::format("{} threads are no whole warps", threads);
  } else {
    plan.atom = atom;
    if (place_warps(plan, gemm.policy, threads / layout::kWarpSize)) {
      hold_by_warps(plan);
    } else {
      plan.atom = nullptr;
      plan.reason = fmt::format("{} warps cannot share {} x {} evenly", threads / layout::kWarpSize, m, n);
    }
  }
  return plan;
}

}  // namespace tilepilot::targets::gpu
