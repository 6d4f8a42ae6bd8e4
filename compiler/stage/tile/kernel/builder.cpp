#include "compiler/stage/tile/kernel/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ir/one_symbol.h"
#include "compiler/ir/visit.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/kernel/arguments.h"

namespace tilepilot::stage {
namespace {

Error dead_variable(const ir::VarData& var, Span span, Span definition) {
  Error error = make_error(DiagnosticKind::staged_value_misused, span,
                           fmt::format("`{}` is used outside the loop, branch or kernel that computes it", var.name),
                           "values do not leave a block of a kernel: keep it in a buffer, or in a variable made by "
                           "`T.alloc_var(dtype)` before");
  if (definition.valid()) error->notes.push_back({definition, fmt::format("`{}` is computed here", var.name)});
  return error;
}

bool is_loop(BlockKind kind) { return kind != BlockKind::kernel && kind != BlockKind::branch; }

bool is_jump(const ir::StmtNode& stmt) {
  return std::holds_alternative<ir::Break>(stmt.node) || std::holds_alternative<ir::Continue>(stmt.node);
}

Error unbound_symbol(const ir::VarData& var, Span span) {
  return make_error(DiagnosticKind::non_constant_shape, span,
                    fmt::format("nothing gives `{}` a value: no extent of a tensor parameter determines it", var.name),
                    fmt::format("a parameter needs an extent such as `{0}` or `{0} * 4`", var.name));
}

Status check_results(const ir::Stmt& stmt, const ir::Accesses& accesses) {
  if (ir::as<ir::Copy>(stmt) || ir::as<ir::Fill>(stmt) || ir::as<ir::Scan>(stmt)) return {};
  for (const ir::Region* region : accesses.writes) {
    if (!region->buffer->type.is_nibble()) continue;
    Error error = make_error(DiagnosticKind::dtype_mismatch, stmt->span,
                             fmt::format("`{}` has elements of {}, which are only copied, filled and stored",
                                         region->buffer->name, ir::to_string(region->buffer->type)),
                             "collect results in a wider type, then copy them");
    error->notes.push_back(declaration_note(*region->buffer));
    return error;
  }
  return {};
}

}  // namespace

ProgramBuilder::ProgramBuilder(std::string name, Span span) {
  program_.name = std::move(name);
  program_.span = span;
}

void ProgramBuilder::add_parameter(ir::Buffer buffer) {
  std::vector<ir::Expr> sizes = buffer->shape;
  sizes.insert(sizes.end(), buffer->strides.begin(), buffer->strides.end());
  for (const ir::Expr& extent : sizes) {
    const auto form = ir::one_symbol(extent);
    if (!form || alive_.count(form->symbol.get())) continue;
    program_.symbols.push_back(form->symbol);
    revive(form->symbol);
  }
  buffers_.insert(buffer.get());
  program_.parameters.emplace_back(std::move(buffer));
}

void ProgramBuilder::add_parameter(ir::Var scalar) {
  revive(scalar);
  program_.parameters.emplace_back(std::move(scalar));
}

Status ProgramBuilder::check_parameters() const {
  for (const auto& parameter : program_.parameters) {
    auto* buffer = std::get_if<ir::Buffer>(&parameter);
    if (!buffer) continue;
    TRY(check_rows(**buffer));
    for (const ir::Expr& extent : (*buffer)->shape) TRY(check(extent, (*buffer)->span));
    for (const ir::Expr& stride : (*buffer)->strides) TRY(check(stride, (*buffer)->span));
  }
  return {};
}

Status ProgramBuilder::begin_kernel(ir::Kernel kernel) {
  if (in_kernel_)
    return make_error(DiagnosticKind::invalid_launch, kernel.span, "`T.Kernel` inside another `T.Kernel`",
                      "end the first `with` block before opening the next");
  for (const ir::Expr& extent : kernel.grid) TRY(check(extent, kernel.span));
  kernel_ = std::move(kernel);
  in_kernel_ = true;
  open(BlockKind::kernel, kernel_.block_vars);
  for (AddressedTensor& tensor : std::exchange(addressed_, {})) {
    for (const ir::Buffer& buffer : {tensor.slot, tensor.tensor}) {
      buffers_.insert(buffer.get());
      kernel_.allocations.push_back(buffer);
    }
    const Span span = tensor.tensor->span;
    TRY(emit(ir::Store{tensor.slot, {ir::int_imm(0, ir::kInt32, span)}, tensor.address}, span));
  }
  return {};
}

Status ProgramBuilder::add_addressed(AddressedTensor tensor) {
  TRY(check(tensor.address, tensor.tensor->span));
  addressed_.push_back(std::move(tensor));
  return {};
}

void ProgramBuilder::end_kernel(Span span) {
  for (const ir::Buffer& buffer : kernel_.allocations) buffers_.erase(buffer.get());
  kernel_.body = close(span);
  in_kernel_ = false;
  program_.kernels.push_back(with_safe_values(thread_return_.applied(std::move(kernel_)), safe_values_));
  safe_values_.clear();
  kernel_ = {};
}

void ProgramBuilder::open(BlockKind kind, const std::vector<ir::Var>& vars) {
  Block block{next_block_++, kind, {}, {}, false};
  for (const ir::Var& var : vars) {
    block.vars.push_back(var.get());
    revive(var);
  }
  blocks_.push_back(std::move(block));
}

ir::Stmt ProgramBuilder::close(Span cover) {
  Block block = std::move(blocks_.back());
  blocks_.pop_back();
  for (const ir::VarData* var : block.vars) alive_.erase(var);
  return ir::make_stmt(ir::Block{std::move(block.body)}, cover);
}

Result<ir::Stmt> ProgramBuilder::nested(BlockKind kind, const std::vector<ir::Var>& vars,
                                        const std::function<Status()>& body, Span cover) {
  open(kind, vars);
  Status status = body();
  ir::Stmt block = close(cover);
  TRY(std::move(status));
  return block;
}

Status ProgramBuilder::emit(ir::Stmt stmt) {
  if (unreachable()) {
    blocks_.back().ended = false;  // say it once
    return make_error(DiagnosticKind::staged_value_misused, stmt->span, "this statement can never run",
                      "remove what follows `break` or `continue` in the same block");
  }
  if (lazy_operands > 0)
    return make_error(DiagnosticKind::staged_value_misused, stmt->span,
                      "this takes effect where it may not have to run",
                      "do it before `and`, `or` or `if ... else`, and give its result a name");
  TRY(check_place(*stmt));
  TRY(check_stmt(stmt));
  blocks_.back().ended = is_jump(*stmt);
  if (const ir::Var var = ir::bound_variable(*stmt)) {
    blocks_.back().vars.push_back(var.get());
    revive(var);
  }
  blocks_.back().body.push_back(std::move(stmt));
  return {};
}

Status ProgramBuilder::return_thread(Span span) {
  if (in_parallel_loop())
    return make_error(DiagnosticKind::unsupported_tile_feature, span,
                      "`T.thread_return()` inside a parallel or vectorized loop",
                      "not every thread runs each iteration: put a condition around what the others do");
  buffers_.insert(thread_return_.flag(span).get());
  return emit(thread_return_.statement(span));
}

ir::Expr ProgramBuilder::thread_index(size_t axis, Span span) {
  static constexpr const char* kNames[] = {"tx", "ty", "tz"};
  if (axis >= kernel_.threads.size()) return ir::int_imm(0, ir::kInt32, span);
  if (kernel_.thread_vars.empty()) {
    for (size_t k = 0; k < kernel_.threads.size(); ++k) {
      kernel_.thread_vars.push_back(make_var(kNames[k]));
      blocks_.front().vars.push_back(kernel_.thread_vars.back().get());
      revive(kernel_.thread_vars.back());
    }
  }
  return ir::var_ref(kernel_.thread_vars[axis], span);
}

Result<ir::Expr> ProgramBuilder::let(std::string name, ir::Expr value, Span span) {
  auto data = std::make_shared<ir::VarData>(ir::VarData{name.empty() ? "value" : name, value->type});
  if (name.empty()) unnamed_.emplace(data.get(), data);
  ir::Var var = data;
  TRY(emit(ir::Let{var, value}, span));
  lets_.emplace(var.get(), std::make_pair(var, std::move(value)));
  return ir::var_ref(var, span);
}

std::shared_ptr<ir::BufferData> ProgramBuilder::allocate(ir::BufferData data) {
  auto buffer = std::make_shared<ir::BufferData>(std::move(data));
  buffers_.insert(buffer.get());
  kernel_.allocations.push_back(buffer);
  return buffer;
}

void ProgramBuilder::request_layout(ir::RequestedLayout request) {
  std::erase_if(kernel_.layouts, [&](const ir::RequestedLayout& one) { return one.buffer == request.buffer; });
  kernel_.layouts.push_back(std::move(request));
}

std::shared_ptr<ir::BufferData> ProgramBuilder::add_workspace(ir::BufferData data) {
  auto buffer = std::make_shared<ir::BufferData>(std::move(data));
  buffers_.insert(buffer.get());
  program_.workspaces.push_back(buffer);
  return buffer;
}

bool ProgramBuilder::in_parallel_loop() const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [](const Block& block) { return block.kind == BlockKind::parallel_loop; });
}

ir::Var ProgramBuilder::make_var(std::string provisional_name, ir::DType type) {
  auto var = std::make_shared<ir::VarData>(ir::VarData{std::move(provisional_name), type});
  unnamed_.emplace(var.get(), var);
  return var;
}

void ProgramBuilder::name_var(const ir::Var& var, std::string name) {
  auto found = unnamed_.find(var.get());
  if (found == unnamed_.end()) return;
  found->second->name = std::move(name);
  unnamed_.erase(found);
}

ir::Expr ProgramBuilder::definition(const ir::Var& var) const {
  auto found = lets_.find(var.get());
  return found == lets_.end() ? nullptr : found->second.second;
}

void ProgramBuilder::note_negative(const ir::Expr& index, int64_t written) {
  negative_indices_.emplace(index, written);
}

std::optional<int64_t> ProgramBuilder::negative_index(const ir::Expr& index) const {
  const auto found = negative_indices_.find(index);
  return found == negative_indices_.end() ? std::nullopt : std::optional(found->second);
}

bool ProgramBuilder::is_open(int block) const {
  return block == 0 || std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.id == block; });
}

bool ProgramBuilder::loop_inside(int block) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.id > block && is_loop(b.kind); });
}

bool ProgramBuilder::control_inside(int block) const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [&](const Block& b) { return b.id > block && b.kind != BlockKind::kernel; });
}

Status ProgramBuilder::check_buffer(const ir::Buffer& buffer, Span span) const {
  if (buffers_.count(buffer.get())) return {};
  Error error =
      make_error(DiagnosticKind::wrong_scope, span, fmt::format("`{}` does not belong to this kernel", buffer->name),
                 "allocate it inside this `with T.Kernel(...)`, or make it a parameter");
  error->notes.push_back(declaration_note(*buffer));
  return error;
}

Status ProgramBuilder::check(const ir::Expr& expr, Span use) const {
  Status status;
  ir::walk(expr, [&](const ir::Expr& part) {
    if (!status.ok()) return;
    if (auto* load = std::get_if<ir::Load>(&part->node)) status = check_buffer(load->buffer, part->span);
    auto* reference = std::get_if<ir::VarRef>(&part->node);
    if (!reference || alive_.count(reference->var.get())) return;
    if (!known_.count(reference->var.get())) {
      status = unbound_symbol(*reference->var, use);
      return;
    }
    auto let = lets_.find(reference->var.get());
    status = dead_variable(*reference->var, use, let == lets_.end() ? Span{} : let->second.second->span);
  });
  return status;
}

Status ProgramBuilder::check_place(const ir::StmtNode& stmt) const {
  const bool shared_out = in_parallel_loop();
  if (shared_out && ir::is_tile_operator(stmt))
    return make_error(DiagnosticKind::unsupported_tile_feature, stmt.span,
                      "a tile operator inside a parallel or vectorized loop",
                      "it already works on the whole tile: put it before or after the loop, or use `T.serial`");
  auto* barrier = std::get_if<ir::Barrier>(&stmt.node);
  const bool waits = barrier && barrier->op == ir::BarrierOp::wait;
  if (shared_out && (waits || ir::needs_all_threads(stmt)))
    return make_error(DiagnosticKind::unsupported_tile_feature, stmt.span,
                      "a barrier inside a parallel or vectorized loop",
                      "not every thread runs each iteration: put it before or after the loop");
  if (!is_jump(stmt)) return {};
  auto loop = std::find_if(blocks_.rbegin(), blocks_.rend(), [](const Block& b) { return is_loop(b.kind); });
  if (loop != blocks_.rend() && loop->kind == BlockKind::serial_loop) return {};
  return make_error(DiagnosticKind::unsupported_tile_feature, stmt.span,
                    "`break` and `continue` belong to serial and `while` loops", "use `T.serial` or `range`");
}

Status ProgramBuilder::check_stmt(const ir::Stmt& stmt) const {
  auto all = [&](const std::vector<ir::Expr>& exprs) -> Status {
    for (const ir::Expr& expr : exprs) TRY(check(expr, stmt->span));
    return {};
  };
  const ir::Accesses accesses = ir::region_accesses(stmt);
  TRY(check_results(stmt, accesses));
  for (const auto* regions : {&accesses.reads, &accesses.writes}) {
    for (const ir::Region* region : *regions) {
      TRY(check_buffer(region->buffer, region->span.valid() ? region->span : stmt->span));
      TRY(all(region->start));
    }
  }
  return std::visit(ir::overloaded{
                        [&](const ir::For& node) { return all(node.extents); },
                        [&](const ir::While& node) { return check(node.condition, stmt->span); },
                        [&](const ir::If& node) { return check(node.condition, stmt->span); },
                        [&](const ir::Let& node) { return check(node.value, stmt->span); },
                        [&](const ir::Store& node) -> Status {
                          TRY(check_buffer(node.buffer, stmt->span));
                          TRY(all(node.indices));
                          return check(node.value, stmt->span);
                        },
                        [&](const ir::Fill& node) { return check(node.value, stmt->span); },
                        [&](const ir::Atomic& node) { return node.value ? check(node.value, stmt->span) : Status(); },
                        [&](const ir::AllReduce& node) {
                          return all({node.value, node.condition, node.identity});
                        },
                        [&](const ir::Shuffle& node) {
                          return all({node.value, node.lane});
                        },
                        [&](const ir::Check& node) { return check(node.condition, stmt->span); },
                        [&](const ir::Print& node) -> Status {
                          if (node.index) TRY(check(node.index, stmt->span));
                          if (node.value) TRY(check(node.value, stmt->span));
                          return all(node.thread);
                        },
                        [](const auto&) { return Status(); },
                    },
                    stmt->node);
}

Result<ProgramBuilder*> require_kernel(TileContext& context, std::string_view what, Span span) {
  if (context.builder && context.builder->in_kernel()) return context.builder;
  return make_error(DiagnosticKind::outside_kernel, span, fmt::format("{} stands outside `with T.Kernel(...)`", what),
                    "only declarations of sizes may come before the kernel");
}

Result<ProgramBuilder*> require_kernel(const TileArguments& arguments) {
  return require_kernel(arguments.context(), fmt::format("`{}`", arguments.function()), arguments.span());
}

}  // namespace tilepilot::stage
