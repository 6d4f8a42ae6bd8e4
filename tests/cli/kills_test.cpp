// A process of a run is killed at a random moment: the program itself, the exporter, the judge, its compiler broker, a
// compiler, its fork server, the candidate. No process, no shared memory and no file is left, and the caches still
// serve. TILEPILOT_KILL_ROUNDS says how many kills; TILEPILOT_FIRST_SEED, which.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <map>
#include <random>

#include "compiler/untrusted/isolation.h"
#include "tests/cli/command_line.h"
#include "tests/cli/process_tree.h"

namespace tilepilot {
namespace {

namespace fs = std::filesystem;

int number_of(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::atoi(value) : otherwise;
}

class Kills : public CommandLine {
 protected:
  enum class Run { checks, checks_and_compiles, generates };
  // In turn; one that generates takes as long as several others.
  static constexpr Run kRuns[] = {Run::checks, Run::checks_and_compiles, Run::checks, Run::checks_and_compiles,
                                  Run::generates};

  Kills() {
    for (const char* name : {"temporary", "home", "current"}) fs::create_directories(folder_ / name);
  }

  std::vector<std::string> environment() const {
    return {"TMPDIR=" + (folder_ / "temporary").string(), "HOME=" + (folder_ / "home").string(),
            "TILEPILOT_CACHE=" + (folder_ / "cache").string()};
  }

  static std::vector<std::string> arguments_of(Run run) {
    if (run == Run::generates)
      return {"generate", model("scale_softmax"), "-o", "out.py", "--attempts", "1", "--no-corpus"};
    return {"check", candidate("good_matmul"), "-r", model("matmul"), "--no-timing"};
  }

  // Those of the cache, so that a compiler has something to do.
  void forget_kernels() const {
    for (const auto& item : fs::directory_iterator(folder_ / "cache"))
      if (item.is_directory() && item.path().filename().string().size() == 2) fs::remove_all(item.path());
  }

  pid_t start(Run run) const {
    std::vector<std::string> command = {"/usr/bin/env", "TILEPILOT_STORE=" + store().string()};
    for (const auto& part : {environment(), {TILEPILOT_BINARY_DIR "/tilepilot"}, arguments_of(run)})
      command.insert(command.end(), part.begin(), part.end());
    std::vector<char*> pointers;
    for (std::string& text : command) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    const std::string current = (folder_ / "current").string();
    const pid_t process = fork();
    if (process != 0) return process;
    const int nothing = open("/dev/null", O_RDWR);
    for (int stream = 0; stream <= 2; ++stream) dup2(nothing, stream);
    if (chdir(current.c_str()) == 0) execv(pointers[0], pointers.data());
    _exit(127);
  }

  // Of a run that nobody disturbs, which fills what is filled once: PyTorch's caches, the secret of ours.
  double seconds_of(Run run) const {
    const auto begin = std::chrono::steady_clock::now();
    const pid_t process = start(run);
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "exit code " << WEXITSTATUS(status);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  static std::string role_of(pid_t process) {
    std::string command = content_of(folder_of(process) / "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    for (const char* role : {"tilepilot-worker judge", "tilepilot-worker candidate", "tilepilot-worker fork-server",
                             "export_reference.py", "/tilepilot "})
      if (command.find(role) != std::string::npos) return role;
    return "compiler";
  }

  // Everything below the folders that a run may write to, but for compiled kernels and what runs are for. Nor does the
  // journal of a transaction that was cut off count: with it the next run takes the transaction back.
  std::set<std::string> files() const {
    std::set<std::string> found;
    const auto add = [&](const fs::path& folder) {
      std::error_code ignored;
      for (const auto& item : fs::recursive_directory_iterator(folder, ignored)) found.insert(item.path().string());
    };
    for (const char* name : {"temporary", "home", "cache/work", "cache/tmp"}) add(folder_ / name);
    for (const auto& folder : {folder_, folder_ / "current", folder_ / "cache", fs::path("/dev/shm")})
      for (const auto& item : fs::directory_iterator(folder)) found.insert(item.path().string());
    found.erase(store().string() + "-journal");
    std::erase_if(found, [](const std::string& file) {
      return fs::path(file).parent_path().filename() == "cache" && fs::path(file).filename().string().size() == 2;
    });
    return found;
  }

  // Kills one; gives its role, or nothing if the run had ended.
  std::string kill_one(Run run, double after_s, std::mt19937& random) {
    const pid_t process = start(run);
    std::this_thread::sleep_for(std::chrono::duration<double>(after_s));
    std::set<pid_t> all = {process};
    collect_descendants(process, all);
    const pid_t victim = *std::next(all.begin(), static_cast<long>(random() % all.size()));
    const std::string role = is_alive(victim) ? role_of(victim) : "";
    kill(victim, SIGKILL);
    int status = 0;
    EXPECT_TRUE(comes_true(120, [&] { return waitpid(process, &status, WNOHANG) == process; })) << "it goes on";
    EXPECT_TRUE(victim == process || (WIFEXITED(status) && WEXITSTATUS(status) <= 3)) << "status " << status;
    const auto are_gone = [&] {
      return std::none_of(all.begin(), all.end(), is_alive) && processes_with(folder_.string()).empty();
    };
    EXPECT_TRUE(comes_true(2, are_gone)) << "these go on: " << names_of(processes_with(folder_.string()));
    return role;
  }

  void remove_results() const {
    for (const char* name : {"out.py", "out.cert.json", "good_matmul.cert.json"})
      fs::remove(folder_ / "current" / name);
  }

  void expect_whole_caches() {
    const auto checked = check("good_matmul", {"--no-cert"}, environment());
    EXPECT_EQ(checked.exit_code, 0) << all(checked);
    EXPECT_THAT(all(checked), ::testing::Not(::testing::HasSubstr("cache")));
    const auto listed = tilepilot({"runs", "list"}, environment());
    EXPECT_EQ(listed.exit_code, 0) << all(listed);
  }
};

TEST_F(Kills, LeaveNothingBehind) {
  constexpr int kFew = 10, kBetweenChecks = 25;
  if (!untrusted::available_layers().namespaces) GTEST_SKIP() << "this machine gives no namespaces";
  const int rounds = number_of("TILEPILOT_KILL_ROUNDS", kFew), seed = number_of("TILEPILOT_FIRST_SEED", 11);
  std::map<Run, double> seconds;
  for (const Run run : {Run::checks_and_compiles, Run::checks, Run::generates}) seconds[run] = seconds_of(run);
  std::map<std::string, int> killed;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    std::mt19937 random(static_cast<unsigned>(seed + round));
    const Run run = kRuns[static_cast<size_t>(round) % std::size(kRuns)];
    if (run == Run::checks_and_compiles) forget_kernels();
    remove_results();
    const auto before = files();
    ++killed[kill_one(run, seconds[run] * std::uniform_real_distribution(0.0, 0.95)(random), random)];
    remove_results();
    std::set<std::string> more;
    const auto nothing_is_left = [&] {
      const auto after = files();
      more.clear();
      std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::inserter(more, more.end()));
      return more.empty();
    };
    EXPECT_TRUE(comes_true(2, nothing_is_left)) << ::testing::PrintToString(more);
    if ((round + 1) % kBetweenChecks == 0 || round + 1 == rounds) expect_whole_caches();
  }
  for (const auto& [role, count] : killed)
    std::printf("%4d times killed: %s\n", count, role.empty() ? "nobody, it had ended" : role.c_str());
}

}  // namespace
}  // namespace tilepilot
