#include "eval/worker/crash_report.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <string_view>

#include "compiler/diagnostics/render.h"

namespace tilepilot::eval {

namespace {

struct Fault {
  int signal;
  std::string_view name;
};
constexpr std::array<Fault, 4> kFaults{{{SIGSEGV, "segmentation fault"},
                                        {SIGBUS, "bus error"},
                                        {SIGFPE, "arithmetic fault"},
                                        {SIGILL, "illegal instruction"}}};

using Messages = std::array<std::string, kFaults.size()>;

// A stack for handlers on this thread: its own one may have overflowed.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t stack = {};
    stack.ss_sp = memory_.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, &before_);
  }
  ~HandlerStack() { sigaltstack(&before_, nullptr); }
  HandlerStack(const HandlerStack&) = delete;

 private:
  static constexpr size_t kBytes = size_t{1} << 16;
  std::unique_ptr<char[]> memory_ = std::make_unique<char[]>(kBytes);
  stack_t before_ = {};
};

void use_handler_stack() { thread_local const HandlerStack stack; }

// Nobody can do anything about what is not written.
void write_message(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

void write_position_number(int number) {
  std::array<char, 12> digits{};
  size_t begin = digits.size();
  do digits[--begin] = static_cast<char>('0' + number % 10);
  while ((number /= 10) > 0 && begin > 0);
  write_message({digits.data() + begin, digits.size() - begin});
}

std::atomic<CrashReport*> the_report = nullptr;

class ReportedKernel final : public runtime::CompiledKernel {
 public:
  ReportedKernel(std::shared_ptr<runtime::CompiledKernel> kernel, CrashReport& report, std::string hint)
      : kernel_(std::move(kernel)), report_(report), hint_(std::move(hint)) {}

  Status launch(const std::vector<runtime::Argument>& arguments, const runtime::ParallelFor& parallel_for,
                Span span) override {
    const runtime::ParallelFor on_handler_stacks = [&parallel_for](int64_t count, const auto& body) {
      parallel_for(count, [&body](int64_t begin, int64_t end) {
        use_handler_stack();
        body(begin, end);
      });
    };
    std::fflush(stdout);  // what the script printed before comes first, and is not lost
    const std::string* outer = report_.enter(messages_for(span).data());
    Status status = kernel_->launch(arguments, on_handler_stacks, span);
    report_.enter(outer);
    return status;
  }
  std::string take_printed() override { return kernel_->take_printed(); }
  void set_observer(runtime::LaunchObserver* observer) override { kernel_->set_observer(observer); }
  std::vector<runtime::LaunchFacts> facts() const override { return kernel_->facts(); }
  const ir::Program& program() const override { return kernel_->program(); }
  const std::string& source() const override { return kernel_->source(); }

 private:
  std::shared_ptr<runtime::CompiledKernel> kernel_;
  CrashReport& report_;
  const std::string hint_;
  std::map<std::pair<int32_t, uint32_t>, Messages> messages_;  // by the call

  const Messages& messages_for(Span call) {
    const auto [entry, is_new] = messages_.try_emplace({call.file, call.begin});
    for (size_t k = 0; is_new && k < kFaults.size(); ++k) {
      Diagnostic fault{DiagnosticKind::crashed,
                       call.valid() ? call : program().span,
                       fmt::format("the generated kernel `{}` crashed: {}", program().name, kFaults[k].name),
                       {},
                       hint_};
      if (call.valid() && program().span.valid())
        fault.notes.push_back({program().span, fmt::format("`{}` is this program", program().name)});
      entry->second[k] = render(report_.sources(), fault);
    }
    return entry->second;
  }
};

class ReportedBackend final : public runtime::KernelBackend {
 public:
  ReportedBackend(std::unique_ptr<runtime::KernelBackend> backend, CrashReport& report, std::string hint)
      : backend_(std::move(backend)), report_(report), hint_(std::move(hint)) {}

  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program,
                                                           DiagnosticList& warnings) override {
    std::shared_ptr<runtime::CompiledKernel> kernel = TRY(backend_->compile(program, warnings));
    return std::shared_ptr<runtime::CompiledKernel>(
        std::make_shared<ReportedKernel>(std::move(kernel), report_, hint_));
  }

 private:
  std::unique_ptr<runtime::KernelBackend> backend_;
  CrashReport& report_;
  const std::string hint_;
};

}  // namespace

struct CrashReport::Handlers {
  std::array<struct sigaction, kFaults.size()> actions;
};

CrashReport::CrashReport(const SourceMap& sources) : sources_(sources), before_(std::make_unique<Handlers>()) {
  use_handler_stack();
  the_report = this;
  struct sigaction action = {};
  action.sa_handler = on_fault;
  action.sa_flags = SA_ONSTACK;
  for (size_t k = 0; k < kFaults.size(); ++k) sigaction(kFaults[k].signal, &action, &before_->actions[k]);
}

CrashReport::~CrashReport() {
  for (size_t k = 0; k < kFaults.size(); ++k) sigaction(kFaults[k].signal, &before_->actions[k], nullptr);
  the_report = nullptr;
}

std::unique_ptr<runtime::KernelBackend> CrashReport::watch(std::unique_ptr<runtime::KernelBackend> backend,
                                                           std::string hint) {
  return std::make_unique<ReportedBackend>(std::move(backend), *this, std::move(hint));
}

// Calls only what a handler may.
void CrashReport::tell(size_t fault) const {
  if (const std::string* messages = kernel_messages_) return write_message(messages[fault]);
  const int32_t file = statement_.file;
  if (file >= 0) {
    const Position at = sources_.position(file, statement_.offset);
    write_message(sources_.name(file));
    write_message(":");
    write_position_number(at.line);
    write_message(":");
    write_position_number(at.column);
    write_message(": ");
  }
  write_message("error: the script's process crashed: ");
  write_message(kFaults[fault].name);
  write_message(" [crashed]\n");
}

void CrashReport::on_fault(int signal) {
  static std::atomic_flag told;
  while (told.test_and_set()) pause();  // another thread tells, and ends the process
  for (size_t k = 0; k < kFaults.size(); ++k)
    if (kFaults[k].signal == signal) the_report.load()->tell(k);
  _exit(1);
}

}  // namespace tilepilot::eval
