// The fork server, with processes of this test's own in place of LibTorch's.
#include "eval/process/fork_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "compiler/untrusted/isolation.h"
#include "compiler/untrusted/memory_file.h"

// The sanitizers' own run time has threads and descriptors of its own.
#ifndef TILEPILOT_SANITIZED

namespace tilepilot::eval {
namespace {

using untrusted::MemoryFile;

// A server forked from this process. What it forks ends with the code that `act` returns.
template <class Act>
std::unique_ptr<ForkServer> server_of(const Act& act) {
  auto [ours, theirs] = socket_pair();
  const pid_t child = fork();
  if (child == 0) {
    dup2(theirs.number(), kWorkerSocket);
    untrusted::close_descriptors_from(kWorkerSocket + 1);
    _exit(act(serve_forks()));
  }
  return std::make_unique<ForkServer>(WorkerProcess::adopt(child, Wire(std::move(ours))));
}

struct OutputPipe {
  OutputPipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
  }
  Descriptor read_end, write_end;

  // All until everybody has closed it.
  std::string content() {
    { Descriptor closed = std::move(write_end); }
    std::string text;
    char buffer[256];
    for (ssize_t count; (count = read(read_end.number(), buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<size_t>(count));
    return text;
  }
};

void say(std::string_view text) {
  EXPECT_EQ(write(STDOUT_FILENO, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::set<int> open_descriptors() {
  std::set<int> found;
  for (int number = 0; number < 256; ++number)
    if (fcntl(number, F_GETFD) >= 0) found.insert(number);
  return found;
}

bool is_gone(pid_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string number, name, state;
  stat >> number >> name >> state;
  return !stat || state == "Z" || state == "X";
}

bool becomes_gone(pid_t process) {
  for (int look = 0; look < 1000; ++look, std::this_thread::sleep_for(std::chrono::milliseconds(5)))
    if (is_gone(process)) return true;
  return false;
}

int code_of(std::unique_ptr<WorkerProcess>& process) { return process ? process->stop(20).exit_code : -2; }

TEST(ForkServer, ForksChildrenOfThisProcess) {
  auto server = server_of([](bool in_namespaces) {
    int failed = 0;
    if (in_namespaces != (getpid() == 1)) failed |= 1;
    if (open_descriptors() != std::set<int>{0, 1, 2, kWorkerSocket, kFirstInherited}) failed |= 2;
    int signal = 0;
    if (prctl(PR_GET_PDEATHSIG, &signal) != 0 || signal != SIGKILL) failed |= 4;
    if (getpgrp() != getpid()) failed |= 8;
    const auto content = MemoryFile::taken(kFirstInherited);
    if (!content || content->content() != "page") failed |= 16;
    say("hello");
    return failed;
  });
  const auto page = MemoryFile::of("page");
  OutputPipe pipe;
  auto child = server->fork({page->descriptor()}, pipe.write_end.number());
  ASSERT_TRUE(child);
  EXPECT_EQ(code_of(child), 0);
  EXPECT_EQ(pipe.content(), "hello");
}

// Functions of the C library that name the calling thread to the kernel.
TEST(ForkServer, ForkedProcessesKnowTheirThread) {
  auto server = server_of([](bool) {
    int failed = 0;
    cpu_set_t processors;
    if (pthread_getaffinity_np(pthread_self(), sizeof(processors), &processors) != 0) failed |= 1;
    sched_param parameters{};
    int policy = 0;
    if (pthread_getschedparam(pthread_self(), &policy, &parameters) != 0) failed |= 2;
    clockid_t clock{};
    timespec time{};
    if (pthread_getcpuclockid(pthread_self(), &clock) != 0 || clock_gettime(clock, &time) != 0) failed |= 4;
    int ran = 0;
    std::thread([&] { ran = 1; }).join();
    if (ran != 1) failed |= 8;
    signal(SIGUSR1, [](int) { _exit(0); });
    raise(SIGUSR1);
    return failed | 16;
  });
  auto child = server->fork({}, STDERR_FILENO);
  EXPECT_EQ(code_of(child), 0);
}

TEST(ForkServer, TellsHowTheyEnd) {
  auto server = server_of([](bool) {
    volatile int* volatile nothing = nullptr;
    return *nothing;
  });
  auto child = server->fork({}, STDERR_FILENO);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->stop(20).signal, SIGSEGV);
}

TEST(ForkServer, CountsTheTimeOfEachAlone) {
  auto server = server_of([](bool) {
    pause();
    return 0;
  });
  auto child = server->fork({}, STDERR_FILENO);
  ASSERT_TRUE(child);
  EXPECT_LT(child->cpu_seconds(), 0.1);
}

// Neither how many there were before, nor what they did.
TEST(ForkServer, EachFindsTheSameMemory) {
  auto server = server_of([](bool) {
    static int uses = 0;
    const void* block = std::malloc(1000);
    const int place = 0;
    say(fmt::format("{} {} {} {}", ++uses, block, static_cast<const void*>(&place), getpid() == 1));
    return 0;
  });
  std::vector<std::string> seen;
  for (int i = 0; i < 3; ++i) {
    OutputPipe pipe;
    auto child = server->fork({}, pipe.write_end.number());
    EXPECT_EQ(code_of(child), 0);
    seen.push_back(pipe.content());
  }
  EXPECT_THAT(seen[0], ::testing::StartsWith("1 "));
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST(ForkServer, fail_ServerThatWasKilled) {
  auto server = server_of([](bool) { return 0; });
  auto before = server->fork({}, STDERR_FILENO);
  EXPECT_EQ(code_of(before), 0);
  kill(server->process(), SIGKILL);
  EXPECT_FALSE(server->fork({}, STDERR_FILENO));
  EXPECT_EQ(server->process(), -1);
  EXPECT_FALSE(server->fork({}, STDERR_FILENO));
}

TEST(ForkServer, fail_SeveralThreads) {
  auto [ours, theirs] = socket_pair();
  const pid_t child = fork();
  if (child == 0) {
    dup2(theirs.number(), kWorkerSocket);
    untrusted::close_descriptors_from(kWorkerSocket + 1);
    std::thread([] { pause(); }).detach();
    serve_forks();
    _exit(0);
  }
  { Descriptor closed = std::move(theirs); }
  ForkServer server(WorkerProcess::adopt(child, Wire(std::move(ours))));
  EXPECT_FALSE(server.fork({}, STDERR_FILENO));
}

TEST(ForkServer, TheirProcessesEndWithTheJudge) {
  OutputPipe told;
  const pid_t judge = fork();
  if (judge == 0) {
    auto server = server_of([](bool) {
      pause();
      return 0;
    });
    auto child = server->fork({}, STDERR_FILENO);
    const pid_t processes[] = {server->process(), child ? child->pid() : -1};
    const bool sent = write(told.write_end.number(), processes, sizeof(processes)) == sizeof(processes);
    while (sent) pause();
    _exit(1);
  }
  pid_t processes[2] = {-1, -1};
  ASSERT_EQ(read(told.read_end.number(), processes, sizeof(processes)), static_cast<ssize_t>(sizeof(processes)));
  ASSERT_GT(processes[1], 0);
  EXPECT_FALSE(is_gone(processes[0]) || is_gone(processes[1]));
  kill(judge, SIGKILL);
  waitpid(judge, nullptr, 0);
  EXPECT_TRUE(becomes_gone(processes[0]));
  EXPECT_TRUE(becomes_gone(processes[1]));
}

// A user whom the system lets make no namespaces.
bool forbid_namespaces() {
  const unsigned user = geteuid();
  if (unshare(CLONE_NEWUSER) != 0) return false;
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1\n";
  std::ofstream most("/proc/sys/user/max_user_namespaces");
  most << "0\n" << std::flush;
  return most.good();
}

TEST(ForkServer, ForksWithoutNamespacesWhereThereAreNone) {
  constexpr int kCannotTry = 77;
  const pid_t judge = fork();
  if (judge == 0) {
    if (!forbid_namespaces()) _exit(kCannotTry);
    const pid_t self = getpid();
    auto server = server_of([&](bool in_namespaces) { return in_namespaces || getppid() != self ? 1 : 0; });
    auto child = server->fork({}, STDERR_FILENO);
    _exit(code_of(child) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(judge, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kCannotTry) GTEST_SKIP() << "namespaces cannot be forbidden here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tilepilot::eval

#endif
