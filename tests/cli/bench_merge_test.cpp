// Shares of a batch in databases of their own, and these joined.
#include <gmock/gmock.h>

#include "tests/cli/bench_fixture.h"

namespace tilepilot {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using BenchMerge = BenchTest;

TEST_F(BenchMerge, JoinsSharesAndGoesOnFromThere) {
  auto share = [&](const char* which, const char* file) {
    auto arguments = run_arguments();
    arguments.insert(arguments.end(), {"--shard", which, "--store", file});
    return tilepilot(arguments);
  };
  EXPECT_THAT(share("1/2", "one.db").out, HasSubstr("batch 1, share 1/2: 2 of 2 problems done, 1 verified"));
  auto joined = tilepilot({"bench", "merge", "one.db"});
  EXPECT_EQ(joined.exit_code, 0) << all(joined);
  EXPECT_THAT(joined.out, HasSubstr("one.db: batch 1 -> batch 1 (new), 2 results taken"));
  EXPECT_THAT(tilepilot({"bench", "report"}).out, HasSubstr("2 of 4 problems done"));

  // The store has the batch, and goes on with what is missing.
  EXPECT_THAT(tilepilot(run_arguments()).out, HasSubstr("batch 1: 4 of 4 problems done, 2 verified"));
  const json report = this->report();
  EXPECT_THAT(results_of(report), ElementsAre(HasSubstr("1_double verified"), HasSubstr("2_scale_softmax verified"),
                                              HasSubstr("3_broken not_loaded"), HasSubstr("4_only_sorts abstained")));
  // What was nearest is the seeds; the last problem has its program's run in its record.
  EXPECT_EQ(report["leakage"]["known"], 2);
  EXPECT_EQ(report["problems"][1]["nearest_origin"], "seed");
  EXPECT_EQ(number("SELECT count(*) FROM run WHERE neighbour IS NULL"), 0);

  const json again = answer({"bench", "merge", "one.db"});
  EXPECT_EQ(again["runs"], 0);
  EXPECT_EQ(again["corpus_entries"], 0);
  EXPECT_EQ(again["differences"], json::array());
  EXPECT_EQ(report, this->report());
  auto itself = tilepilot({"bench", "merge", "one.db", store().string()});
  EXPECT_EQ(itself.exit_code, 2);
  EXPECT_THAT(itself.err, HasSubstr("is the database that the others are merged into"));

  // A second batch finds the first one's programs, and says so.
  auto repeated = run_arguments();
  repeated.emplace_back("--new");
  EXPECT_EQ(tilepilot(repeated).exit_code, 0);
  const json known = this->report();
  EXPECT_EQ(known["leakage"]["same_graph"], 2);
  EXPECT_EQ(known["leakage"]["at_zero"], 2);
  EXPECT_EQ(known["problems"][1]["nearest"], "2_scale_softmax");
  EXPECT_EQ(known["problems"][1]["nearest_distance"], 0.0);
}

// The file system is one that says it is NFS.
TEST_F(BenchMerge, WarnsWhereMachinesMayShareTheDatabase) {
  std::ofstream(folder_ / "nfs.c") << "#include <sys/vfs.h>\n"
                                      "int statfs(const char* path, struct statfs* about) {\n"
                                      "  (void)path; about->f_type = 0x6969; return 0; }\n";
  auto compiled = runtime::run_process(
      {"cc", "-shared", "-fPIC", "-o", (folder_ / "nfs.so").string(), (folder_ / "nfs.c").string()});
  ASSERT_TRUE(compiled.ok() && compiled->exit_code == 0) << compiled->err;
  const std::string preload = "LD_PRELOAD=" + (folder_ / "nfs.so").string();
  const auto warning = AllOf(HasSubstr("warning: "), HasSubstr("(NFS), where SQLite's locks are not safe"));
  auto arguments = run_arguments();
  arguments.insert(arguments.end(), {"--ids", "4"});
  auto batch = tilepilot(arguments, {preload});
  EXPECT_EQ(batch.exit_code, 0) << all(batch);
  EXPECT_THAT(batch.err, warning);
  EXPECT_EQ(batch.err.find("warning: "), batch.err.rfind("warning: ")) << "it is told once";
  EXPECT_THAT(tilepilot({"generate", set() + "/4_only_sorts.py"}, {preload}).err, warning);
  EXPECT_THAT(tilepilot(arguments).err, ::testing::Not(HasSubstr("warning: ")));
}

}  // namespace
}  // namespace tilepilot
