// Two calls on one batch, also where the other one is on a machine that we make up.
#include "kernelbench/batch_hold.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "kernelbench/batch_store.h"
#include "tests/kernelbench/temporary_folder.h"

namespace tilepilot::kernelbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Holds : public FolderTest {
 protected:
  Holds() : file_(folder_ / "store.db") {
    batch_ = *(*BatchStore::open(file_))->begin({"root", "digest", "{}", "{}"}, {{1, 1, "p", "", "text"}});
  }
  Result<std::unique_ptr<BatchHold>> take() {
    return BatchHold::take(file_, batch_, [this](const std::string& line) { waits_.push_back(line); }, {0.02, 0.3});
  }
  void execute(const std::string& sql) const {
    SQLite::Database(file_.string(), SQLite::OPEN_READWRITE, 10'000).exec(sql);
  }
  std::string value(const std::string& column) const {
    SQLite::Database database(file_.string(), SQLite::OPEN_READONLY, 10'000);
    return database.execAndGet("SELECT coalesce(" + column + ", '') FROM batch").getString();
  }
  // A row as another machine writes it.
  void held_elsewhere() const {
    execute(R"(UPDATE batch SET holder = '{"host":"far","boot":"another","process":7}', heartbeat = 3)");
  }

  std::filesystem::path file_;
  int64_t batch_ = 0;
  std::vector<std::string> waits_;
};

TEST_F(Holds, AreGivenBack) {
  {
    auto hold = take();
    ASSERT_TRUE(hold.ok());
    EXPECT_THAT(value("holder"), HasSubstr("\"process\":" + std::to_string(getpid())));
    EXPECT_FALSE(take().ok());
    const std::string before = value("heartbeat");
    for (int i = 0; i < 500 && value("heartbeat") == before; ++i) usleep(10'000);
    EXPECT_NE(value("heartbeat"), before);
    EXPECT_FALSE((*hold)->lost());
  }
  EXPECT_EQ(value("holder"), "");
  EXPECT_TRUE(take().ok());
}

TEST_F(Holds, OfADeadProcessHereAreFreeAtOnce) {
  const pid_t child = fork();
  if (child == 0) {
    auto hold = take();
    _exit(hold.ok() ? 0 : 1);  // without giving it back
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_NE(value("holder"), "");
  EXPECT_TRUE(take().ok());
  EXPECT_THAT(waits_, IsEmpty());
}

TEST_F(Holds, OfAMachineThatStandsStillAreTaken) {
  held_elsewhere();
  EXPECT_TRUE(take().ok());
  EXPECT_THAT(waits_, ElementsAre(HasSubstr("was begun by process 7 on `far`; looking")));
}

TEST_F(Holds, OfAMachineThatRunsAreNot) {
  held_elsewhere();
  std::atomic<bool> ends = false;
  std::thread far([&] {
    while (!ends) {
      execute("UPDATE batch SET heartbeat = heartbeat + 1");
      usleep(20'000);
    }
  });
  auto hold = take();
  ends = true;
  far.join();
  ASSERT_FALSE(hold.ok());
  EXPECT_THAT(hold.error().message, HasSubstr("batch 1 is being run by process 7 on `far`"));
  EXPECT_THAT(value("holder"), HasSubstr("far"));
}

TEST_F(Holds, AreLostToAnotherMachine) {
  auto hold = take();
  ASSERT_TRUE(hold.ok());
  held_elsewhere();
  for (int i = 0; i < 500 && !(*hold)->lost(); ++i) usleep(10'000);
  EXPECT_TRUE((*hold)->lost());
  hold->reset();
  EXPECT_THAT(value("holder"), HasSubstr("far"));  // it is not ours to give back
}

TEST_F(Holds, SurviveARowThatSaysNothing) {
  execute("UPDATE batch SET holder = '[]'");
  EXPECT_TRUE(take().ok());
  EXPECT_THAT(waits_, ElementsAre(HasSubstr("another process")));
}

}  // namespace
}  // namespace tilepilot::kernelbench
