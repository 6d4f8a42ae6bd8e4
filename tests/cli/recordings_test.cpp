// Conversations with a language model that were recorded, played again without network: the same programs with the same
// verdicts come of them, whatever the times are on this machine.
#include <nlohmann/json.hpp>

#include "compiler/source/file.h"
#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using nlohmann::json;

class Recordings : public CommandLine {
 protected:
  static json read(const std::filesystem::path& file) {
    std::string text;
    EXPECT_TRUE(read_file(file, text)) << file;
    return json::parse(text, nullptr, /*allow_exceptions*/ false);
  }
  // What the language model wrote, and what became of it: variants depend on times.
  static std::vector<json> own_attempts(const json& recording) {
    std::vector<json> own;
    for (const json& attempt : recording.at("attempts"))
      if (!attempt.value("variant", false))
        own.push_back({attempt.at("summary"), attempt.at("source"), attempt.at("outcome")});
    return own;
  }
};

TEST_F(Recordings, GiveTheSameProgramsAgain) {
  int count = 0;
  for (const auto& item : std::filesystem::directory_iterator(tests() / "recordings")) {
    SCOPED_TRACE(item.path().filename().string());
    ++count;
    const json recording = read(item.path());
    ASSERT_TRUE(write_file(folder_ / "model.py", recording.at("model_source").get<std::string>()));
    const auto replayed = tilepilot({"generate", "model.py", "-o", "out.py", "--author", "llm", "--replay",
                                     item.path().string(), "--variants", "0", "--trials", "2", "--json"});
    EXPECT_EQ(replayed.exit_code, 0) << all(replayed);
    const json report = json::parse(replayed.out, nullptr, /*allow_exceptions*/ false);
    ASSERT_TRUE(report.is_object());
    EXPECT_EQ(report.value("dollars", -1.0), 0);
    EXPECT_EQ(report.value("ending", ""), "nothing left to try");
    const std::string run = std::to_string(report.value("run", 0));
    ASSERT_EQ(tilepilot({"trace", run, "--save", "again.json"}).exit_code, 0);
    EXPECT_EQ(own_attempts(read(folder_ / "again.json")), own_attempts(recording));
  }
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace tilepilot
