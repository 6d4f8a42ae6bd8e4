#include "compiler/stage/tile/operators/advice.h"

#include <fmt/format.h>

#include <numeric>

#include "compiler/ir/visit.h"

namespace tilepilot::stage {
namespace {

// The same place may be traced many times.
void warn_once(TileContext& context, Diagnostic warning) {
  DiagnosticList& list = context.interpreter.diagnostics();
  for (const Diagnostic& each : list.items())
    if (each.kind == warning.kind && each.span == warning.span && each.message == warning.message) return;
  list.add(std::move(warning));
}

int64_t product(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

// How many elements the threads of a block share out at most; nullopt where that cannot be said.
class Work {
 public:
  static std::optional<int64_t> of(const ir::Kernel& kernel) {
    Work work;
    ir::walk(
        kernel.body, [&](const ir::Stmt& stmt) { work.add(stmt); }, [](const ir::Expr&) {});
    return work.known_ && work.most_ > 0 ? std::optional(work.most_) : std::nullopt;
  }

 private:
  void add(const ir::Stmt& stmt) {
    if (auto* loop = ir::as<ir::For>(stmt)) return add_loop(*loop);
    // A gemm's threads work on more than its elements, and what else is there is each thread's own affair.
    if (ir::as<ir::Gemm>(stmt) || (!ir::is_tile_operator(*stmt) && !is_plain(stmt))) known_ = false;
    const ir::Accesses accesses = ir::region_accesses(stmt);
    for (const auto* regions : {&accesses.reads, &accesses.writes})
      for (const ir::Region* region : *regions) most_ = std::max(most_, product(region->extent));
  }

  void add_loop(const ir::For& loop) {
    if (loop.kind != ir::LoopKind::parallel) return;
    int64_t count = 1;
    for (const ir::Expr& extent : loop.extents) {
      auto constant = ir::constant_int(extent);
      known_ = known_ && constant;
      count *= constant.value_or(1);
    }
    most_ = std::max(most_, count);
    ir::walk(
        loop.body,
        [&](const ir::Stmt& inner) {
          auto* nested = ir::as<ir::For>(inner);
          if (nested && nested->kind == ir::LoopKind::parallel) known_ = false;
        },
        [](const ir::Expr&) {});
  }

  static bool is_plain(const ir::Stmt& stmt) {
    return ir::as<ir::Block>(stmt) || ir::as<ir::If>(stmt) || ir::as<ir::While>(stmt) || ir::as<ir::Let>(stmt) ||
           ir::as<ir::Store>(stmt) || ir::as<ir::Break>(stmt);
  }

  int64_t most_ = 0;
  bool known_ = true;
};

// Only where at least half of the threads are idle, and a program that names its threads shares out work by itself.
void advise_threads(TileContext& context, const ir::Kernel& kernel) {
  constexpr int64_t kWarp = 32;
  const int64_t threads = product(kernel.threads);
  if (!kernel.thread_vars.empty()) return;
  const std::optional<int64_t> work = Work::of(kernel);
  if (!work || *work * 2 > threads || threads <= kWarp) return;
  Diagnostic warning{DiagnosticKind::ignored_request, kernel.span,
                     fmt::format("a block has {} threads, but no loop or tile of this kernel has more than {} elements",
                                 threads, *work)};
  warning.with_hint(fmt::format("`threads={}` is enough", (*work + kWarp - 1) / kWarp * kWarp));
  warn_once(context, std::move(warning));
}

bool reads_global_memory(const ir::Stmt& body) {
  bool reads = false;
  auto is_global = [](const ir::Buffer& buffer) { return buffer->scope == ir::Scope::global; };
  ir::walk(
      body,
      [&](const ir::Stmt& stmt) {
        for (const ir::Region* region : ir::region_accesses(stmt).reads) reads = reads || is_global(region->buffer);
      },
      [&](const ir::Expr& expr) {
        auto* load = ir::as<ir::Load>(expr);
        reads = reads || (load && is_global(load->buffer));
      });
  return reads;
}

void advise_stages(TileContext& context, const ir::Kernel& kernel) {
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        auto* loop = ir::as<ir::For>(stmt);
        if (!loop || loop->kind != ir::LoopKind::pipelined || loop->num_stages < 2 || reads_global_memory(loop->body))
          return;
        Diagnostic warning{
            DiagnosticKind::ignored_request, stmt->span,
            fmt::format("`num_stages={}` overlaps nothing: the loop reads no global memory", loop->num_stages)};
        warning.with_hint("use `T.serial`");
        warn_once(context, std::move(warning));
      },
      [](const ir::Expr&) {});
}

}  // namespace

void advise(TileContext& context, const ir::Kernel& kernel, bool threads_given) {
  if (threads_given) advise_threads(context, kernel);
  advise_stages(context, kernel);
}

}  // namespace tilepilot::stage
