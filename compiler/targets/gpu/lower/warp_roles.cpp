#include "compiler/targets/gpu/lower/warp_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/ir/effects.h"
#include "compiler/ir/replace_buffers.h"
#include "compiler/ir/search.h"
#include "compiler/passes/threads/roles.h"
#include "compiler/passes/threads/thread_private_loops.h"
#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/layout/requested_layouts.h"
#include "compiler/targets/gpu/layout/shared_layouts.h"
#include "compiler/targets/gpu/lower/resources.h"
#include "compiler/targets/gpu/schedule/rasterisation.h"
#include "compiler/targets/gpu/schedule/second_stage.h"
#include "compiler/targets/gpu/schedule/warp_specialize.h"
#include "compiler/targets/gpu/shared/proxy_fences.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Expr;
using ir::Stmt;

namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kHardwareBarriers = 16;
// Numbers of barriers that no program names, nor passes/threads/roles.h.
constexpr int64_t kFirstRoleBarrier = int64_t{1} << 40;

Error unsupported(Span span, std::string message, std::string hint) {
  return make_error(DiagnosticKind::unsupported_tile_feature, span, std::move(message), std::move(hint));
}

// Roles run for threads, whether the program names these or not.
ir::Kernel with_threads(const ir::Kernel& kernel) {
  ir::Kernel result = kernel;
  if (kernel.thread_vars.empty() && ir::contains<ir::Roles>(kernel.body))
    for (size_t axis = 0; axis < kernel.threads.size(); ++axis)
      result.thread_vars.push_back(ir::make_var("t", ir::kInt32));
  if (!result.thread_vars.empty()) result.body = passes::thread_private_loops(result.body);
  return result;
}

// Barriers by their numbers in the machine.
class Numbered : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Error error;

  explicit Numbered(const Stmt& body) {
    ir::walk(
        body,
        [&](const Stmt& stmt) {
          const auto* sync = ir::as<ir::Sync>(stmt);
          if (sync != nullptr && sync->threads != 0 && sync->barrier < kHardwareBarriers)
            used_[sync->barrier] = sync->barrier;
        },
        [](const Expr&) {});
  }

  Stmt rewrite(const Stmt& stmt) override {
    const auto* sync = ir::as<ir::Sync>(stmt);
    if (sync == nullptr || sync->threads == 0) return rewrite_children(stmt);
    if (sync->threads == 1) return ir::make_stmt(ir::Block{{}}, stmt->span);
    if (sync->threads % kWarp != 0 && !error)
      error = unsupported(stmt->span, fmt::format("{} threads of a block synchronise here", sync->threads),
                          "let whole warps take the same path to each barrier");
    ir::Sync numbered = *sync;
    numbered.barrier = number(sync->barrier, stmt->span);
    return ir::make_stmt(std::move(numbered), stmt->span);
  }

 private:
  std::map<int64_t, int64_t> used_;

  // The first that nobody uses; barrier 0 is that of the whole block.
  int64_t number(int64_t barrier, Span span) {
    if (const auto found = used_.find(barrier); found != used_.end()) return found->second;
    int64_t next = 1;
    while (std::any_of(used_.begin(), used_.end(), [&](const auto& entry) { return entry.second == next; })) ++next;
    if (next >= kHardwareBarriers && !error)
      error =
          unsupported(span, "the warp roles of this block need more barriers than there are", "use fewer warp roles");
    return used_[barrier] = next;
  }
};

// Fragments that several roles use become shared memory: no role has all of their elements. So do views of these.
void share_fragments(ir::Kernel& kernel, std::vector<passes::Role>& roles) {
  std::unordered_map<const ir::BufferData*, int> users;  // by memory
  for (const passes::Role& role : roles) {
    ir::BufferSet used;
    for (const ir::Buffer& buffer : role.kernel.allocations)
      if (buffer->scope == ir::Scope::fragment) used.insert(ir::memory_of(buffer));
    for (const ir::BufferData* memory : used) ++users[memory];
  }
  std::unordered_set<const ir::BufferData*> retyped;
  for (const ir::Buffer& buffer : kernel.allocations)
    if (buffer->base && buffer->base->type != buffer->type) retyped.insert(buffer->base.get());
  ir::Replacements by;
  for (const ir::Buffer& buffer : kernel.allocations) {
    if (buffer->scope != ir::Scope::fragment) continue;
    const bool follows = buffer->base && by.contains(buffer->base.get());
    const int count = users[ir::memory_of(buffer)];
    if (count > 1 || follows || (count > 0 && retyped.contains(buffer.get())))
      by.emplace(buffer.get(), ir::as_shared(buffer, by));
  }
  kernel = ir::replace_buffers(kernel, by);
  for (passes::Role& role : roles) role.kernel = ir::replace_buffers(role.kernel, by);
}

// Threads whose numbers follow each other, in whole warps.
bool is_whole_warps(const ir::Kernel& kernel, const passes::Role& role) {
  int64_t weight = 1, first = 0;
  bool partial = false;
  for (size_t axis = 0; axis < kernel.threads.size(); ++axis) {
    if (partial && role.kernel.threads[axis] != 1) return false;
    partial |= role.kernel.threads[axis] != kernel.threads[axis];
    first += role.start[axis] * weight;
    weight *= kernel.threads[axis];
  }
  return first % kWarp == 0 && thread_count(role.kernel) % kWarp == 0;
}

class WarpRoles {
 public:
  // `specialized`: what the planning of all roles knows, else nothing.
  WarpRoles(ir::Kernel kernel, std::vector<passes::Role> roles, const TargetLowering& target, WarpRole specialized = {})
      : kernel_(std::move(kernel)), roles_(std::move(roles)), target_(&target), common_role_(std::move(specialized)) {}

  Result<std::vector<PlannedKernel>> planned(const Machine& machine) {
    TRY(plan(machine));
    agree_on_tiles();
    for (size_t role = 0; role < roles_.size(); ++role) planned_[role].first_thread = first_thread_of(roles_[role]);
    return planned_;
  }

  // Whether that was not possible without saving shared memory, after `run`.
  bool is_low_on_memory() const { return low_memory_; }

  Result<LoweredKernel> run(const Machine& machine) {
    LoweredKernel lowered = TRY(lowered_once(machine));
    if (shared_bytes_with_barriers(lowered) <= machine.block_shared_bytes) return lowered;
    low_memory_ = true;
    return lowered_once(machine);
  }

 private:
  Result<LoweredKernel> lowered_once(const Machine& machine) {
    TRY(plan(machine));
    std::vector<Diagnostic> warnings;
    for (const PlannedKernel& planned : planned_)
      for (Diagnostic& warning : TRY(resource_warnings(planned, thread_count(kernel_))))
        warnings.push_back(std::move(warning));
    LoweredKernel lowered = roles_.size() == 1 ? TRY(lower(planned_.front(), *target_)) : TRY(lower_together());
    std::vector<const Inference*> inferences;
    for (const PlannedKernel& planned : planned_) inferences.push_back(&planned.inference);
    for (Diagnostic& warning : request_warnings(inferences)) warnings.push_back(std::move(warning));
    lowered.warnings = std::move(warnings);
    return lowered;
  }

  Result<LoweredKernel> lower_together() {
    agree_on_tiles();
    place_common_tiles();
    ir::Kernel together = kernel_;
    for (ir::Var& var : together.thread_vars) var = ir::make_var(var->name, var->type);
    together.allocations.clear();
    LoweredKernel result{together, ir::make_var("thread", ir::kInt32), {}, common_bytes_};
    result.persistent = common_role_.persistent;
    Stmt chosen;
    for (size_t role = roles_.size(); role-- > 0;) {
      const LoweredKernel part = TRY(lower_role(role, result.shared_bytes));
      result.shared_bytes = part.shared_bytes;
      result.offsets.insert(part.offsets.begin(), part.offsets.end());
      result.wgmmas.insert(result.wgmmas.end(), part.wgmmas.begin(), part.wgmmas.end());
      result.maps.insert(result.maps.end(), part.maps.begin(), part.maps.end());
      result.decisions.insert(result.decisions.end(), part.decisions.begin(), part.decisions.end());
      for (const ir::Buffer& buffer : part.kernel.allocations) add(result.kernel.allocations, buffer);
      chosen = choice(role, part, result, chosen);
    }
    Numbered numbered(chosen);
    result.kernel.body = numbered.rewrite(chosen);
    if (numbered.error) return std::move(numbered.error);
    return result;
  }

  ir::Kernel kernel_;
  std::vector<passes::Role> roles_;
  const TargetLowering* target_;
  WarpRole common_role_;
  std::vector<PlannedKernel> planned_;
  std::unordered_map<const ir::BufferData*, int64_t> common_;  // offsets
  int64_t common_bytes_ = 0;
  bool low_memory_ = false;

  int64_t first_thread_of(const passes::Role& role) const {
    int64_t weight = 1, first = 0;
    for (size_t axis = 0; axis < role.start.size(); ++axis) {
      first += role.start[axis] * weight;
      weight *= kernel_.threads[axis];
    }
    return first;
  }

  // Barriers are the same in all roles.
  static void add(std::vector<ir::Buffer>& all, const ir::Buffer& buffer) {
    if (std::find(all.begin(), all.end(), buffer) == all.end()) all.push_back(buffer);
  }

  Status plan(const Machine& machine) {
    planned_.clear();
    if (roles_.size() == 1) {
      WarpRole alone;
      alone.low_memory = low_memory_;
      planned_.push_back(TRY(plan_kernel(roles_.front().kernel, machine, alone)));
      return {};
    }
    std::unordered_set<const ir::BufferData*> common;
    for (const ir::Buffer& buffer : kernel_.allocations)
      if (buffer->scope == ir::Scope::shared && !buffer->base) common.insert(buffer.get());
    for (size_t role = 0; role < roles_.size(); ++role) {
      const ir::Kernel& kernel = roles_[role].kernel;
      const ir::Sync sync{ir::SyncScope::block, kFirstRoleBarrier + static_cast<int64_t>(role), thread_count(kernel)};
      WarpRole mine = common_role_;
      mine.sync = sync;
      mine.common = common;
      mine.low_memory = low_memory_;
      mine.block = whole_block(kernel_);
      planned_.push_back(TRY(plan_kernel(kernel, machine, mine)));
    }
    fence_for_others();
    return {};
  }

  // wgmma and TMA of one role may read what another role writes.
  void fence_for_others() {
    if (std::none_of(planned_.begin(), planned_.end(), [](const PlannedKernel& role) { return role.async_proxy; }))
      return;
    for (PlannedKernel& role : planned_) {
      if (!role.async_proxy) role.kernel = place_fences(role.kernel, role.inference.scratch_buffers);
      role.async_proxy = true;
    }
  }

  // Tensor cores want their tiles as they do.
  bool is_operand(const ir::BufferData* tile) const {
    return ir::contains(kernel_.body, [&](const Stmt& stmt) {
      const auto* gemm = ir::as<ir::Gemm>(stmt);
      return gemm && (gemm->a.buffer.get() == tile || gemm->b.buffer.get() == tile);
    });
  }

  // A tile that some role wants without bank conflicts is so for all, unless it is known by other names or as bytes one
  // after the other.
  void agree_on_tiles() {
    auto sharing = ir::sharing_buffers(kernel_);
    std::unordered_set<const ir::BufferData*> of_boxes;
    for (const PlannedKernel& planned : planned_) {
      for (const ir::BufferData* tile : tiles_in_order(planned.kernel.body))
        if (!is_operand(tile)) sharing.insert(tile);
      of_boxes.merge(tiles_of_boxes(planned.kernel.body));
    }
    for (const ir::Buffer& buffer : kernel_.allocations) {
      const layout::SharedLayout* best = nullptr;
      for (const PlannedKernel& planned : planned_) {
        const auto found = planned.inference.tiles.find(buffer.get());
        if (found == planned.inference.tiles.end()) continue;
        const bool plain = found->second.span() == layout::SwizzleSpan::none;
        if (best == nullptr || plain == sharing.contains(buffer.get())) best = &found->second;
      }
      if (best == nullptr || agree_with_request(buffer)) continue;
      const bool is_padded = best->size() != layout::volume(best->shape());
      const layout::SharedLayout agreed = sharing.contains(buffer.get())
                                              ? layout::SharedLayout::linear(best->shape(), best->element_bits())
                                          : is_padded && of_boxes.contains(buffer.get())
                                              ? layout::conflict_free_layout(best->shape(), best->element_bits())
                                              : *best;
      for (PlannedKernel& planned : planned_)
        if (planned.inference.tiles.contains(buffer.get()))
          planned.inference.tiles.insert_or_assign(buffer.get(), agreed);
    }
  }

  // Whether it lies as the program asks for in all roles.
  bool agree_with_request(const ir::Buffer& tile) {
    bool all = true, some = false;
    for (const PlannedKernel& planned : planned_) {
      if (!planned.inference.tiles.contains(tile.get())) continue;
      const bool met = is_as_requested(planned.inference, tile.get());
      all &= met;
      some |= met;
    }
    if (some && !all)
      for (PlannedKernel& planned : planned_)
        for (Inference::Request& request : planned.inference.requests)
          if (request.buffer == tile && request.obstacle.empty()) request.obstacle = "other warps need it otherwise";
    return some && all;
  }

  void place_common_tiles() {
    common_.clear();
    common_bytes_ = 0;
    for (const ir::Buffer& buffer : kernel_.allocations) {
      if (buffer->scope != ir::Scope::shared || buffer->base) continue;
      for (const PlannedKernel& planned : planned_) {
        const auto found = planned.inference.tiles.find(buffer.get());
        if (found == planned.inference.tiles.end()) continue;
        const int64_t alignment = found->second.alignment();
        const int64_t offset = (common_bytes_ + alignment - 1) / alignment * alignment;
        common_.emplace(buffer.get(), offset);
        common_bytes_ = offset + found->second.bytes();
        break;
      }
    }
  }

  // With memory of its own from `start` on.
  Result<LoweredKernel> lower_role(size_t role, int64_t start) {
    PlannedKernel planned = planned_[role];
    SharedArena& arena = planned.arena;
    int64_t alignment = 16;
    for (const auto& [tile, place] : arena.places)
      alignment = std::max(alignment, planned.inference.tiles.at(tile).alignment());
    start = (start + alignment - 1) / alignment * alignment;
    for (auto& [tile, place] : arena.places) place.offset += start;
    arena.bytes += start;
    for (const auto& [tile, offset] : common_)
      if (planned.inference.tiles.contains(tile))
        arena.places[tile] = {offset, planned.inference.tiles.at(tile).bytes()};
    LoweredKernel lowered = TRY(lower(planned, *target_));
    const bool together = ir::contains<ir::Shuffle, ir::ExternCall>(lowered.kernel.body) ||
                          ir::contains(lowered.kernel.body, [](const Stmt& stmt) {
                            const auto* sync = ir::as<ir::Sync>(stmt);
                            return sync != nullptr && sync->threads != 1;
                          });
    if (together && thread_count(planned.kernel) > 1 && !is_whole_warps(kernel_, roles_[role]))
      return unsupported(kernel_.span, "the threads of a warp synchronise here, but diverge elsewhere",
                         "let whole warps take the same path to each barrier");
    return lowered;
  }

  // One thread of the role waits and issues copies, after what all of its threads must do.
  static void by_one_thread(std::vector<Stmt>& body, const Expr& number, Span span) {
    const bool asks = std::any_of(body.begin(), body.end(), [](const Stmt& stmt) {
      return ir::contains(stmt, [](const Stmt& part) { return is_call_of(part, "tma_load"); });
    });
    if (!asks) return;
    const auto after =
        std::find_if(body.begin(), body.end(), [](const Stmt& stmt) { return is_call_of(stmt, "set_registers"); });
    if (after == body.end()) return;
    std::vector<Stmt> rest(after + 1, body.end());
    body.erase(after + 1, body.end());
    const Expr first = ir::binary(BinaryOp::eq, number, ir::int_imm(0), span);
    body.push_back(ir::make_stmt(ir::If{first, ir::make_stmt(ir::Block{std::move(rest)}, span), nullptr}, span));
  }

  static bool is_call_of(const Stmt& stmt, std::string_view function) {
    const auto* call = ir::as<ir::ExternCall>(stmt);
    return call != nullptr && call->function.starts_with(function);
  }

  // Its threads by their numbers in the role, and what they do; `others` for the rest.
  Stmt choice(size_t role, const LoweredKernel& part, LoweredKernel& all, const Stmt& others) const {
    const passes::Role& members = roles_[role];
    const Span span = kernel_.body->span;
    std::vector<Stmt> body;
    Expr condition, number = ir::int_imm(0);
    int64_t weight = 1;
    const auto narrow = [&](const Expr& bound) {
      condition = condition ? ir::binary(BinaryOp::logical_and, condition, bound, span) : bound;
    };
    for (size_t axis = 0; axis < members.start.size(); ++axis) {
      const ir::Var& var = part.kernel.thread_vars[axis];
      const Expr at = ir::var_ref(all.kernel.thread_vars[axis]);
      const int64_t start = members.start[axis], extent = part.kernel.threads[axis];
      const auto constant = [&](int64_t value) { return ir::int_imm(value, at->type); };
      if (start > 0) narrow(ir::binary(BinaryOp::ge, at, constant(start), span));
      if (start + extent < kernel_.threads[axis]) narrow(ir::binary(BinaryOp::lt, at, constant(start + extent), span));
      body.push_back(
          ir::make_stmt(ir::Let{var, start == 0 ? at : ir::binary(BinaryOp::sub, at, constant(start), span)}, span));
      all.extents.emplace_back(var, extent);
      number = plus(number, times(ir::cast(ir::var_ref(var), ir::kInt32), weight));
      weight *= extent;
    }
    body.push_back(ir::make_stmt(ir::Let{part.thread, number}, span));
    all.extents.emplace_back(part.thread, weight);
    for (const Stmt& stmt : ir::statements(part.kernel.body)) body.push_back(stmt);
    if (common_role_.specialized) by_one_thread(body, number, span);
    const Stmt inner = ir::make_stmt(ir::Block{std::move(body)}, span);
    return condition && others ? ir::make_stmt(ir::If{condition, inner, others}, span) : inner;
  }
};

Result<WarpRoles> roles_of(const ir::Kernel& kernel, const TargetLowering& target) {
  ir::Kernel given = with_threads(kernel);
  std::vector<passes::Role> roles = TRY(passes::split_roles(given));
  if (roles.size() == 1) return WarpRoles(std::move(given), std::move(roles), target);
  for (const ir::Buffer& buffer : given.allocations)
    if (buffer->address)
      return unsupported(
          buffer->span,
          fmt::format("`{}` is memory by its address, in a kernel whose threads go different ways", buffer->name),
          "pass the tensor itself");
  share_fragments(given, roles);
  return WarpRoles(std::move(given), std::move(roles), target);
}

// Teams, and what they are lowered to.
struct LoweredRoles {
  WarpRoles roles;
  LoweredKernel lowered;
};

// With a producer warpgroup, if that is possible and fits; else `obstacles` say why not.
std::optional<LoweredRoles> specialized_roles(const ir::Kernel& kernel, const Machine& machine,
                                              const TargetLowering& target, bool preloads,
                                              std::vector<Decision>& obstacles) {
  auto specialized = specialize_warps(kernel, machine, preloads, obstacles);
  if (!specialized) return std::nullopt;
  ir::Kernel given = with_threads(specialized->kernel);
  const auto give_up = [&](std::string why) {
    obstacles.push_back({kernel.body->span,
                         "warp roles",
                         "none: all threads do the same",
                         {"not a producer warpgroup: " + std::move(why)}});
    return std::nullopt;
  };
  auto roles = passes::split_roles(given);
  if (!roles.ok()) return give_up(roles.error().message);
  WarpRoles all(
      std::move(given), std::move(*roles), target,
      {{}, {}, true, specialized->persistent, std::move(specialized->rings), std::move(specialized->decisions)});
  auto lowered = all.run(machine);
  if (!lowered.ok()) return give_up(lowered.error().message);
  if (const int64_t bytes = shared_bytes_with_barriers(*lowered); bytes > machine.block_shared_bytes)
    return give_up(
        fmt::format("its tiles take {} bytes of shared memory, there are {}", bytes, machine.block_shared_bytes));
  return LoweredRoles{std::move(all), std::move(*lowered)};
}

std::optional<LoweredRoles> specialized_roles(const ir::Kernel& kernel, const Machine& machine,
                                              const TargetLowering& target, std::vector<Decision>& obstacles) {
  auto early = specialized_roles(kernel, machine, target, true, obstacles);
  if (early && !early->roles.is_low_on_memory()) return early;
  obstacles.clear();
  return specialized_roles(kernel, machine, target, false, obstacles);
}

}  // namespace

Result<LoweredKernel> lower_roles(const ir::Kernel& given, const Machine& machine, const TargetLowering& target) {
  const ir::Kernel kernel = with_second_stages(given, machine);
  std::vector<Decision> obstacles;
  if (auto specialized = specialized_roles(kernel, machine, target, obstacles)) return std::move(specialized->lowered);
  LoweredKernel lowered = TRY(TRY(roles_of(kernel, target)).run(machine));
  lowered.decisions.insert(lowered.decisions.begin(), obstacles.begin(), obstacles.end());
  lowered.kernel = rasterised(lowered.kernel, !lowered.wgmmas.empty(), lowered.decisions);
  return lowered;
}

Result<std::vector<PlannedKernel>> plan_roles(const ir::Kernel& given, const Machine& machine,
                                              const TargetLowering& target) {
  const ir::Kernel kernel = with_second_stages(given, machine);
  std::vector<Decision> obstacles;
  if (auto specialized = specialized_roles(kernel, machine, target, obstacles))
    return specialized->roles.planned(machine);
  return TRY(roles_of(kernel, target)).planned(machine);
}

}  // namespace tilepilot::targets::gpu
