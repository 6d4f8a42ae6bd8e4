#include "eval/process/compiler_broker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

#include "compiler/runtime/compile_library.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/untrusted/compiler_socket.h"
#include "compiler/untrusted/isolation.h"
#include "compiler/untrusted/printable.h"

namespace tilepilot::eval {

struct CompilerBroker::Page {
  std::atomic<bool> foreign_source{false};
};

namespace {

using runtime::cuda::Nvrtc;
using runtime::cuda::NvrtcOptions;
using untrusted::CodeForm;
using untrusted::CompileRequest;
using untrusted::MemoryFile;

// What the emulator adds. Other flags could name files, or programs to run.
constexpr std::string_view kFlags[] = {"-O0", "-O1", "-ffp-contract=off"};
constexpr double kLongestCompilation = 600;

struct Client {
  Descriptor socket;
  CompilerBroker::Places places;
};

Result<MemoryFile> in_memory(const std::string& code) {
  auto file = MemoryFile::of(code);
  if (file) return *std::move(file);
  return make_error(DiagnosticKind::load_failed, {}, "there is no memory for a compiled kernel");
}

Result<MemoryFile> library(const Client& client, const CompileRequest& request) {
  DiagnosticList warnings;
  auto made = runtime::compile_library({"", client.places.cache, request.flags}, request.source, client.socket.number(),
                                       warnings);
  // The candidate's verdict is no place for the state of the cache.
  static bool told = false;
  for (const Diagnostic& warning : warnings.items())
    if (!std::exchange(told, true)) fmt::print(stderr, "warning: {}: {}\n", printable(warning.message), warning.hint);
  return in_memory(TRY(std::move(made)));
}

// NVRTC is a library: what makes it run for ever or out of memory ends a process of its own.
class CubinProcess {
 public:
  CubinProcess(const Client& client, const CompileRequest& request) : client_(client), request_(request) {}

  // It answers the client itself; false if it could not.
  bool run() {
    const pid_t child = fork();
    if (child == 0) answer();
    if (child < 0) return false;
    const double begin = monotonic_seconds();
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      pollfd client{client_.socket.number(), POLLRDHUP, 0};
      if (poll(&client, 1, 2) > 0 || monotonic_seconds() - begin > kLongestCompilation) kill(child, SIGKILL);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  const Client& client_;
  const CompileRequest& request_;

  [[noreturn]] void answer() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    untrusted::Confinement confinement;
    confinement.files.readable = {"/usr", "/lib", "/lib64", "/opt", "/etc/ld.so.cache", "/proc", "/sys", "/dev"};
    auto& readable = confinement.files.readable;
    readable.insert(readable.end(), client_.places.cuda_folders.begin(), client_.places.cuda_folders.end());
    std::error_code ignored;
    std::filesystem::create_directories(client_.places.cache, ignored);
    confinement.files.writable = {client_.places.cache, "/dev/null"};
    confinement.limits = {.cpu_seconds = 600, .memory_bytes = int64_t{32} << 30, .file_bytes = int64_t{1} << 30};
    untrusted::PreparedConfinement(std::move(confinement)).put_on(false);
    NvrtcOptions options;
    options.folders = client_.places.cuda_folders;
    options.cache = client_.places.cache;
    DiagnosticList warnings;
    auto made = Nvrtc(std::move(options)).compile(request_.source, request_.architecture, warnings);
    const bool told = untrusted::answer_request(
        client_.socket.number(), made.ok() ? in_memory(made->cubin) : Result<MemoryFile>(std::move(made).take_error()));
    _exit(told ? 0 : 1);
  }
};

bool is_allowed(const CompileRequest& request) {
  const bool flags = std::all_of(request.flags.begin(), request.flags.end(), [](const std::string& flag) {
    return std::find(std::begin(kFlags), std::end(kFlags), flag) != std::end(kFlags);
  });
  const std::string& architecture = request.architecture;
  const bool plain = architecture.starts_with("sm_") && architecture.size() < 10 &&
                     std::all_of(architecture.begin(), architecture.end(),
                                 [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return flags && (request.form == CodeForm::library || (plain && request.flags.empty()));
}

// False: the client is gone, or no client of ours.
bool serve(const Client& client, std::atomic<bool>& foreign_source) {
  const auto asked = untrusted::next_request(client.socket.number());
  if (!asked) return false;
  if (!asked->request) {
    foreign_source = true;
    return true;
  }
  if (!is_allowed(*asked->request)) return false;
  if (asked->request->form == CodeForm::library)
    return untrusted::answer_request(client.socket.number(), library(client, *asked->request));
  if (CubinProcess(client, *asked->request).run()) return true;
  return untrusted::answer_request(
      client.socket.number(),
      make_error(DiagnosticKind::compiler_failed, {}, "NVRTC ran out of time or memory on generated code"));
}

// The fields of a new client: the cache, then folders of CUDA.
bool accept(int control, std::vector<Client>& clients) {
  const auto fields = untrusted::receive_fields(control);
  if (!fields || fields->texts.empty()) return false;
  clients.push_back(
      {Descriptor(fields->descriptor), {fields->texts[0], {fields->texts.begin() + 1, fields->texts.end()}}});
  return true;
}

[[noreturn]] void run_broker(int control, std::atomic<bool>& foreign_source) {
  std::vector<Client> clients;
  while (true) {
    std::vector<pollfd> waiting = {{control, POLLIN, 0}};
    for (const Client& client : clients) waiting.push_back({client.socket.number(), POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) _exit(1);
    for (size_t k = clients.size(); k > 0; --k)
      if (waiting[k].revents != 0 && !serve(clients[k - 1], foreign_source))
        clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(k) - 1);
    if (waiting[0].revents != 0 && !accept(control, clients)) _exit(0);
  }
}

}  // namespace

std::unique_ptr<CompilerBroker> CompilerBroker::start() {
  void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto [ours, theirs] = socket_pair();
  if (memory == MAP_FAILED || ours.number() < 0) return nullptr;
  Page* page = new (memory) Page;
  const pid_t judge = getpid(), child = fork();
  if (child < 0) {
    munmap(memory, sizeof(Page));
    return nullptr;
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != judge) _exit(1);
    for (int number = 3; number < 64; ++number)  // the judge's socket among them
      if (number != theirs.number()) close(number);
    run_broker(theirs.number(), page->foreign_source);
  }
  return std::unique_ptr<CompilerBroker>(new CompilerBroker(child, std::move(ours), page));
}

CompilerBroker::CompilerBroker(pid_t process, Descriptor control, Page* page)
    : process_(process), control_(std::move(control)), page_(page) {}

CompilerBroker::~CompilerBroker() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  munmap(page_, sizeof(Page));
}

Descriptor CompilerBroker::connect(const Places& places) {
  auto [theirs, brokers] = socket_pair();
  page_->foreign_source = false;
  untrusted::Fields fields{{places.cache.string()}, brokers.number()};
  for (const auto& folder : places.cuda_folders) fields.texts.push_back(folder.string());
  return untrusted::send_fields(control_.number(), fields) ? std::move(theirs) : Descriptor();
}

bool CompilerBroker::saw_foreign_source() const { return page_->foreign_source; }

}  // namespace tilepilot::eval
