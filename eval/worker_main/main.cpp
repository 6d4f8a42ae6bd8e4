// tilepilot-worker: the program that links LibTorch. Started by tilepilot, not by people.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "compiler/runtime/library.h"
#include "compiler/runtime/target.h"
#include "eval/process/fork_server.h"
#include "eval/process/worker_process.h"
#include "eval/torch/vector_math.h"
#include "eval/worker/candidate/candidate_process.h"
#include "eval/worker/export/export_model.h"
#include "eval/worker/judge/judge_process.h"
#include "eval/worker/script.h"

namespace {

namespace eval = tilepilot::eval;

// Whether it has namespaces of its own.
bool become_candidate(int argc, char** argv) {
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  close(nothing);
  if (std::string_view(argv[1]) != eval::kForkServer)
    return argc > 2 && std::string_view(argv[2]) == eval::kInNamespaces;
  const bool in_namespaces = eval::serve_forks();
  const size_t size = std::strlen(argv[1]);
  static_assert(std::string_view(eval::kForkServer).size() >= std::string_view(eval::kCandidate).size());
  std::strncpy(argv[1], eval::kCandidate, size);  // for lists of processes
  return in_namespaces;
}

}  // namespace

int main(int argc, char** argv) {
  namespace runtime = tilepilot::runtime;
  std::string_view role = argc >= 2 ? argv[1] : "";
  if (role == "--version") {
    fmt::print("LibTorch {}\n", eval::libtorch_version());
    return 0;
  }
  eval::settle_vector_math();
  if (role == "run" && argc >= 8) {
    eval::RunLimits limits{std::atof(argv[2]), std::atoi(argv[3]), {argv, argv + argc}};
    const auto target = runtime::parse_target(argv[5]);
    if (!target.ok()) return 2;  // tilepilot has read it already
    return eval::run_script(
        {argv[7], {argv + 8, argv + argc}, {}},
        {limits, {}, argv[4], *target, {}, runtime::default_cache_directory(), std::string_view(argv[6]) == "costs"});
  }
  if (role == "tune" && argc == 10) {
    const auto target = runtime::parse_target(argv[2]);
    if (!target.ok()) return 2;
    eval::RunLimits limits{std::atof(argv[3]), 0, {argv, argv + argc}};
    eval::ScriptOptions options{limits, {}, "", *target, {}, runtime::default_cache_directory()};
    options.tune = eval::TuneRequest{argv[7], std::atoi(argv[4]), std::atof(argv[5]),
                                     std::string_view(argv[8]) == "json", std::string_view(argv[9]) == "quiet"};
    return eval::run_script({argv[6], {}, {}}, std::move(options));
  }
  if (role == "profile" && argc == 7) {
    const auto target = runtime::parse_target(argv[2]);
    if (!target.ok()) return 2;
    eval::ScriptOptions options{{}, {}, "", *target, {}, runtime::default_cache_directory()};
    const std::string_view form = argv[6];
    options.profile = eval::ProfileRequest{argv[5], std::atof(argv[3]) * 1e-3, form != "text", form == "both"};
    return eval::run_script({argv[4], {}, {}}, std::move(options));
  }
  if (role == "export" && argc >= 8) {
    eval::ExportRequest request{argv[7], argv[2], argv[3], argv[4], argv[5], std::string_view(argv[6]) == "json", {}};
    request.calls.assign(argv + 8, argv + argc);
    return eval::export_model(request);
  }
  bool started_by_tilepilot = fcntl(eval::kWorkerSocket, F_GETFD) >= 0;
  const bool known = role == "judge" || role == eval::kCandidate || role == eval::kForkServer;
  if (!known || !started_by_tilepilot) {
    fmt::print(stderr, "tilepilot-worker is started by tilepilot; run `tilepilot --help`\n");
    return 2;
  }
  // Freed memory stays with the process, on both sides alike: else every large tensor is new pages from the system, and
  // a timing measures page faults (docs/verification.md, Timing).
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const bool in_namespaces = role != "judge" && become_candidate(argc, argv);
  for (int descriptor : {eval::kWorkerSocket, eval::kFirstInherited, eval::kCompilerSocket})
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  if (role != "judge") return eval::run_candidate(in_namespaces);
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return eval::run_judge(error ? argv[0] : self);
}
