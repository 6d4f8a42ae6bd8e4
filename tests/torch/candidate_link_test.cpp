// The judge's hold on a candidate's process, with shell scripts in its place.
#include "eval/worker/candidate_link.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

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
  auto link = CandidateLink::start(path, 1, "");
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
  SharedCrumb crumb;
  const auto offset = reinterpret_cast<char*>(&crumb.compiling_since) - reinterpret_cast<char*>(&crumb);
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

}  // namespace
}  // namespace tilepilot::eval
