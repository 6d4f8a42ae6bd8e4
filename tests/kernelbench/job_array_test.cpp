#include "kernelbench/job_array.h"

#include <gmock/gmock.h>

#include "tests/kernelbench/temporary_folder.h"

namespace tilepilot::kernelbench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Shares, HaveEachProblemOnce) {
  for (int count = 1; count <= 7; ++count)
    for (size_t place = 0; place < 20; ++place) {
      int owners = 0;
      for (int index = 1; index <= count; ++index) owners += Share{index, count}.has(place) ? 1 : 0;
      EXPECT_EQ(owners, 1);
    }
}

TEST(Shares, AreReadFromText) {
  const auto share = parse_share("2/8");
  ASSERT_TRUE(share.ok());
  EXPECT_EQ(share->index, 2);
  EXPECT_EQ(share->count, 8);
  EXPECT_TRUE(parse_share("8/8").ok());
  for (const char* text :
       {"", "2", "/", "2/", "/8", "0/8", "9/8", "-1/8", "2/8/1", "a/8", "2 /8", "1/0", "1/99999999999"})
    EXPECT_FALSE(parse_share(text).ok()) << text;
}

TEST(TimeLimits, AreReadAsSlurmReadsThem) {
  const std::pair<const char*, double> cases[] = {{"", 0},
                                                  {"--partition=gpu", 0},
                                                  {"--time=90", 90},
                                                  {"--time=90:30", 90.5},
                                                  {"--time=1:30:00", 90},
                                                  {"--time 2:00:00", 120},
                                                  {"-t 30", 30},
                                                  {"-t30 --gres=gpu:1", 30},
                                                  {"--time=1-0", 1440},
                                                  {"--time=1-2:30", 1590},
                                                  {"--time=0-0:1:30", 1.5},
                                                  {"--time=UNLIMITED", 0},
                                                  {"--time=10 -t 20", 20},
                                                  {"--comment='a -t 5 b' --time=7", 7}};
  for (const auto& [text, minutes] : cases) {
    const auto limit = time_limit_in(text);
    ASSERT_TRUE(limit.ok()) << text;
    EXPECT_DOUBLE_EQ(*limit, minutes) << text;
  }
  for (const char* text :
       {"--time=", "--time", "-t x", "--time=1:2:3:4", "--time=-5", "--time=1-", "--time=2h", "--time=1.5"})
    EXPECT_FALSE(time_limit_in(text).ok()) << text;
}

TEST(TimeLimits, LeaveAMargin) {
  EXPECT_DOUBLE_EQ(minutes_within(1), 0.5);
  EXPECT_DOUBLE_EQ(minutes_within(30), 28);
  EXPECT_DOUBLE_EQ(minutes_within(600), 570);
}

TEST(SbatchOptions, LeaveWhatIsOurs) {
  EXPECT_TRUE(check_sbatch_options("").ok());
  EXPECT_TRUE(check_sbatch_options("-p gpu --gres=gpu:1 --comment=\"two words\"").ok());
  for (const char* text :
       {"gpu", "--array=1-3", "-a 1-3", "-a1", "--wrap=true", "--comment='open", "--time=soon", "-p a\nrm -r x"})
    EXPECT_FALSE(check_sbatch_options(text).ok()) << text;
}

TEST(Ranges, AreShort) {
  EXPECT_EQ(as_ranges({}), "");
  EXPECT_EQ(as_ranges({4}), "4");
  EXPECT_EQ(as_ranges({1, 2, 3, 5, 7, 8}), "1-3,5,7-8");
}

TEST(Words, AreSplitAndQuotedAsAShellDoes) {
  EXPECT_THAT(*split_words(" a  'b c' d\"e f\"g ''"), ElementsAre("a", "b c", "de fg", ""));
  EXPECT_EQ(quoted_for_shell("a-b/c.py"), "a-b/c.py");
  EXPECT_EQ(quoted_for_shell("it's $HOME"), "'it'\\''s $HOME'");
  EXPECT_EQ(quoted_for_shell(""), "''");
}

TEST(JobScript, RunsAShareAndGoesBackIntoTheQueue) {
  JobArray array{"/data/my batch",
                 "/opt/tilepilot",
                 {"--problems", "/k b", "--ids", "1-20"},
                 8,
                 "--partition=gpu --time=60",
                 57,
                 3};
  const std::string script = job_script(array);
  EXPECT_THAT(script,
              AllOf(HasSubstr("#!/bin/bash\n"), HasSubstr("#SBATCH --output=\"/data/my batch/logs/%A_%a.txt\"\n"),
                    HasSubstr("#SBATCH --partition=gpu --time=60\n"), HasSubstr("#SBATCH --requeue\n"),
                    HasSubstr("/opt/tilepilot bench run --problems '/k b' --ids 1-20 --minutes 57 --shard "
                              "\"$task/8\" --store '/data/my batch'/task-\"$task\".db --json > \"$answer\"\n"),
                    HasSubstr("-lt 3 ]"), HasSubstr("scontrol requeue")));
  array.minutes = 0;
  array.requeues = 0;
  EXPECT_THAT(job_script(array), AllOf(Not(HasSubstr("--minutes")), Not(HasSubstr("scontrol"))));
}

class TaskProgresses : public FolderTest {};

TEST_F(TaskProgresses, ComeFromTheDatabases) {
  std::vector<Problem> problems;
  for (int id = 1; id <= 5; ++id) problems.push_back({0, id, "p", "", "text"});
  auto before = progress_of_task(folder_, {2, 2}, "digest", 5);
  ASSERT_TRUE(before.ok());
  EXPECT_FALSE(before->begun);
  EXPECT_EQ(before->total, 2);
  {
    auto store = *BatchStore::open(store_of_task(folder_, 2));
    const int64_t batch = *store->begin({"root", "digest", "{}", "{}"}, problems);
    Outcome outcome;
    outcome.ending = Ending::verified;
    ASSERT_TRUE(store->set_done(batch, problems[1], outcome));  // the second share's
    ASSERT_TRUE(store->set_done(batch, problems[0], outcome));  // another share's
    outcome.ending = Ending::not_judged;
    ASSERT_TRUE(store->set_done(batch, problems[3], outcome));  // is tried again
  }
  auto now = progress_of_task(folder_, {2, 2}, "digest", 5);
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->total, 2);
  EXPECT_EQ(now->done, 1);
  EXPECT_EQ(now->verified, 1);
  EXPECT_FALSE(now->complete());
  EXPECT_FALSE(progress_of_task(folder_, {2, 2}, "another", 5).ok());
}

}  // namespace
}  // namespace tilepilot::kernelbench
