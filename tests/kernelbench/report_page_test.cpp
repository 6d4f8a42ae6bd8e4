// The page as a reader sees it, in headless Chromium; and that a report of all of KernelBench is there at once.
#include <gmock/gmock.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/runtime/process.h"
#include "kernelbench/batch_store.h"
#include "tests/kernelbench/synthetic_batch.h"
#include "tests/kernelbench/temporary_folder.h"

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;

class ReportPage : public FolderTest {
 protected:
  // Empty: this machine has none.
  static std::string browser() {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome", "chrome"})
      for (const char* folder : {"/usr/bin/", "/usr/local/bin/", "/snap/bin/"})
        if (std::filesystem::exists(folder + std::string(name))) return folder + std::string(name);
    return "";
  }
  // "1.93x" as a number; "-" comes before all.
  static double number(const json& cell) {
    return cell == "-" ? 0 : std::strtod(cell.get<std::string>().c_str(), nullptr);
  }
};

// TILEPILOT_SCREENSHOTS names a folder to keep what was seen in.
TEST_F(ReportPage, IsReadableAtTwoWidthsLightAndDark) {
  if (browser().empty()) GTEST_SKIP() << "there is no Chromium here";
  const Batch batch = synthetic_batch(40);
  write("page.html", report_html({batch, {}}, synthetic_pages(batch)));
  std::vector<std::string> command = {"python3", TILEPILOT_SOURCE_DIR "/tests/kernelbench/look_at_page.py", browser(),
                                      (folder_ / "page.html").string()};
  if (const char* screenshots = std::getenv("TILEPILOT_SCREENSHOTS")) command.emplace_back(screenshots);
  auto looked = runtime::run_process(command, {.time_limit_s = 100});
  ASSERT_TRUE(looked.ok());
  ASSERT_EQ(looked->exit_code, 0) << looked->err;
  const json seen = json::parse(looked->out);
  EXPECT_EQ(seen["errors"], json::array());
  EXPECT_EQ(seen["requests"], json::array());
  EXPECT_EQ(seen["loads"], 4);
  ASSERT_EQ(seen["views"].size(), 4u);
  for (const json& view : seen["views"]) {
    const std::string which = view["width"].dump() + " " + view["scheme"].get<std::string>();
    EXPECT_EQ(view["rows"], 40) << which;
    // Nothing is cut off at the side, and the page as a whole does not scroll there; tables and programs may.
    for (const char* state : {"folded", "open"}) {
      EXPECT_EQ(view[state]["page"], view["width"]) << which << " " << view[state].dump();
      EXPECT_EQ(view[state]["wide"], json::array()) << which;
    }
    // A number's column is sorted from the largest when it is clicked, and the other way when it is clicked again.
    const json &once = view["sorted"]["once"], &twice = view["sorted"]["twice"];
    ASSERT_EQ(once.size(), 40u);
    for (size_t i = 1; i < once.size(); ++i) {
      EXPECT_GE(number(once[i - 1]), number(once[i])) << which;
      EXPECT_LE(number(twice[i - 1]), number(twice[i])) << which;
    }
    EXPECT_GT(number(once.front()), 1) << which;
    EXPECT_EQ(view["unfolded"]["pages"], 40) << which;
    EXPECT_GE(view["unfolded"]["programs"], 40) << which;
    // WCAG 2, level AA, for text of usual size.
    EXPECT_GE(view["contrast"]["least"].get<double>(), 4.5) << which << " " << view["contrast"].dump();
    EXPECT_GT(view["contrast"]["texts"].get<int>(), 500) << which;
  }
}

// From the database to the page: processor time, so that a busy machine makes no difference.
TEST_F(ReportPage, OfAllOfKernelBenchIsThereAtOnce) {
  const Batch written = synthetic_batch(250);
  const std::vector<ProblemPage> pages = synthetic_pages(written);
  {
    auto store = *BatchStore::open(folder_ / "store.db");
    std::vector<Problem> problems;
    for (const BatchProblem& each : written.problems) problems.push_back(each.problem);
    const int64_t batch = *store->begin(written.header, problems);
    for (const BatchProblem& each : written.problems) {
      Outcome outcome = each.outcome;
      outcome.run = 0;
      if (each.state != State::done) continue;
      ASSERT_TRUE(store->set_done(batch, each.problem, outcome));
    }
  }
  const std::clock_t begin = std::clock();
  auto store = *BatchStore::open(folder_ / "store.db", /*read_only*/ true);
  const Batch batch = **store->load(0);
  const Report report{batch, batch};
  const size_t size = report_html(report, pages).size();
  const size_t texts = report_text(report).size() + report_csv(report).size() + report_json(report).dump().size();
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  RecordProperty("seconds", std::to_string(seconds));
  RecordProperty("bytes", std::to_string(size));
  EXPECT_LE(size, size_t{3} << 20);
  EXPECT_GT(size, size_t{1} << 20);  // it is a page with programs in it
  EXPECT_GT(texts, 10'000u);
#ifndef TILEPILOT_SANITIZED
  EXPECT_LE(seconds, 2);
#endif
}

}  // namespace
}  // namespace tilepilot::kernelbench
