#include "compiler/targets/gpu/lower/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/iterations/iteration_variables.h"
#include "compiler/targets/gpu/facts/conflicting_updates.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::gpu {

using ir::Stmt;

namespace {

constexpr int64_t kMostRegisters = 16 * kMostRegistersOfThread;  // all written out: NVRTC works on them for minutes
constexpr size_t kBuffersShown = 3;

bool is_leaf(const Stmt& stmt) {
  const auto* loop = ir::as<ir::For>(stmt);
  return (loop && loop->kind == ir::LoopKind::parallel) || ir::is_tile_operator(*stmt);
}

class Warnings {
 public:
  Warnings(const PlannedKernel& planned, int64_t threads_of_block)
      : planned_(planned), limit_(registers_of_thread(threads_of_block)), threads_(thread_count(planned.kernel)) {}

  Result<std::vector<Diagnostic>> run() {
    visit(planned_.kernel.body);
    if (worst_ > kMostRegisters)
      return make_error(DiagnosticKind::too_large_for_device, where_->span, registers_message(), hint());
    if (worst_ > limit_)
      found_.push_back({DiagnosticKind::slow_on_device,
                        where_->span,
                        registers_message() + ": the rest goes to slow local memory",
                        {},
                        hint()});
    return std::move(found_);
  }

 private:
  const PlannedKernel& planned_;
  const int64_t limit_, threads_;
  std::vector<Diagnostic> found_;
  int64_t worst_ = 0;
  Stmt where_;

  void visit(const Stmt& body) {
    if (is_leaf(body)) return leaf(body);
    if (const auto* list = ir::as<ir::Block>(body)) {
      for (const Stmt& part : list->body) visit(part);
    } else if (const auto* loop = ir::as<ir::For>(body)) {
      visit(loop->body);
    } else if (const auto* loop_while = ir::as<ir::While>(body)) {
      visit(loop_while->body);
    } else if (const auto* choice = ir::as<ir::If>(body)) {
      visit(choice->then);
      if (choice->otherwise) visit(choice->otherwise);
    }
  }

  // Of the fragments among them.
  int64_t registers(const ir::BufferSet& buffers) const {
    int64_t bits = 0;
    for (const ir::BufferData* buffer : buffers) {
      const auto found = planned_.inference.fragments.find(buffer);
      if (found != planned_.inference.fragments.end()) bits += found->second.register_count() * buffer->type.bits;
    }
    return (bits + 31) / 32;
  }

  void leaf(const Stmt& stmt) {
    // Those that it reads hold values as it begins, those that it writes as it ends.
    const ir::Effects effects = ir::effects_of(stmt);
    const int64_t needed = std::max(registers(effects.reads), registers(effects.writes));
    if (needed > worst_) {
      worst_ = needed;
      where_ = stmt;
    }
    const auto plan = planned_.inference.gemms.find(stmt.get());
    if (plan == planned_.inference.gemms.end() || plan->second.atom != nullptr || !plan->second.has_instruction) return;
    found_.push_back({DiagnosticKind::slow_on_device,
                      stmt->span,
                      "this GEMM uses no tensor cores: " + plan->second.reason,
                      {},
                      "use a multiple of 32 threads, and tiles whose extents are multiples of what an instruction "
                      "multiplies"});
  }

  std::string registers_message() const {
    return fmt::format("the fragments that this needs take {} registers of each of {} threads, which have {}", worst_,
                       threads_, limit_);
  }
  static std::string hint() { return "use more threads, smaller tiles, or shared memory"; }
};

}  // namespace

Result<std::vector<Diagnostic>> resource_warnings(const PlannedKernel& planned, int64_t threads_of_block) {
  return Warnings(planned, threads_of_block).run();
}

namespace {

// A loop over elements in which all threads synchronise, as they must where nobody knows that they use elements of
// their own.
void warn_of_barriers(const Stmt& stmt, std::vector<Diagnostic>& found) {
  const auto* loop = ir::as<ir::For>(stmt);
  if (loop == nullptr || loop->kind != ir::LoopKind::vectorized || !ir::contains<ir::Sync>(loop->body)) return;
  found.push_back({DiagnosticKind::slow_on_device,
                   stmt->span,
                   "all threads synchronise in each iteration of this loop: its elements may be those that another "
                   "thread uses",
                   {},
                   "index them so that the thread and the loop's variables show who has which, or call "
                   "`T.sync_threads()` where threads exchange them"});
}

}  // namespace

std::vector<Diagnostic> sequence_warnings(const ir::Program& given, const ir::Program& prepared) {
  std::vector<Diagnostic> found;
  for (const ir::Kernel& kernel : given.kernels) {
    for (const passes::SequentialVariable& variable : passes::sequential_variables(kernel)) {
      const char* why = variable.carried ? "hand `{}` on to the next one" : "leave `{}` for what follows the loop";
      found.push_back({DiagnosticKind::slow_on_device,
                       variable.loop->span,
                       fmt::format(fmt::runtime(why), variable.buffer->name),
                       {},
                       "set the variable in each iteration before it is read and read it there alone, or use "
                       "`T.reduce_sum` and the like, `T.cumsum` or `T.serial`"});
    }
  }
  const auto note = [&](const Stmt& stmt) {
    const auto* loop = ir::as<ir::For>(stmt);
    if (loop == nullptr || loop->kind != ir::LoopKind::parallel) return;
    for (const passes::Update& update : updates_in_turn(stmt)) {
      found.push_back({DiagnosticKind::slow_on_device,
                       stmt->span,
                       fmt::format("may change the same element of `{}`", update.buffer->name),
                       {},
                       "one operation (`+=`, `T.max`, `T.min` or `|=`) that is all that the loop does to it runs in "
                       "parallel; so do iterations that change elements of their own"});
    }
  };
  for (const ir::Kernel& kernel : prepared.kernels) ir::walk(kernel.body, note, [](const ir::Expr&) {});
  for (Diagnostic& warning : found)
    warning.message = "iterations of this parallel loop " + warning.message + ": they run one after another";
  for (const ir::Kernel& kernel : prepared.kernels)
    ir::walk(
        kernel.body, [&](const Stmt& stmt) { warn_of_barriers(stmt, found); }, [](const ir::Expr&) {});
  return found;
}

Status check_registers(const ir::Kernel& kernel) {
  const int64_t threads = thread_count(kernel), groups = threads / layout::kWarpgroupSize;
  if (threads % layout::kWarpgroupSize != 0) return {};
  std::vector<int64_t> last(static_cast<size_t>(groups), registers_of_thread(threads));
  Stmt given;
  const auto note = [&](const Stmt& stmt, const std::vector<int>* who) {
    const auto* async = ir::as<ir::Async>(stmt);
    if (!async || (async->op != ir::AsyncOp::raise_registers && async->op != ir::AsyncOp::lower_registers)) return;
    if (async->op == ir::AsyncOp::raise_registers) given = stmt;
    for (int64_t group = 0; group < groups; ++group)
      if (who == nullptr || std::find(who->begin(), who->end(), group) != who->end())
        last[static_cast<size_t>(group)] = async->count;
  };
  const auto no_expr = [](const ir::Expr&) {};
  ir::walk(
      kernel.body,
      [&](const Stmt& stmt) {
        const auto* roles = ir::as<ir::Roles>(stmt);
        if (roles == nullptr) return;
        ir::walk(
            roles->body, [&](const Stmt& part) { note(part, &roles->groups); }, no_expr);
      },
      no_expr);
  // Which groups take a branch is not known.
  const auto in_branch = [](const Stmt& stmt) { return ir::as<ir::If>(stmt) && ir::contains<ir::Async>(stmt); };
  if (!ir::contains<ir::Roles>(kernel.body) && !ir::contains(kernel.body, in_branch))
    ir::walk(
        kernel.body, [&](const Stmt& stmt) { note(stmt, nullptr); }, no_expr);
  const int64_t all = layout::kWarpgroupSize * std::accumulate(last.begin(), last.end(), int64_t{0});
  if (given == nullptr || all <= kRegistersOfBlock) return {};
  return make_error(DiagnosticKind::too_large_for_device, given->span,
                    fmt::format("the warpgroups are given {} registers in all; there are {}", all, kRegistersOfBlock),
                    "give others fewer: a warpgroup waits until the registers that it requests are free");
}

int64_t shared_bytes_with_barriers(const LoweredKernel& lowered) {
  int64_t bytes = (lowered.shared_bytes + kBytesOfBarrier - 1) / kBytesOfBarrier * kBytesOfBarrier;
  for (const ir::Buffer& buffer : lowered.kernel.allocations)
    if (buffer->scope == ir::Scope::barrier) bytes += static_cast<int64_t>(buffer->arrivals.size()) * kBytesOfBarrier;
  return bytes;
}

namespace {

void note_largest(const ir::Kernel& kernel, ir::Scope scope, Diagnostic& error) {
  std::vector<std::pair<int64_t, ir::Buffer>> buffers;
  for (const ir::Buffer& buffer : kernel.allocations) {
    if (buffer->scope != scope || buffer->base) continue;
    int64_t size = buffer->type.bytes();
    for (const ir::Expr& extent : buffer->shape) size *= ir::constant_int(extent).value_or(1);
    buffers.emplace_back(size, buffer);
  }
  std::stable_sort(buffers.begin(), buffers.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t k = 0; k < std::min(buffers.size(), kBuffersShown); ++k)
    error.note(buffers[k].second->span, fmt::format("`{}` takes {} bytes", buffers[k].second->name, buffers[k].first));
}

}  // namespace

Error too_much_shared_memory(const ir::Kernel& kernel, int64_t bytes, int64_t limit) {
  Error error =
      make_error(DiagnosticKind::too_large_for_device, kernel.span,
                 fmt::format("this kernel needs {} bytes of shared memory; a block of the target has {}", bytes, limit),
                 "use smaller tiles or fewer stages");
  note_largest(kernel, ir::Scope::shared, *error);
  return error;
}

Error too_much_local_memory(const ir::Kernel& kernel, int64_t bytes, int64_t limit) {
  Error error = make_error(
      DiagnosticKind::too_large_for_device, kernel.span,
      fmt::format("each thread of this kernel needs {} bytes for itself; the target gives it {}", bytes, limit),
      "use smaller local arrays, or shared memory");
  note_largest(kernel, ir::Scope::local, *error);
  return error;
}

}  // namespace tilepilot::targets::gpu
