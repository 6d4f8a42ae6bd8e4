// Problems as processes, of a program that stands for `tilepilot`.
#include "kernelbench/generate_process.h"

#include <gmock/gmock.h>

#include <mutex>
#include <thread>

#include "tests/kernelbench/temporary_folder.h"

namespace tilepilot::kernelbench {
namespace {

using ::testing::ElementsAre;

class GenerateProcessTest : public FolderTest {
 protected:
  // Of as many problems at once, in which no process ends before all of them have begun: how many ran on each GPU.
  std::map<std::string, int> users_of(const std::vector<std::string>& gpus, int problems) {
    write("program",
          "#!/bin/sh\n"
          "here=${0%/*}\n"
          "mktemp $here/began.XXXXXX >/dev/null\n"
          "until [ $(ls $here | grep -c began) -ge " +
              std::to_string(problems) +
              " ]; do sleep 0.02; done\n"
              "printf '{\"ok\": true, \"gpu\": \"%s\", \"verdict\": {}}' \"$CUDA_VISIBLE_DEVICES\"\n");
    std::filesystem::permissions(folder_ / "program", std::filesystem::perms::owner_all);
    auto runner = generate_processes({folder_ / "program", {}, {}, folder_, false, {}, gpus});
    std::mutex mutex;
    std::map<std::string, int> users;
    std::vector<std::thread> threads;
    for (int i = 0; i < problems; ++i)
      threads.emplace_back([&, i] {
        const Problem problem{.level = 1, .id = i + 1, .name = "p", .source = "pass"};
        const auto outcome = runner->run(1, problem, {}, [](const std::string&) {});
        std::lock_guard lock(mutex);
        ++users[outcome ? outcome->record.value("gpu", outcome->reason) : "stopped"];
      });
    for (std::thread& thread : threads) thread.join();
    return users;
  }
};

TEST_F(GenerateProcessTest, EachIsOnTheGpuWithTheFewest) {
  EXPECT_THAT(users_of({"GPU-one", "GPU-two"}, 4),
              ElementsAre(std::pair<std::string, int>("GPU-one", 2), std::pair<std::string, int>("GPU-two", 2)));
}

TEST_F(GenerateProcessTest, WithoutAChoiceItSeesWhatThisProcessSees) {
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "3", 1), 0);
  EXPECT_THAT(users_of({}, 1), ElementsAre(std::pair<std::string, int>("3", 1)));
  EXPECT_THAT(users_of({"GPU-one"}, 1), ElementsAre(std::pair<std::string, int>("GPU-one", 1)));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace tilepilot::kernelbench
