// What commands leave behind: programs, certificates, runs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/runtime/owned_folder.h"
#include "compiler/source/file.h"
#include "tests/cli/command_line.h"
#include "tests/cli/process_tree.h"

namespace tilepilot {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string content(const fs::path& file) {
  std::string text;
  EXPECT_TRUE(read_file(file, text)) << file;
  return text;
}

class LeftBehind : public CommandLine {
 protected:
  json in_json(std::vector<std::string> arguments, int exit_code = 0) {
    arguments.push_back("--json");
    auto result = tilepilot(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << all(result);
    return json::parse(result.out, nullptr, false);
  }
};

// A run, its program behind a link, its certificate, and the program once more out of the database.
TEST_F(LeftBehind, ARunFromEndToEnd) {
  fs::copy(model("scale_softmax"), folder_ / "mine.py");
  fs::create_symlink("fast.py", folder_ / "link.py");
  auto made = tilepilot({"generate", "mine.py", "-o", "link.py", "--attempts", "1", "--trials", "2"});
  ASSERT_EQ(made.exit_code, 0) << all(made);
  EXPECT_THAT(made.out, AllOf(HasSubstr("largest error"), HasSubstr("PyTorch's own"), HasSubstr("% of the time"),
                              HasSubstr("certificate    link.cert.json")));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.py"));
  EXPECT_THAT(content(folder_ / "fast.py"), HasSubstr("class ModelNew"));

  json runs = in_json({"runs", "list"})["runs"];
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["model"], "mine.py");
  const std::string id = std::to_string(runs[0]["run"].get<int>());
  EXPECT_EQ(in_json({"runs", "show", id})["attempts"][0]["verdict"]["outcome"], "verified");
  EXPECT_THAT(tilepilot({"runs", "save", id, "-o", "saved.py"}).out, HasSubstr("saved.py: attempt 1 of run " + id));
  EXPECT_EQ(content(folder_ / "saved.py"), content(folder_ / "fast.py"));
  EXPECT_EQ(tilepilot({"runs", "show", "99"}).exit_code, 2);
  EXPECT_EQ(tilepilot({"runs", "save", id, "-o", "/no/such/file"}).exit_code, 2);

  json holds = in_json({"verify", "link.cert.json", "--no-timing"});
  EXPECT_TRUE(holds["ok"]) << holds;
  EXPECT_EQ(holds["repeated"]["outcome"], "verified");
  EXPECT_NE(holds["repeated"]["seed"], holds["fresh"]["seed"]);

  // The program is another now.
  std::ofstream(folder_ / "fast.py", std::ios::app) << "# faster\n";
  json changed = in_json({"verify", "link.cert.json", "--no-timing"}, 1);
  EXPECT_FALSE(changed["ok"]);
  EXPECT_EQ(changed["differences"][0]["what"], "program");

  json certificate = json::parse(content(folder_ / "link.cert.json"));
  certificate["verdict"]["speedup"] = 1000;
  std::ofstream(folder_ / "link.cert.json") << certificate;
  auto edited = tilepilot({"verify", "link.cert.json"});
  EXPECT_EQ(edited.exit_code, 2);
  EXPECT_THAT(edited.err, HasSubstr("was edited"));
}

// What another run works in is no reason to stay.
TEST_F(LeftBehind, NoGuardWaitsForAnotherRun) {
  std::string busy = runtime::owned_folder_pattern(fs::temp_directory_path(), "run");  // of this process, which lives
  ASSERT_NE(::mkdtemp(busy.data()), nullptr);
  const std::string mark = "TILEPILOT_TEST_MARK=" + folder_.string();
  const auto result = tilepilot({"language", "T.copy"}, {mark});
  EXPECT_EQ(result.exit_code, 0) << all(result);
  EXPECT_TRUE(comes_true(5, [&] { return processes_with(mark).empty(); }))
      << "these go on: " << names_of(processes_with(mark));
  EXPECT_TRUE(fs::exists(busy));
  fs::remove_all(busy);
}

TEST_F(LeftBehind, CheckSaysWhereItIsAndWritesACertificate) {
  auto result = check("good_matmul", {"--trials", "2"});
  ASSERT_EQ(result.exit_code, 0) << all(result);
  EXPECT_THAT(result.err, AllOf(HasSubstr("exporting"), HasSubstr("judging")));
  EXPECT_EQ(json::parse(content(folder_ / "good_matmul.cert.json"))["verdict"]["outcome"], "verified");
  auto failed = check("fail_wrong_values", {"--trials", "2"});
  EXPECT_FALSE(fs::exists(folder_ / "fail_wrong_values.cert.json"));
}

TEST_F(LeftBehind, CheckTellsLinesOfSpans) {
  auto result = check("fail_unknown_name", {"--json", "--no-cert"});
  const json diagnostic = json::parse(result.out)["diagnostics"][0];
  EXPECT_GT(diagnostic["line"].get<int>(), 1) << diagnostic;
  EXPECT_GT(diagnostic["column"].get<int>(), 0);
}

TEST_F(LeftBehind, FailFilesThatAreNone) {
  ASSERT_EQ(mkfifo((folder_ / "pipe.py").c_str(), 0600), 0);
  auto pipe = tilepilot({"generate", "pipe.py", "-o", "out.py"});
  EXPECT_EQ(pipe.exit_code, 2);
  EXPECT_THAT(pipe.err, HasSubstr("cannot read `pipe.py`: it is a pipe"));
  auto device = tilepilot({"check", "/dev/zero", "-r", model("matmul")});
  EXPECT_EQ(device.exit_code, 2);
  EXPECT_THAT(device.err, HasSubstr("cannot read `/dev/zero`: it is a device"));
  EXPECT_THAT(tilepilot({"compile", "none.py"}).err, HasSubstr("cannot read `none.py`: there is no such file"));
}

// Told before anything is exported or judged.
TEST_F(LeftBehind, FailPlacesThatCannotBeWritten) {
  std::ofstream(folder_ / "notes.json") << "mine";
  for (const char* place : {"none/good.cert.json", "notes.json"}) {
    auto result = check("good_matmul", {"--cert", place});
    EXPECT_EQ(result.exit_code, 2) << all(result);
    EXPECT_THAT(result.err, AllOf(HasSubstr(fmt::format("cannot write `{}`", place)), Not(HasSubstr("exporting"))));
  }
  EXPECT_EQ(content(folder_ / "notes.json"), "mine");
  fs::create_symlink("other.py", folder_ / "one.py");
  fs::create_symlink("one.py", folder_ / "other.py");
  auto loop = tilepilot({"generate", model("matmul"), "-o", "one.py"});
  EXPECT_EQ(loop.exit_code, 2) << all(loop);
  EXPECT_THAT(loop.err, AllOf(HasSubstr("cannot write `one.py`"), Not(HasSubstr("exporting"))));
  EXPECT_TRUE(fs::is_symlink(folder_ / "one.py"));
}

TEST_F(LeftBehind, FailTwoThingsOnStandardOutput) {
  auto both = tilepilot({"generate", model("matmul"), "-o", "-", "--json"});
  EXPECT_EQ(both.exit_code, 2) << all(both);
  EXPECT_THAT(both.out, HasSubstr("cannot both go to standard output"));
  // Where both are lost, that is no reason to refuse.
  const std::string command = fmt::format("cd '{}' && '{}/tilepilot' generate '{}' -o - --json >/dev/null 2>&1",
                                          folder_.string(), TILEPILOT_BINARY_DIR, model("fail_only_sorts"));
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST_F(LeftBehind, FailPythonThatRunsNothing) {
  auto result = tilepilot({"generate", model("matmul"), "-o", "out.py", "--python", "/bin/false"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, AllOf(HasSubstr("`/bin/false` ended with code 1"), Not(HasSubstr("matmul.py:1:1"))));
}

TEST_F(LeftBehind, FailStoreWithoutAHome) {
  auto result = tilepilot({"runs", "list"}, {"TILEPILOT_STORE=", "XDG_DATA_HOME=", "HOME="});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("`HOME` is not set"), HasSubstr("--store")));
}

TEST_F(LeftBehind, FailKeyOfTwoLines) {
  auto result = tilepilot({"generate", model("matmul"), "--author", "llm", "--llm-url", "http://localhost:1/v1",
                           "--llm-model", "m", "-o", "out.py"},
                          {"TILEPILOT_API_KEY=first\nsecond"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("holds a line break"), Not(HasSubstr("second"))));
}

TEST_F(LeftBehind, HelpTellsVersionCommandsAndSharedOptions) {
  auto version = tilepilot({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::StartsWith("tilepilot 0."));
  auto unknown = tilepilot({"--quiet", "generat", "x.py"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no command `generat`; did you mean `generate`?"));
  for (const std::vector<std::string>& help :
       {std::vector<std::string>{"check", "--help"}, {"corpus", "search", "--help"}, {"runs", "--help"}})
    EXPECT_THAT(tilepilot(help).out,
                AllOf(HasSubstr("Options of every command"), HasSubstr("--target"), HasSubstr("--store")))
        << help[0];
}

}  // namespace
}  // namespace tilepilot
