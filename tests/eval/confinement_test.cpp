// What a candidate's process can still do, and who compiles for it. Each layer that this machine lacks is a skip.
#include "eval/process/candidate_confinement.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "compiler/untrusted/compiler_socket.h"
#include "eval/process/compiler_broker.h"
#include "eval/process/output_tap.h"

// The sanitizers' own run time makes calls and threads that a confined process may not.
#ifndef TILEPILOT_SANITIZED

namespace tilepilot::eval {
namespace {

namespace fs = std::filesystem;
using untrusted::MemoryFile;

// What `act` returns in a confined process; -1: it died.
template <class Act>
int confined(const Act& act, bool uses_gpu = false) {
  bool in_namespaces = false;
  const pid_t child = untrusted::fork_into_namespaces(in_namespaces);
  if (child == 0) {
    confine_candidate(in_namespaces, uses_gpu, {});
    _exit(act());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool opens(const char* path, int flags) {
  const int file = open(path, flags, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

// Each candidate is a process of its own.
TEST(Confinement, AddsLittleToAStart) {
  double least = 1;
  for (int look = 0; look < 5 && least > 0.03; ++look) least = std::min(least, seconds_of_confinement());
  EXPECT_LE(least, 0.03);
}

TEST(Confinement, LeavesWhatComputingNeeds) {
  EXPECT_EQ(confined([] {
              int failed = 0;
              std::atomic<int> ran = 0;
              std::thread([&] { ran = 1; }).join();
              if (ran != 1) failed |= 1;
              auto file = MemoryFile::of("bytes");
              if (!file || file->content() != "bytes") failed |= 2;
              if (!opens("/proc/self/maps", O_RDONLY) || !opens("/proc/self/statm", O_RDONLY)) failed |= 4;
              if (!opens("/proc/cpuinfo", O_RDONLY) || !opens("/dev/null", O_RDONLY)) failed |= 8;
              if (std::thread::hardware_concurrency() == 0) failed |= 16;
              if (file && !opens(file->unique_path().c_str(), O_RDONLY)) failed |= 32;
              return failed;
            }),
            0);
}

TEST(Confinement, fail_FilesOfOthers) {
  const auto layers = untrusted::available_layers();
  if (!layers.root && layers.landlock == 0) GTEST_SKIP() << untrusted::to_string(layers);
  const std::string mine = ::testing::TempDir() + "/confined.txt";
  EXPECT_EQ(confined([&] {
              int possible = 0;
              if (opens("/etc/passwd", O_RDONLY)) possible |= 1;
              if (opens("/usr/bin/env", O_RDONLY)) possible |= 2;
              if (opens("/proc/1/environ", O_RDONLY) && getpid() != 1) possible |= 4;
              if (opens(mine.c_str(), O_WRONLY | O_CREAT)) possible |= 8;
              if (opens("/dev/shm/confined", O_WRONLY | O_CREAT)) possible |= 16;
              if (opens("/", O_RDONLY | O_TMPFILE)) possible |= 32;
              return possible;
            }),
            0);
}

TEST(Confinement, fail_ProcessesAndTheNetwork) {
  if (!untrusted::available_layers().seccomp) GTEST_SKIP() << "this machine has no seccomp";
  for (const bool uses_gpu : {false, true}) {
    EXPECT_EQ(confined(
                  [] {
                    int possible = 0;
                    if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0) possible |= 1;
                    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) possible |= 2;
                    const pid_t child = fork();
                    if (child == 0) _exit(0);
                    if (child > 0) possible |= 4;
                    const char* const arguments[] = {"true", nullptr};
                    execv("/bin/true", const_cast<char* const*>(arguments));
                    if (errno != ENOSYS && errno != EPERM) possible |= 8;
                    if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) >= 0) possible |= 16;
                    if (unshare(CLONE_NEWUSER) == 0) possible |= 32;
                    char byte = 0;
                    iovec here{&byte, 1};
                    if (syscall(SYS_process_vm_readv, getpid(), &here, 1, &here, 1, 0) >= 0) possible |= 64;
                    return possible;
                  },
                  uses_gpu),
              0)
        << uses_gpu;
  }
}

TEST(Confinement, fail_SignalsToOthers) {
  const auto layers = untrusted::available_layers();
  if (!layers.seccomp) GTEST_SKIP() << "this machine has no seccomp";
  const pid_t parent = getpid();
  EXPECT_EQ(confined([&] { return kill(parent, 0) == 0 || kill(-1, 0) == 0 ? 1 : 0; }), 0);
}

// The first process of a namespace still dies of its faults, with their signal.
TEST(Confinement, FaultsEndTheProcess) {
  for (const int signal : {SIGSEGV, SIGFPE}) {
    bool in_namespaces = false;
    const pid_t child = untrusted::fork_into_namespaces(in_namespaces);
    if (child == 0) {
      confine_candidate(in_namespaces, false, {});
      volatile int zero = 0;
      if (signal == SIGFPE) _exit(7 / zero);
      *reinterpret_cast<volatile int*>(8) = 1;
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
  }
}

class Broker : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-broker-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    cache_ = name;
    broker_ = CompilerBroker::start();
    ASSERT_TRUE(broker_);
  }
  void TearDown() override {
    broker_.reset();
    fs::remove_all(cache_);
  }

  // Processes that work in the cache's folder.
  int compilers() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline");
      const std::string all((std::istreambuf_iterator<char>(file)), {});
      count += all.find(cache_.string()) != std::string::npos;
    }
    return count;
  }
  bool comes_to(int count, bool more_is_enough = false) const {
    for (int k = 0; k < 1000; ++k) {
      const int now = compilers();
      if (now == count || (more_is_enough && now > count)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  fs::path cache_;
  std::unique_ptr<CompilerBroker> broker_;
};

const untrusted::CompileRequest kAnswer = {
    untrusted::CodeForm::library, "", {"-O0"}, "extern \"C\" int answer() { return 42; }\n"};
// Instantiates for ever.
const untrusted::CompileRequest kBomb = {
    untrusted::CodeForm::library,
    "",
    {"-O0"},
    "template <int n, int k> struct A { static constexpr long v = A<n - 1, k>::v + A<n - 1, k + 1>::v; };\n"
    "template <int k> struct A<0, k> { static constexpr long v = k; };\nlong x = A<850, 0>::v;\n"};

TEST_F(Broker, CompilesForAConfinedProcess) {
  const Descriptor socket = broker_->connect({cache_, {}});
  ASSERT_GE(socket.number(), 0);
  for (int k = 0; k < 2; ++k) {  // compiled, then from the cache
    EXPECT_EQ(confined([&] {
                auto code = untrusted::ask_compiler(socket.number(), kAnswer);
                if (!code.ok()) return 1;
                void* library = dlopen(code->unique_path().c_str(), RTLD_NOW);
                auto* answer = library ? reinterpret_cast<int (*)()>(dlsym(library, "answer")) : nullptr;
                return answer ? answer() : 2;
              }),
              42);
  }
}

TEST_F(Broker, fail_SourceThatTheCompilerRejects) {
  const Descriptor socket = broker_->connect({cache_, {}});
  auto request = kAnswer;
  request.source = "#include \"/etc/passwd\"\n";
  auto code = untrusted::ask_compiler(socket.number(), request);
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().kind, DiagnosticKind::compiler_failed);
  ASSERT_FALSE(code.error().notes.empty());
  EXPECT_EQ(code.error().notes[0].message.find("root:"), std::string::npos);
  EXPECT_TRUE(untrusted::ask_compiler(socket.number(), kAnswer).ok());
}

// Flags name files and programs; what is no request is the end of it.
TEST_F(Broker, fail_WhatNoCandidateAsks) {
  for (const char* flag : {"-fplugin=/tmp/x.so", "@/etc/passwd", "-o/tmp/x", "-wrapper"}) {
    const Descriptor socket = broker_->connect({cache_, {}});
    auto request = kAnswer;
    request.flags = {flag};
    auto code = untrusted::ask_compiler(socket.number(), request);
    ASSERT_FALSE(code.ok()) << flag;
    EXPECT_EQ(code.error().kind, DiagnosticKind::worker_unavailable) << flag;
  }
  const Descriptor socket = broker_->connect({cache_, {}});
  ASSERT_EQ(write(socket.number(), std::string(200, '\xff').data(), 200), 200);
  EXPECT_FALSE(untrusted::receive_fields(socket.number()));
  EXPECT_TRUE(untrusted::ask_compiler(broker_->connect({cache_, {}}).number(), kAnswer).ok());
}

TEST_F(Broker, RemembersForeignSource) {
  const Descriptor socket = broker_->connect({cache_, {}});
  EXPECT_FALSE(broker_->saw_foreign_source());
  ASSERT_TRUE(untrusted::tell_foreign_source(socket.number()));
  ASSERT_TRUE(untrusted::ask_compiler(socket.number(), kAnswer).ok());
  EXPECT_TRUE(broker_->saw_foreign_source());
  const Descriptor next = broker_->connect({cache_, {}});
  EXPECT_FALSE(broker_->saw_foreign_source());
}

// Nobody waits for the bomb any more: its compiler ends, and the next request is served.
TEST_F(Broker, EndsCompilersOfThoseWhoAreGone) {
  Descriptor socket = broker_->connect({cache_, {}});
  const pid_t child = fork();
  if (child == 0) {
    const auto code = untrusted::ask_compiler(socket.number(), kBomb);
    _exit(code.ok() ? 1 : 0);
  }
  { Descriptor closed = std::move(socket); }
  ASSERT_TRUE(comes_to(1, true));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(comes_to(0));
  EXPECT_TRUE(untrusted::ask_compiler(broker_->connect({cache_, {}}).number(), kAnswer).ok());
}

TEST_F(Broker, ItsCompilersDieWithIt) {
  if (!untrusted::available_layers().namespaces) GTEST_SKIP() << "this machine gives no namespaces";
  const Descriptor socket = broker_->connect({cache_, {}});
  std::thread asks([&] { EXPECT_FALSE(untrusted::ask_compiler(socket.number(), kBomb).ok()); });
  EXPECT_TRUE(comes_to(1, true));
  kill(broker_->process(), SIGKILL);
  asks.join();
  EXPECT_TRUE(comes_to(0));
}

TEST(OutputTap, LetsSoMuchThroughAndNothingThatSteersATerminal) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
  Descriptor reader(ends[0]);
  {
    Descriptor writer(ends[1]);
    OutputTap tap(writer.number());
    const std::string steering = "\x1b[2J", flood(1'000'000, 'x');
    ASSERT_EQ(write(tap.write_end(), steering.data(), steering.size()), 4);
    for (size_t done = 0; done < flood.size();)
      done += static_cast<size_t>(write(tap.write_end(), flood.data() + done, flood.size() - done));
  }
  std::string text(200'000, '\0');
  size_t size = 0;
  for (ssize_t count = 1; count > 0 && size < text.size(); size += static_cast<size_t>(std::max<ssize_t>(count, 0)))
    count = read(reader.number(), text.data() + size, text.size() - size);
  text.resize(size);
  EXPECT_TRUE(text.starts_with("\\x1b[2Jxx"));
  EXPECT_LT(text.size(), OutputTap::kKept + 200);
  EXPECT_NE(text.find("more bytes"), std::string::npos);
}

}  // namespace
}  // namespace tilepilot::eval

#endif  // TILEPILOT_SANITIZED
