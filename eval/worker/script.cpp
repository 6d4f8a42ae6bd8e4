#include "eval/worker/script.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "compiler/diagnostics/render.h"
#include "compiler/ir/verify/verify.h"
#include "compiler/runtime/cuda/architecture.h"
#include "compiler/runtime/machine.h"
#include "compiler/source/file.h"
#include "compiler/syntax/parser.h"
#include "eval/host/torch_host.h"
#include "eval/profile/profile_text.h"
#include "eval/torch/gpu.h"
#include "eval/worker/crash_report.h"
#include "eval/worker/target_backend.h"

namespace tilepilot::eval {

namespace {

void default_to(std::function<void(const std::string&)>& stream, std::FILE* file) {
  if (!stream) stream = [file](const std::string& text) { fmt::print(file, "{}", text); };
}

// How far a script came.
struct Progress {
  bool parsed = false;
  int staged = 0, launched = 0;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

nlohmann::json to_json(const emulator::Traffic& traffic) {
  return {{"instructions", traffic.instructions},           {"bytes", traffic.bytes},
          {"shared_wavefronts", traffic.shared_wavefronts}, {"bank_conflicts", traffic.bank_conflicts},
          {"global_sectors", traffic.global_sectors},       {"least_sectors", traffic.least_sectors}};
}

nlohmann::json to_json(const std::map<emulator::SourceLine, emulator::Traffic>& lines) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [line, traffic] : lines) all[emulator::spelled(line)] = to_json(traffic);
  return all;
}

nlohmann::json to_json(const targets::c::Operations& operations) {
  nlohmann::json all = nlohmann::json::object();
  for (size_t k = 0; k < targets::c::kOperationClasses; ++k) {
    const auto operation = static_cast<targets::c::Operation>(k);
    std::string name(name_of(operation));
    std::replace(name.begin(), name.end(), ' ', '_');
    all[name] = operations[operation];
  }
  return all;
}

nlohmann::json to_json(const std::map<emulator::SourceLine, targets::c::Operations>& lines) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [line, operations] : lines) all[emulator::spelled(line)] = to_json(operations);
  return all;
}

nlohmann::json to_json(const emulator::Cost& cost) {
  const emulator::Counters& c = cost.counters;
  return {{"program", cost.program},
          {"number", cost.number},
          {"launches", cost.launches},
          {"shared_reads", to_json(c.shared_reads)},
          {"shared_writes", to_json(c.shared_writes)},
          {"global_reads", to_json(c.global_reads)},
          {"global_writes", to_json(c.global_writes)},
          {"instructions",
           {{"mma", c.mma},
            {"wgmma", c.wgmma},
            {"ldmatrix", c.ldmatrix},
            {"stmatrix", c.stmatrix},
            {"async_copies", c.async_copies},
            {"bulk_copies", c.bulk_copies},
            {"atomics", c.atomics},
            {"shuffles", c.shuffles},
            {"votes", c.votes},
            {"warp_syncs", c.warp_syncs},
            {"block_syncs", c.block_syncs}}},
          {"thread_operations", to_json(c.thread_operations)},
          {"warp_operations", to_json(c.warp_operations)},
          {"shared_lines", to_json(c.shared_lines)},
          {"global_lines", to_json(c.global_lines)},
          {"operation_lines", to_json(c.operation_lines)}};
}

void write_report(const std::string& path, const Progress& progress, int compiled, int exit_code,
                  const std::string& diagnostics, const emulator::CostBook& costs) {
  if (path.empty()) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - progress.start;
  nlohmann::json report = {{"parsed", progress.parsed},
                           {"staged", progress.staged},
                           {"compiled", compiled},
                           {"launched", progress.launched},
                           {"exit_code", exit_code},
                           {"seconds", seconds.count()},
                           {"diagnostics", nlohmann::json::parse(diagnostics)}};
  for (const emulator::Cost& cost : costs.costs()) report["costs"].push_back(to_json(cost));
  std::ofstream(path) << report.dump(2) << "\n";
}

// What the program is not to blame for.
bool is_missing_here(DiagnosticKind kind) {
  using Kind = DiagnosticKind;
  return kind == Kind::compiler_missing || kind == Kind::nvrtc_missing || kind == Kind::driver_missing ||
         kind == Kind::worker_unavailable;
}

TorchHostOptions host_options(const std::shared_ptr<const runtime::cuda::Device>& gpu) {
  TorchHostOptions options{.is_script = true};
  if (gpu) options.device = "cuda:0";
  options.gpu = gpu;
  return options;
}

// Faults of the last launches; earlier ones were met by what came after them.
Status end_of_work(const std::shared_ptr<const runtime::cuda::Device>& gpu) {
  if (!gpu) return {};
  TRY(gpu->use());
  return gpu->wait(current_stream());
}

}  // namespace

namespace {

std::string crash_hint(const runtime::Target& target) {
  if (target.place != runtime::Place::cpu) return "";
  return "memory that a kernel names by its address is not checked here; `--target emulate:sm_80` checks every access";
}

// What measurements of tuning hold for: the device, the code for it, and the compiler that makes it.
TuningPlace tuning_place(const ScriptOptions& options, const runtime::cuda::Device* gpu) {
  TuningPlace place;
  place.device = "the processor";
  place.cache = runtime::TuningCache(options.tuning_folder);
  if (gpu != nullptr) {
    auto best = runtime::cuda::architecture_of(gpu->capability());
    place.architecture = options.target.architecture.empty() && best.ok() ? *best : options.target.architecture;
    place.device = gpu->name();
    place.tries = 16;  // a GPU's kernels compile in a fraction of a second
    place.identity = fmt::format("{} {}", gpu->name(), gpu->multiprocessors());
  } else if (options.target.place == runtime::Place::emulator) {
    place.architecture = options.target.architecture;
    place.device = place.identity = "the emulator";
  } else {
    place.identity = fmt::format("{} {}", runtime::processor_identity(), std::thread::hardware_concurrency());
  }
  place.identity += "\n" + place.architecture + "\n" + runtime::file_identity("/proc/self/exe");
  return place;
}

// One script from its file to its end.
class ScriptRun {
 public:
  ScriptRun(stage::Script script, ScriptOptions options) : script_(std::move(script)), options_(std::move(options)) {
    default_to(options_.streams.output, stdout);
    default_to(options_.streams.error, stderr);
  }

  int run() {
    const bool wants_costs = options_.tells_costs || !options_.report.empty() || options_.profile;
    auto opened =
        open_target(options_.target, {runtime::default_cache_directory(), &sources_, wants_costs ? costs_ : nullptr});
    if (!opened.ok()) {
      diagnostics_.add(opened.error());
      return finish(3);
    }
    gpu_ = opened->gpu;
    profiled_ = {nullptr, opened->target, &sources_, at::get_num_threads()};
    auto kernels = crash_.watch(std::move(opened->kernels), crash_hint(opened->target));
    if (options_.profile) kernels = observe(std::move(kernels), profiled_);
    backend_ = std::make_unique<CompileClock>(std::move(kernels));
    std::string text;
    if (!read_file(script_.path, text)) {
      diagnostics_.add({DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", script_.path), {}, ""});
      return finish(2);
    }
    auto tree = syntax::parse(sources_, sources_.add(script_.path, std::move(text)), diagnostics_);
    if (!tree) return finish(1);
    progress_.parsed = true;
    return evaluate(tree);
  }

 private:
  stage::Script script_;
  ScriptOptions options_;
  SourceMap sources_;
  CrashReport crash_{sources_};
  DiagnosticList diagnostics_;
  Progress progress_;
  std::shared_ptr<const runtime::cuda::Device> gpu_;
  std::unique_ptr<CompileClock> backend_;
  std::shared_ptr<emulator::CostBook> costs_ = std::make_shared<emulator::CostBook>();
  Profiled profiled_;
  nlohmann::json answer_ = nlohmann::json::object();  // of tuning or profiling

  int finish(int code) {
    options_.streams.error(render(sources_, diagnostics_));
    if (options_.tells_costs)
      for (const emulator::Cost& cost : costs_->costs()) options_.streams.error(emulator::to_text(cost));
    const std::string shown = render_json(sources_, diagnostics_);
    write_report(options_.report, progress_, backend_ ? backend_->kernels() : 0, code, shown, *costs_);
    if (!answers_in_json()) return code;
    answer_["ok"] = code == 0;
    answer_[code == 0 ? "diagnostics" : "errors"] = nlohmann::json::parse(shown);
    options_.streams.output(answer_.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return code;
  }

  bool answers_in_json() const {
    return (options_.tune && options_.tune->json) || (options_.profile && options_.profile->json);
  }

  ProfiledMachine machine() const {
    if (profiled_.target.place == runtime::Place::emulator) return {"the emulator"};
    return gpu_ ? profiled_gpu(gpu_->name())
                : profiled_processor(profiled_.threads, runtime::default_cache_directory());
  }

  // In the emulator what counts is what launches cost, not how long the host took for it.
  Status profile(stage::Interpreter& interpreter, stage::ModuleObject& main) {
    const bool emulated = profiled_.target.place == runtime::Place::emulator;
    const c10::Device device = gpu_ ? gpu_device() : c10::Device(c10::DeviceType::CPU);
    auto called =
        TRY(profile_call(interpreter, main, *options_.profile, *crash_.statement(), device, profiled_, diagnostics_));
    if (emulated) called.record.without_times();
    const Profile made = profile_of(called.record, machine(), runtime::to_string(profiled_.target), called.call);
    answer_["call"] = options_.profile->call;
    answer_["profile"] = to_json(made);
    for (const emulator::Cost& cost : costs_->costs()) answer_["costs"].push_back(to_json(cost));
    const std::string text = emulated ? text_of_costs(made) : profile_text(made) + "\n";
    if (!options_.profile->json) options_.streams.output(text);
    if (options_.profile->with_text) answer_["text"] = text;
    return {};
  }

  std::string text_of_costs(const Profile& made) const {
    std::string text;
    for (const emulator::Cost& cost : costs_->costs()) text += emulator::to_text(cost);
    for (const KernelProfile& kernel : made.kernels) text += counts_text(kernel) + choices_text(kernel);
    return text;
  }

  void install(stage::Interpreter& interpreter, TorchHost& host) {
    interpreter.set_print(answers_in_json() ? options_.streams.error : options_.streams.output);
    const bool tells = !options_.tune || !options_.tune->quiet;
    interpreter.set_print_error(tells ? options_.streams.error : [](const std::string&) {});
    host.install(interpreter);
    script_.modules = torch_modules();
    for (const stage::EmbeddedModule& module : stage::tile_modules()) script_.modules.push_back(module);
    stage::install_script(interpreter, script_);
    add_run_limits(interpreter, options_.limits, tuning_place(options_, gpu_.get()), *backend_);
    stage::install_tuning(interpreter);
    stage::TileOptions tile;
    tile.backend = backend_.get();
    tile.host = &host.tensors();
    tile.raw_memory = true;
    tile.on_program = [this](const ir::Program& program) {
      progress_.staged += ir::verify(program, diagnostics_) ? 1 : 0;
    };
    tile.on_launch = [this](const ir::Program&, bool begins) { progress_.launched += begins ? 0 : 1; };
    stage::install_tile_language(interpreter, std::move(tile));
  }

  int evaluate(const syntax::ModuleRef& tree) {
    TorchHost host(host_options(gpu_));
    // Nobody waits for a script but the one who started it.
    stage::Interpreter interpreter(sources_, {.steps = std::numeric_limits<int64_t>::max()});
    interpreter.set_statement_marker(crash_.statement());
    install(interpreter, host);
    // Importable, as in Python.
    auto main = interpreter.make_module(tree, options_.tune ? "tuned" : options_.profile ? "profiled" : "__main__");
    interpreter.add_module(main->name, main);
    Status ran = interpreter.run_module_in(tree, main);
    bool usable = true;
    if (ran.ok() && options_.tune) {
      auto tuned = tune_call(interpreter, *main, *options_.tune, diagnostics_);
      usable = tuned.ok() || tuned.error().kind != DiagnosticKind::bad_usage;
      if (tuned.ok())
        answer_ = *std::move(tuned);
      else
        ran = std::move(tuned).take_error();
    }
    if (ran.ok() && options_.profile) {
      ran = profile(interpreter, *main);
      usable = ran.ok() || ran.error().kind != DiagnosticKind::bad_usage;
    }
    if (ran.ok()) ran = end_of_work(gpu_);
    add_others(interpreter, Severity::warning);
    if (ran.ok()) return finish(0);
    if (auto code = stage::exit_status(interpreter, ran.error())) return finish(*code);
    diagnostics_.add(stage::seen_from_script(sources_, ran.error()));
    add_others(interpreter, Severity::error);
    return finish(is_missing_here(ran.error().kind) ? 3 : usable ? 1 : 2);
  }

  void add_others(stage::Interpreter& interpreter, Severity severity) {
    for (const Diagnostic& other : interpreter.diagnostics().items())
      if (other.severity() == severity) diagnostics_.add(other);
  }
};

}  // namespace

int run_script(stage::Script script, ScriptOptions options) {
  return ScriptRun(std::move(script), std::move(options)).run();
}

std::string libtorch_version() {
  return libtorch_has_cuda() ? TORCH_VERSION " with CUDA" : TORCH_VERSION " without CUDA";
}

}  // namespace tilepilot::eval
