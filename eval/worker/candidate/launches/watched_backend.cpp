#include "eval/worker/candidate/launches/watched_backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/search.h"
#include "compiler/ir/visit.h"
#include "eval/worker/candidate/launches/launch_work.h"

namespace tilepilot::eval {
namespace {

// The type of the first floating buffer of 16 bit; empty: it has none.
std::string low_precision_of(const ir::Program& program) {
  std::string found;
  auto look = [&](const ir::Buffer& buffer) {
    if (found.empty() && buffer->type.is_float() && buffer->type.bits == 16) found = ir::to_string(buffer->type);
  };
  for (auto& parameter : program.parameters) {
    if (auto* buffer = std::get_if<ir::Buffer>(&parameter)) look(*buffer);
  }
  for (auto& kernel : program.kernels) {
    for (auto& buffer : kernel.allocations) look(buffer);
  }
  return found;
}

// Where a program brings text of its own into the generated code, if it does.
std::optional<Span> foreign_source(const ir::Program& program) {
  std::optional<Span> found;
  const auto look = [&](const ir::Stmt& stmt) {
    if (!found && ir::as<ir::ExternCall>(stmt)) found = stmt->span;
  };
  for (auto& kernel : program.kernels) ir::walk(kernel.body, look, [](const ir::Expr&) {});
  if (!found && !program.sources.empty()) found = program.kernels.empty() ? program.span : program.kernels[0].span;
  return found;
}

// Whether a block may wait for what an earlier one writes. Then the order of blocks is the program's business: on GPUs,
// too, blocks begin in order.
bool may_wait(const ir::Program& program) {
  const auto waits = [](const ir::Stmt& s) {
    const auto* atomic = ir::as<ir::Atomic>(s);
    return ir::as<ir::While>(s) || (atomic && atomic->op == ir::AtomicOp::load);
  };
  return std::any_of(program.kernels.begin(), program.kernels.end(),
                     [&](const ir::Kernel& kernel) { return ir::contains(kernel.body, waits); });
}

class WatchedKernel final : public runtime::CompiledKernel {
 public:
  WatchedKernel(std::shared_ptr<runtime::CompiledKernel> kernel, LaunchLog& log, CrashMarker& marker)
      : kernel_(std::move(kernel)), log_(log), marker_(marker), may_wait_(may_wait(kernel_->program())) {}

  Status launch(const std::vector<runtime::Argument>& arguments, const runtime::ParallelFor& parallel_for,
                Span span) override {
    if (log_.ghost != Ghost::none) return launch_ghost(log_.ghost, program(), arguments, log_.device);
    // The call, not the last statement that ran: its arguments may have staged a kernel elsewhere.
    if (span.valid()) {
      marker_.at.file = span.file;
      marker_.at.offset = span.begin;
    }
    TRY(settle(span));  // of what ran before
    std::optional<LaunchWork> work;
    if (log_.looks && !log_.worked) work.emplace(arguments, log_.device);
    if (log_.before_launch && log_.waits) log_.before_launch();
    double begin = monotonic_seconds();
    kernel_->set_block_order(may_wait_ ? runtime::BlockOrder::first_to_last : log_.order);
    marker_.enter_kernel(program().name);
    auto status = kernel_->launch(arguments, parallel_for, span);
    if (status.ok()) status = settle(span);
    marker_.leave_kernel();
    if (!status.ok()) return blamed(std::move(status).take_error());
    if (work) log_.worked = work->was_done();
    if (log_.recorded) log_.recorded->add(program(), arguments);
    log_.seconds += monotonic_seconds() - begin;
    if (log_.launches++ == 0 || log_.kernels.count(program().name) == 0) note_name();
    return status;
  }
  std::string take_printed() override { return kernel_->take_printed(); }
  void set_observer(runtime::LaunchObserver* observer) override { kernel_->set_observer(observer); }
  std::vector<runtime::LaunchFacts> facts() const override { return kernel_->facts(); }
  const ir::Program& program() const override { return kernel_->program(); }
  const std::string& source() const override { return kernel_->source(); }

 private:
  Status settle(Span span) const {
    if (!log_.wait || !log_.waits) return {};
    auto status = log_.wait();
    if (status.ok()) return {};
    Error error = std::move(status).take_error();
    if (!error->span.valid()) error->span = span;
    return error;
  }

  Error blamed(Error error) const {
    if (error->kind == DiagnosticKind::device_failed && log_.waits)
      error->message = fmt::format("the generated kernel `{}` failed on the GPU: {}", program().name, error->message);
    return error;
  }

  void note_name() {
    log_.kernels.insert(program().name);
    if (auto type = low_precision_of(program()); !type.empty()) log_.low_precision.emplace(program().name, type);
  }

  std::shared_ptr<runtime::CompiledKernel> kernel_;
  LaunchLog& log_;
  CrashMarker& marker_;
  const bool may_wait_;
};

class WatchedBackend final : public runtime::KernelBackend {
 public:
  WatchedBackend(std::unique_ptr<runtime::KernelBackend> backend, LaunchLog& log, CrashMarker& marker)
      : backend_(std::move(backend)), log_(log), marker_(marker) {}

  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override {
    TRY(admit(program));
    marker_.compiling_since = monotonic_seconds();
    auto kernel = backend_->compile(program, warnings);
    marker_.compiled = marker_.compiled + monotonic_seconds() - marker_.compiling_since.exchange(0);
    if (!kernel) return std::move(kernel).take_error();
    return std::make_shared<WatchedKernel>(*std::move(kernel), log_, marker_);
  }

 private:
  Status admit(const ir::Program& program) {
    const auto foreign = foreign_source(program);
    if (!foreign) return {};
    if (log_.admits_foreign) {
      if (log_.tell_foreign) log_.tell_foreign();
      return {};
    }
    log_.refused_foreign = true;
    return make_error(DiagnosticKind::forbidden, *foreign,
                      "the program brings device source of its own, which the judge does not compile",
                      "write it in the tile language, or admit it with `--allow-foreign`");
  }

  std::unique_ptr<runtime::KernelBackend> backend_;
  LaunchLog& log_;
  CrashMarker& marker_;
};

}  // namespace

std::unique_ptr<runtime::KernelBackend> watch(std::unique_ptr<runtime::KernelBackend> backend, LaunchLog& log,
                                              CrashMarker& marker) {
  return std::make_unique<WatchedBackend>(std::move(backend), log, marker);
}

}  // namespace tilepilot::eval
