// The judge's hold on a candidate's process, with shell scripts in its place, and on what a fork server forks.
#include "eval/worker/judge/candidate_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <fstream>
#include <thread>

#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

std::unique_ptr<CandidateLink> link_to(const std::string& name, const std::string& script) {
  auto path = testing::scratch(name) / "candidate";
  std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  auto link = CandidateLink::start({.executable = path, .threads = 1});
  EXPECT_TRUE(link.ok());
  return link.ok() ? *std::move(link) : nullptr;
}

const std::string kAnswer = "printf '\\002\\000\\000\\000\\000\\000\\000\\000{}' >&3; ";

// What the judge does between two requests is not the candidate's time.
TEST(CandidateLink, CountsOnlyTheWaiting) {
  auto link = link_to("link-waits", kAnswer + "sleep 2.5; " + kAnswer + "sleep 60");
  link->set_limit(2);
  ASSERT_TRUE(link->ask({{"op", "first"}})) << link->failure().detail;
  std::this_thread::sleep_for(std::chrono::milliseconds(2200));
  EXPECT_TRUE(link->ask({{"op", "second"}})) << link->failure().detail;
}

TEST(CandidateLink, fail_WaitsOfSeveralRequestsAddUp) {
  auto link = link_to("link-adds-up", "sleep 0.6; " + kAnswer + "sleep 0.6; " + kAnswer + "sleep 60");
  link->set_limit(1);
  ASSERT_TRUE(link->ask({{"op", "first"}})) << link->failure().detail;
  ASSERT_FALSE(link->ask({{"op", "second"}}));
  EXPECT_EQ(link->failure().outcome, Outcome::timed_out);
}

// The bytes of a number as a shell's printf writes them.
std::string in_octal(double number) {
  std::string text;
  for (const unsigned char byte : std::bit_cast<std::array<unsigned char, sizeof(number)>>(number))
    text += fmt::format("\\{:03o}", byte);
  return text;
}

// A script that says, where the judge looks, that a kernel is being compiled since `since`.
std::string compiling(double since) {
  CrashMarker marker;
  const auto offset = reinterpret_cast<char*>(&marker.compiling_since) - reinterpret_cast<char*>(&marker);
  return fmt::format("printf '{}' | dd of=/proc/self/fd/4 bs=1 seek={} conv=notrunc 2>/dev/null; ", in_octal(since),
                     offset);
}

TEST(CandidateLink, DoesNotCountCompiling) {
  auto link = link_to("link-compiles", compiling(monotonic_seconds()) + "sleep 1.5; " + kAnswer + "sleep 60");
  link->set_limit(0.5);
  EXPECT_TRUE(link->ask({{"op", "first"}})) << link->failure().detail;
}

TEST(CandidateLink, fail_CompilingForever) {
  auto link = link_to("link-compiles-on", compiling(monotonic_seconds()) + "sleep 60");
  link->set_limit(0.1);
  EXPECT_FALSE(link->ask({{"op", "first"}}));
  EXPECT_EQ(link->failure().outcome, Outcome::timed_out);
}

// A script that answers once with this JSON.
std::string answering(const std::string& body) {
  const auto size = static_cast<uint64_t>(body.size());
  std::string length;
  for (int i = 0; i < 8; ++i) length += fmt::format("\\{:03o}", (size >> (8 * i)) & 255);
  return fmt::format("printf '{}' >&3; printf '%s' '{}' >&3; sleep 60", length, body);
}

const Verdict& failure_of(const std::string& name, const std::string& body, std::unique_ptr<CandidateLink>& link) {
  link = link_to(name, answering(body));
  link->set_limit(20);
  EXPECT_FALSE(link->ask({{"op", "forward"}}));
  return link->failure();
}

TEST(CandidateLink, fail_OutcomesThatOnlyTheJudgeFinds) {
  std::unique_ptr<CandidateLink> link;
  for (const char* outcome : {"verified", "wrong_values", "mutated_input", "best"}) {
    auto body =
        fmt::format(R"({{"failure": {{"outcome": "{}", "detail": "", "candidate": {{"median_us": 1}}}}}})", outcome);
    auto& failure = failure_of("link-lies", body, link);
    EXPECT_EQ(failure.outcome, Outcome::rejected) << outcome;
    EXPECT_EQ(failure.guard, "protocol");
    EXPECT_FALSE(failure.candidate);
  }
}

TEST(CandidateLink, TakesFromAFailureItsKindAndItsWords) {
  std::unique_ptr<CandidateLink> link;
  auto& failure = failure_of("link-fails", R"({"failure": {"outcome": "runtime_error", "detail": "no \u001b[2Jmemory",
      "generated_share": 1, "kernels": ["k"], "degenerate": false, "speedup_interval": [9, 9], "line": 99,
      "diagnostics": [{"kind": "type_error", "span": [0, 5, 4000000000], "message": "m", "notes": 3},
                      {"kind": "type_error", "span": [7, 5, 6], "message": "n", "hint": "h"}, 4]}})",
                             link);
  EXPECT_EQ(failure.outcome, Outcome::runtime_error);
  EXPECT_EQ(failure.detail, "no \\x1b[2Jmemory");
  EXPECT_EQ(failure.generated_share, 0);
  EXPECT_TRUE(failure.kernels.empty());
  EXPECT_EQ(failure.speedup_low, 0);
  EXPECT_EQ(failure.line, 1);
  ASSERT_EQ(failure.diagnostics.size(), 2u);
  EXPECT_EQ(failure.diagnostics[0].span, (Span{0, 0, 0}));
  EXPECT_FALSE(failure.diagnostics[1].span.valid());
  EXPECT_EQ(failure.rendered.size(), 2u);
}

TEST(CandidateLink, fail_NumbersThatCannotBe) {
  std::unique_ptr<CandidateLink> link;
  for (const char* body : {R"({"seconds": -1})", R"({"seconds": 1e300})", R"({"seconds": "1"})", R"({"kernels": 3})",
                           R"({"seconds": null})", R"({"outputs": -1})", R"({"x": 1e400})", R"({"tensors": []})",
                           R"({"outputs": 1, "structure": null})", R"({"structure": [{"tensor": 0}]})", "not json"}) {
    EXPECT_EQ(failure_of("link-numbers", body, link).guard, "protocol") << body;
  }
}

// The judge's own clock, and the kernel's account.
TEST(CandidateLink, TellsWhatTheProcessTook) {
  auto link =
      link_to("link-usage", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 0.3; " + kAnswer + "sleep 60");
  link->set_limit(60);
  ASSERT_TRUE(link->ask({{"op", "first"}})) << link->failure().detail;
  const auto usage = link->usage();
  EXPECT_GT(usage.cpu_seconds, 0.001);
  EXPECT_GT(usage.last_request_seconds, 0.3);
  EXPECT_GT(usage.last_request_seconds, usage.cpu_seconds);
}

// The process says that it compiled for ever, and then that it will.
TEST(CandidateLink, fail_TimesThatCannotBe) {
  auto link = link_to("link-infinite", compiling(-1) + compiling(INFINITY) + "sleep 60");
  link->set_limit(0.1);
  EXPECT_FALSE(link->ask({{"op", "first"}}));
  EXPECT_EQ(link->failure().outcome, Outcome::timed_out);
}

const std::string kWorker = TILEPILOT_BINARY_DIR "/tilepilot-worker";

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// What a program prints while it is loaded, in a process that the server forks.
std::string printed(ForkServer& server, const std::string& source) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor output(ends[0]);
  Descriptor write_end(ends[1]);
  const CrashMarkerPage marker;
  auto process = server.fork({marker.descriptor()}, write_end.number());
  { Descriptor closed = std::move(write_end); }
  if (!process) return "no process";
  const nlohmann::json none = nlohmann::json::array();
  process->wire().send({{"op", "load"},
                        {"source", source},
                        {"name", "candidate"},
                        {"seed", 1},
                        {"training", true},
                        {"dtype", "model"},
                        {"threads", 1},
                        {"memory_limit_bytes", int64_t{4} << 30},
                        {"gpu_limit_bytes", 0},
                        {"most_bytes", int64_t{1} << 30},
                        {"cache", ""},
                        {"target", "cpu"},
                        {"allow_foreign", false},
                        {"aten", "any"},
                        {"init_inputs", none},
                        {"weights", none},
                        {"tensors", none}});
  EXPECT_TRUE(process->wire().receive(60));
  process->stop();
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(output.number(), buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  return text;
}

// What is drawn at random when a process begins is drawn in each of them, not before the fork.
TEST(ForkedCandidate, SharesNoRandomNumbersWithOthers) {
  auto server = ForkServer::start(kWorker, 1);
  ASSERT_TRUE(server.ok());
  for (const char* what : {"torch.empty(256).abs().log().sum()", "torch.rand(4)"}) {
    const std::string source = fmt::format("import torch\nprint('drawn', {})\n", what);
    const std::string first = printed(**server, source), second = printed(**server, source);
    EXPECT_THAT(first, ::testing::HasSubstr("drawn"));
    EXPECT_NE(first, second) << what;
  }
}

TEST(ForkedCandidate, HoldsNothingOfTheServersOrTheJudges) {
  setenv("TILEPILOT_API_KEY", "planted", 1);
  auto server = ForkServer::start(kWorker, 1);
  unsetenv("TILEPILOT_API_KEY");
  ASSERT_TRUE(server.ok());
  const CrashMarkerPage marker;
  auto process = (*server)->fork({marker.descriptor()}, STDERR_FILENO);
  ASSERT_TRUE(process);
  process->wire().send({{"op", "rest"}});
  ASSERT_TRUE(process->wire().receive(60));
  for (const pid_t number : {(*server)->process(), process->pid()}) {
    const std::filesystem::path folder = fmt::format("/proc/{}", number);
    EXPECT_THAT(text_of(folder / "environ"), ::testing::Not(::testing::HasSubstr("planted")));
    const std::filesystem::directory_iterator threads(folder / "task"), descriptors(folder / "fd");
    EXPECT_EQ(std::distance(begin(threads), end(threads)), 1);
    EXPECT_EQ(std::distance(begin(descriptors), end(descriptors)), 4);  // the standard ones and its socket
  }
  EXPECT_THAT(text_of(fmt::format("/proc/{}/cmdline", process->pid())), ::testing::HasSubstr("candidate"));
}

TEST(ForkedCandidate, IsStartedAnewWhereTheServerIsGone) {
  auto server = ForkServer::start(kWorker, 1);
  ASSERT_TRUE(server.ok());
  kill((*server)->process(), SIGKILL);
  auto link = CandidateLink::start({.executable = kWorker, .threads = 1, .fork_server = server->get()});
  ASSERT_TRUE(link.ok());
  (*link)->set_limit(60);
  EXPECT_TRUE((*link)->ask({{"op", "rest"}})) << (*link)->failure().detail;
}

}  // namespace
}  // namespace tilepilot::eval
