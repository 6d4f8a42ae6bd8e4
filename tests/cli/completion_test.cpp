// Completion of command lines in real shells, and the manual page: both written from the parser's own tables.
#include <iterator>
#include <sstream>

#include "compiler/source/file.h"
#include "tests/cli/command_line.h"

namespace tilepilot {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAre;

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// The first words of indented lines between a heading and the next empty line.
Words listed_below(const std::string& help, const std::string& heading) {
  Words found;
  std::istringstream lines(help.substr(std::min(help.size(), help.find(heading))));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && !line.empty())
    if (line.starts_with("  ") && line[2] != ' ') found.push_back(words_of(line).front());
  return found;
}

// "-o" and "--output" of all groups of a help.
Words options_in(const std::string& help) {
  Words found;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    const std::string first = words_of(line).front();
    std::istringstream flags(first.substr(0, first.find('{')));  // "--no-corpus{false}"
    for (std::string flag; std::getline(flags, flag, ',');) found.push_back(flag);
  }
  return found;
}

class Completion : public CommandLine {
 protected:
  Completion() {
    std::filesystem::create_directories(folder_ / "models");
    write_file(folder_ / "model.py", "");
    write_file(folder_ / "two words.py", "");
  }

  std::filesystem::path script(const std::string& shell) {
    const auto printed = tilepilot({"completion", shell});
    EXPECT_EQ(printed.exit_code, 0) << all(printed);
    EXPECT_TRUE(write_file(folder_ / shell, printed.out));
    return folder_ / shell;
  }

  runtime::ProcessResult in_shell(const std::vector<std::string>& argv) {
    auto ran = runtime::run_process(argv, {.time_limit_s = 60, .working_directory = folder_.string()});
    EXPECT_TRUE(ran.ok());
    return ran.ok() ? *ran : runtime::ProcessResult{};
  }

  static bool is_installed(const std::string& program) {
    const auto found = runtime::run_process({"/bin/sh", "-c", "command -v " + program});
    return found.ok() && found->exit_code == 0;
  }

  // What bash offers for the last of these words, each line one; `words` are as bash divides them.
  Words in_bash(const Words& words) {
    if (bash_.empty()) bash_ = script("bash").string();
    std::vector<std::string> argv = {"bash",
                                     "--norc",
                                     "-c",
                                     "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
                                     "$(complete -p tilepilot | sed 's/.*-F \\([^ ]*\\).*/\\1/') && "
                                     "printf '%s\\n' \"${COMPREPLY[@]}\"",
                                     "bash",
                                     bash_,
                                     "tilepilot"};
    argv.insert(argv.end(), words.begin(), words.end());
    const auto ran = in_shell(argv);
    EXPECT_EQ(ran.err, "");
    Words lines;
    std::istringstream stream(ran.out);
    for (std::string line; std::getline(stream, line);)
      if (!line.empty()) lines.push_back(line);
    return lines;
  }

  std::string bash_;
};

TEST_F(Completion, BashOffersCommands) {
  EXPECT_EQ(in_bash({""}), listed_below(tilepilot({"--help"}).out, "Subcommands:"));
  EXPECT_THAT(in_bash({"gen"}), ElementsAre("generate"));
  EXPECT_THAT(in_bash({"--quiet", "gen"}), ElementsAre("generate"));
  EXPECT_THAT(in_bash({"--target", "cpu", "gen"}), ElementsAre("generate"));
  EXPECT_EQ(in_bash({"corpus", ""}), listed_below(tilepilot({"corpus", "--help"}).out, "Subcommands:"));
  EXPECT_THAT(in_bash({"bench", "re"}), ElementsAre("report"));
}

TEST_F(Completion, BashOffersEveryOptionOfEveryCommand) {
  for (const std::string& command : listed_below(tilepilot({"--help"}).out, "Subcommands:")) {
    Words paths = listed_below(tilepilot({command, "--help"}).out, "Subcommands:");
    if (paths.empty() || paths.front().starts_with("-")) paths = {""};
    for (const std::string& below : paths) {
      Words words = {command};
      if (!below.empty()) words.push_back(below);
      Words help = words;
      help.push_back("--help");
      words.push_back("-");
      EXPECT_THAT(in_bash(words), IsSupersetOf(options_in(tilepilot(help).out))) << command << ' ' << below;
    }
  }
}

TEST_F(Completion, BashOffersValues) {
  EXPECT_THAT(in_bash({"--target", ""}),
              ElementsAre("auto", "cpu", "cuda:sm_80", "cuda:sm_90a", "emulate:sm_80", "emulate:sm_90a"));
  EXPECT_THAT(in_bash({"check", "--dtype", "f"}), ElementsAre("fp32", "fp16"));
  EXPECT_THAT(in_bash({"generate", "--author", ""}), ElementsAre("builtin", "llm", "mixed"));
  EXPECT_THAT(in_bash({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(in_bash({"compile", "x.py", "--emit", "s"}), ElementsAre("source"));
  EXPECT_THAT(in_bash({"check", "--seed", ""}), IsEmpty());
  // Bash divides at `=` and `:`, and replaces what stands behind them.
  EXPECT_THAT(in_bash({"--target", "=", "emu"}), ElementsAre("emulate:sm_80", "emulate:sm_90a"));
  EXPECT_THAT(in_bash({"--target", "="}), Contains("cpu"));
  EXPECT_THAT(in_bash({"--target", "cuda", ":", "sm"}), ElementsAre("sm_80", "sm_90a"));
  EXPECT_THAT(in_bash({"--target", "=", "cuda", ":", "sm_9"}), ElementsAre("sm_90a"));
}

TEST_F(Completion, BashOffersFiles) {
  EXPECT_THAT(in_bash({"generate", "m"}), UnorderedElementsAre("model.py", "models"));
  EXPECT_THAT(in_bash({"generate", "model.py", "-o", "tw"}), ElementsAre("two words.py"));
  EXPECT_THAT(in_bash({"check", "--reference", "=", "model."}), ElementsAre("model.py"));
  EXPECT_THAT(in_bash({"bench", "run", "--output", "m"}), ElementsAre("models"));  // a folder
  EXPECT_THAT(in_bash({"bench", "merge", "model.py", "tw"}), ElementsAre("two words.py"));
  EXPECT_THAT(in_bash({"corpus", "show", "m"}), IsEmpty());  // a name
  // Behind a script are its own arguments.
  EXPECT_THAT(in_bash({"run", "m"}), UnorderedElementsAre("model.py", "models"));
  EXPECT_THAT(in_bash({"run", "model.py", "--thre"}), IsEmpty());
  EXPECT_THAT(in_bash({"run", "model.py", "generate", "tw"}), ElementsAre("two words.py"));
}

TEST_F(Completion, FishOffersTheSame) {
  if (!is_installed("fish")) GTEST_SKIP() << "fish is not installed here";
  const std::string file = script("fish").string();
  const auto offered = [&](const std::string& line) {
    const auto ran = in_shell({"/usr/bin/env", "HOME=" + folder_.string(), "fish", "--no-config", "-c",
                               "source $argv[1]; complete -C $argv[2] | string replace -r '\\t.*' ''", file, line});
    EXPECT_EQ(ran.err, "") << line;
    return words_of(ran.out);
  };
  EXPECT_THAT(offered("tilepilot gen"), ElementsAre("generate"));
  EXPECT_THAT(offered("tilepilot --target cpu corpus se"), ElementsAre("search"));
  EXPECT_THAT(offered("tilepilot check --target cuda:"), ElementsAre("cuda:sm_80", "cuda:sm_90a"));
  EXPECT_THAT(offered("tilepilot generate --auth"), ElementsAre("--author"));
  EXPECT_THAT(offered("tilepilot generate mode"), UnorderedElementsAre("model.py", "models/"));
  EXPECT_THAT(offered("tilepilot corpus show mode"), IsEmpty());
  EXPECT_THAT(offered("tilepilot bench run --output mode"), ElementsAre("models/"));
  EXPECT_THAT(offered("tilepilot completion "), UnorderedElementsAre("bash", "zsh", "fish"));
}

// A shell behind a terminal: it gets a line that a tab ends, runs what it made of it, and a function says what that
// was.
TEST_F(Completion, ZshOffersTheSame) {
  if (!is_installed("zsh")) GTEST_SKIP() << "zsh is not installed here";
  const std::string file = script("zsh").string();
  ASSERT_TRUE(write_file(folder_ / "ask", R"(
zmodload zsh/zpty
zpty shell TERM=dumb zsh -f -i
zpty -w shell "autoload -Uz compinit; compinit -u -D; source $1; tilepilot() { print -r -- '<'\"\${(j: :)@}\"'>' }; print rea''dy"
zpty -r -m shell answer '*ready*'
for line in "${@:2}"; do
  zpty -w shell "tilepilot $line"$'\t'
  zpty -r -m shell answer '*<[^>]#>*' || exit 1
  print -r -- "$line: ${${answer##*<}%%>*}"
done
)"));
  const auto completed = [&](const std::string& line) {
    const auto ran = in_shell({"zsh", "-f", "-o", "extendedglob", "ask", file, line});
    EXPECT_EQ(ran.exit_code, 0) << all(ran);
    return ran.out.substr(std::min(ran.out.size(), line.size() + 2));
  };
  EXPECT_EQ(completed("gen"), "generate\n");
  EXPECT_EQ(completed("corpus sea"), "corpus search\n");
  EXPECT_EQ(completed("--target cpu corpus sea"), "--target cpu corpus search\n");
  EXPECT_EQ(completed("check --target emulate:sm_9"), "check --target emulate:sm_90a\n");
  EXPECT_EQ(completed("--target=emulate:sm_9"), "--target=emulate:sm_90a\n");
  EXPECT_EQ(completed("generate --autho"), "generate --author\n");
  EXPECT_EQ(completed("generate model."), "generate model.py\n");
  EXPECT_EQ(completed("completion fi"), "completion fish\n");
}

TEST_F(Completion, ScriptsHaveNoMistakesOfSyntax) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string file = script(shell).string();
    if (!is_installed(shell)) continue;  // the tests above say so
    const auto read = in_shell({shell, "-n", file});
    EXPECT_EQ(read.exit_code, 0) << shell << read.err;
    EXPECT_EQ(read.err, "") << shell;
  }
}

TEST_F(Completion, FailUnknownShell) {
  const auto refused = tilepilot({"completion", "tcsh"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("bash"));
}

TEST_F(Completion, TheManualPageNamesEveryCommandAndOption) {
  const auto printed = tilepilot({"man"});
  ASSERT_EQ(printed.exit_code, 0) << all(printed);
  std::string page = printed.out;  // its hyphens are `\\-`
  for (size_t at; (at = page.find("\\-")) != std::string::npos;) page.erase(at, 1);
  for (const char* heading : {".SH NAME", ".SH SYNOPSIS", ".SH COMMANDS", ".SS tilepilot corpus search"})
    EXPECT_THAT(page, HasSubstr(heading));
  for (const std::string& command : listed_below(tilepilot({"--help"}).out, "Subcommands:"))
    EXPECT_THAT(page, HasSubstr(".SS tilepilot " + command));
  for (const std::string& option : options_in(tilepilot({"generate", "--help"}).out))
    if (option != "-h" && option != "--help") { EXPECT_THAT(page, HasSubstr("\\fB" + option + "\\fR")); }
}

TEST_F(Completion, TheManualPageIsReadWithoutWarnings) {
  ASSERT_TRUE(write_file(folder_ / "tilepilot.1", tilepilot({"man"}).out));
  if (!is_installed("groff") && !is_installed("mandoc")) GTEST_SKIP() << "neither groff nor mandoc is installed here";
  if (is_installed("groff")) {
    const auto set = in_shell({"groff", "-man", "-ww", "-Tutf8", "tilepilot.1"});
    EXPECT_EQ(set.exit_code, 0);
    EXPECT_EQ(set.err, "");
    EXPECT_THAT(set.out, HasSubstr("emulate:sm_90a"));
  }
  if (is_installed("mandoc")) {
    const auto read = in_shell({"mandoc", "-T", "lint", "-W", "style", "tilepilot.1"});
    EXPECT_EQ(read.out + read.err, "");
  }
}

}  // namespace
}  // namespace tilepilot
