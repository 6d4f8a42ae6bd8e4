// The judge's hold on a candidate's process, with shell scripts in its place.
#include "eval/worker/candidate_link.h"

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace tilepilot::eval
