#include "compiler/targets/cpu/roles.h"

#include <functional>
#include <numeric>

#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/emit.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr const char* kDeadlock = "every role of the block waits on a barrier";

int64_t threads_of_block(const ir::Kernel& kernel) {
  return std::accumulate(kernel.threads.begin(), kernel.threads.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

void emit_concurrent(c::Context& context, const ir::Concurrent& node) {
  constexpr int64_t kStackBytes = 256 * 1024;  // as in the prelude
  context.uses_events = true;
  const int64_t stacks = context.scratch.reserve(kStackBytes * static_cast<int64_t>(node.roles.size()));
  context.roles = context.names.fresh("roles");
  context.declarations.line("block_roles {}{{events, scratch + {}}};", context.roles, stacks);
  std::vector<std::string> names;
  for (const ir::Concurrent::Role& role : node.roles) {
    names.push_back(context.names.fresh("role"));
    context.role_threads = role.threads;
    context.body.open("const auto {} = [&]", names.back());
    emit(context, role.body);
    context.body.close(";");
  }
  for (const std::string& name : names) context.body.line("{}.add({});", context.roles, name);
  context.body.line("{}.run_all();", context.roles);
  context.roles.clear();
}

void emit_sync(c::Context& context, const ir::Sync& sync, Span span) {
  if (context.roles.empty() || sync.scope != ir::SyncScope::block) return;  // all threads are here
  auto [entry, fresh] = context.thread_barriers.try_emplace(sync.barrier);
  if (fresh) {
    entry->second = context.names.fresh("barrier");
    context.declarations.line("thread_barrier {}{{}};", entry->second);
  }
  const int64_t expected = sync.threads > 0 ? sync.threads : threads_of_block(context.kernel);
  context.body.line("{}.sync({}, {}, {}, {});", context.roles, entry->second, context.role_threads, expected,
                    context.add_check(span, kDeadlock, DiagnosticKind::deadlock));
}

// Copies are done when their statement is: what they count at a barrier never is missing.
void emit_barrier(c::Context& context, const ir::Barrier& node, Span span) {
  const std::string barrier =
      fmt::format("{}[{}]", context.names.of(node.barrier.buffer), index(context, node.barrier.start[0]));
  const std::string operand = node.operand ? factor(context, node.operand) : "";
  if (node.op == ir::BarrierOp::wait) {
    context.body.line("{}.wait({}, {}, {});", context.roles, barrier, operand,
                      context.add_check(span, kDeadlock, DiagnosticKind::deadlock));
    return;
  }
  const bool expects = node.op == ir::BarrierOp::expect || node.op == ir::BarrierOp::arrive_expect;
  if (expects) context.body.line("{}.bytes += {} * {};", barrier, operand, node.threads);
  if (node.op != ir::BarrierOp::expect) context.body.line("arrive_at({}, {});", barrier, node.threads);
}

void declare_barriers(c::Context& context, const ir::Buffer& buffer) {
  std::string all;
  for (const int64_t arrivals : buffer->arrivals)
    all += fmt::format("{}{{{}, {}, 0, 0}}", all.empty() ? "" : ", ", arrivals, arrivals);
  context.declarations.line("phase_barrier {}[{}] = {{{}}};", context.names.of(buffer), buffer->arrivals.size(), all);
}

}  // namespace tilepilot::targets::cpu
