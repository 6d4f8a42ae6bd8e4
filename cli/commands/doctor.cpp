// tilepilot doctor: what is installed, what is missing, and what that costs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/command.h"
#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/cuda/driver.h"
#include "compiler/runtime/cuda/gpu_monitor.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/runtime/library.h"
#include "compiler/runtime/process.h"
#include "compiler/untrusted/isolation.h"
#include "eval/process/candidate_confinement.h"
#include "retrieval/corpus.h"

namespace tilepilot::cli {
namespace {

struct Finding {
  bool ok = false;
  std::string state;  // what was found, or what is wrong
};

struct Check {
  const char* name;
  bool essential;
  const char* cost;  // what does not work without it
  Finding (*probe)(const Session&);
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Finding probe_compiler(const Session&) {
  runtime::Toolchain toolchain({});
  std::string version = toolchain.version();
  return version.empty() ? Finding{false, "no c++, g++ or clang++ on PATH"} : Finding{true, version};
}

Finding probe_python(const Session& session) {
  auto ran = runtime::run_process(
      {session.python(), "-W", "ignore", "-c",
       "import sys, torch; print('Python', sys.version.split()[0], 'with PyTorch', torch.__version__)"},
      {.time_limit_s = 60, .working_directory = {}});
  if (!ran) return {false, ran.error().message};
  if (ran->exit_code != 0) return {false, fmt::format("`{}` cannot import torch", session.python())};
  return {true, first_line(ran->out)};
}

Finding probe_worker(const Session& session) {
  auto ran = runtime::run_process({session.environment.worker.string(), "--version"},
                                  {.time_limit_s = 60, .working_directory = {}});
  if (!ran) return {false, ran.error().message};
  if (ran->exit_code != 0) return {false, fmt::format("`{}` does not start", session.environment.worker.string())};
  return {true, first_line(ran->out)};
}

Finding probe_gpu(const Session&) {
  auto gpu = runtime::cuda::Device::open();
  if (!gpu.ok()) return {false, gpu.error().message};
  auto target = runtime::cuda::architecture_of((*gpu)->capability());
  if (!target.ok()) return {false, fmt::format("{}: {}", (*gpu)->name(), target.error().message)};
  return {true, fmt::format("{}, compute capability {}.{} (cuda:{}), driver of CUDA {}", (*gpu)->name(),
                            (*gpu)->capability() / 10, (*gpu)->capability() % 10, *target, (*gpu)->driver_version())};
}

Finding probe_nvml(const Session&) {
  runtime::cuda::NvmlOptions options;
  if (auto gpu = runtime::cuda::Device::open(); gpu.ok()) options.bus_id = (*gpu)->bus_id();
  auto monitor = runtime::cuda::open_nvml(options);
  if (!monitor.ok()) return {false, monitor.error().message};
  const auto sample = (*monitor)->sample();
  const auto text = [](const auto& value) { return value ? fmt::format("{:.0f}", static_cast<double>(*value)) : "?"; };
  return {true, fmt::format("SM at {} MHz, memory at {} MHz, {} W, {} C", text(sample.sm_mhz), text(sample.mem_mhz),
                            text(sample.power_w), text(sample.temperature))};
}

Finding probe_nvrtc(const Session& session) {
  runtime::cuda::NvrtcOptions options;
  options.folders = runtime::cuda::default_cuda_folders();
  // The packages beside the PyTorch of this build.
  for (auto& folder :
       runtime::cuda::package_folders(std::filesystem::path(session.python()).parent_path().parent_path()))
    options.folders.insert(options.folders.begin(), folder);
  auto version = runtime::cuda::Nvrtc(std::move(options)).version();
  return version.ok() ? Finding{true, *version} : Finding{false, version.error().message};
}

Finding probe_exporter(const Session& session) {
  auto script = session.exporter_options().script;
  return {std::filesystem::exists(script), script.string()};
}

Finding probe_cache(const Session& session) {
  std::error_code error;
  std::filesystem::create_directories(session.environment.cache, error);
  if (access(session.environment.cache.c_str(), W_OK) != 0)
    return {false, fmt::format("`{}` is not writable", session.environment.cache.string())};
  auto space = std::filesystem::space(session.environment.cache, error);
  return {true, fmt::format("{} ({:.1f} GB free)", session.environment.cache.string(),
                            static_cast<double>(space.available) / 1e9)};
}

Finding probe_store(const Session& session) {
  auto corpus = retrieval::open_corpus(session.store_file());
  if (!corpus) return {false, corpus.error().message};
  auto entries = (*corpus)->list();
  if (!entries) return {false, entries.error().message};
  return {true, fmt::format("{} ({} programs)", session.store_file().string(), entries->size())};
}

Finding probe_key(const Session& session) {
  return session.environment.api_key.empty() ? Finding{false, "TILEPILOT_API_KEY is not set"}
                                             : Finding{true, "TILEPILOT_API_KEY is set"};
}

Finding probe_cpu(const Session&) {
#if defined(__x86_64__)
  const char* vectors = __builtin_cpu_supports("avx512f") ? ", AVX-512"
                        : __builtin_cpu_supports("avx2")  ? ", AVX2"
                                                          : "";
#else
  const char* vectors = "";
#endif
  return {true, fmt::format("{} cores{}", std::thread::hardware_concurrency(), vectors)};
}

Finding probe_sandbox(const Session&) {
  const auto layers = untrusted::available_layers();
  return {
      layers.namespaces && layers.root && layers.landlock > 0 && layers.seccomp,
      fmt::format("{}; adds {:.1f} ms to a start", untrusted::to_string(layers), eval::seconds_of_confinement() * 1e3)};
}

constexpr Check kChecks[] = {
    {"processor", true, "", probe_cpu},
    {"C++ compiler", true, "kernels cannot be compiled", probe_compiler},
    {"worker", true, "nothing can be run or judged", probe_worker},
    {"Python and PyTorch", true, "models cannot be exported", probe_python},
    {"exporter", true, "models cannot be exported", probe_exporter},
    {"sandbox", false, "candidates and compilers are kept from less than they could be", probe_sandbox},
    {"GPU", false, "kernels run on the processor, or in the emulator", probe_gpu},
    {"NVML", false, "verdicts on a GPU do not tell its clocks, power and temperature", probe_nvml},
    {"NVRTC", false, "`cuda:` targets cannot run kernels", probe_nvrtc},
    {"kernel cache", false, "every kernel is compiled again", probe_cache},
    {"corpus and runs", true, "`generate` and `corpus` cannot keep their state", probe_store},
    {"language model key", false, "`--author llm` works only with endpoints that need no key", probe_key},
};

int run_doctor(Session& session) {
  if (auto target = session.target(); !target) return session.fail(target.error());
  nlohmann::json object = {{"ok", true}, {"checks", nlohmann::json::array()}};
  bool healthy = true;
  for (const Check& check : kChecks) {
    Finding finding = check.probe(session);
    std::string mark = finding.ok ? "ok" : check.essential ? "MISSING" : "none";
    session.answer(fmt::format("{:<8} {:<20} {}", mark, check.name, finding.state));
    if (!finding.ok) session.answer(fmt::format("{:<29} without it, {}", "", check.cost));
    object["checks"].push_back(
        {{"name", check.name}, {"ok", finding.ok}, {"essential", check.essential}, {"state", finding.state}});
    healthy = healthy && (finding.ok || !check.essential);
  }
  object["ok"] = healthy;
  session.answer(healthy ? "everything needed is here" : "run `scripts/setup` to install what is missing");
  session.finish(object);
  return healthy ? kDone : kMissing;
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand("doctor", "What is installed, what is missing, and what that costs");
  command->callback([&session] { session.run = [&session] { return run_doctor(session); }; });
}

}  // namespace tilepilot::cli
