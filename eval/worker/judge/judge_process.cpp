#include "eval/worker/judge/judge_process.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <map>
#include <random>

#include "compiler/runtime/cuda/gpu_monitor.h"
#include "compiler/runtime/target.h"
#include "eval/diagnostic_json.h"
#include "eval/process/compiled_process.h"
#include "eval/process/compiler_broker.h"
#include "eval/process/fork_server.h"
#include "eval/process/lock_folder.h"
#include "eval/process/memory_reservation.h"
#include "eval/process/worker_process.h"
#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/judge/examination.h"
#include "eval/worker/judge/timing/timing_lock.h"
#include "eval/worker/profile/node_times.h"
#include "eval/worker/target_backend.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;

JudgeOptions read_options(const json& node) {
  JudgeOptions options;
  node.at("dtype").get_to(options.dtype);
  node.at("precision").get_to(options.precision);
  node.at("target").get_to(options.target);
  node.at("aten").get_to(options.aten);
  node.at("trials").get_to(options.trials);
  node.at("time_limit_s").get_to(options.time_limit_s);
  node.at("memory_limit_bytes").get_to(options.memory_limit_bytes);
  node.at("timing_samples").get_to(options.timing_samples);
  node.at("timing_budget_s").get_to(options.timing_budget_s);
  node.at("kernelbench_timing").get_to(options.kernelbench_timing);
  node.at("baseline_compile").get_to(options.baseline_compile);
  node.at("compile_limit_s").get_to(options.compile_limit_s);
  node.at("threads").get_to(options.threads);
  options.cache = node.at("cache").get<std::string>();
  node.at("allow_foreign").get_to(options.allow_foreign);
  node.at("reference_only").get_to(options.reference_only);
  node.at("eager_only").get_to(options.eager_only);
  if (node.contains("seed")) options.seed = node.at("seed").get<uint64_t>();
  return options;
}

int64_t bytes_of_memory() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

// Of inputs and expected values, for the candidates to come.
constexpr int64_t kMostKept = int64_t{1} << 30;

uint64_t secret_seed() {
  std::random_device entropy;
  return (uint64_t{entropy()} << 32) | entropy();
}

// Reference, eager and candidate run in the element type that the model was exported in.
Status check_dtype(const Reference& reference, const JudgeOptions& options) {
  if (reference.dtype == options.dtype) return {};
  return make_error(DiagnosticKind::reference_invalid, {},
                    fmt::format("the reference was exported as `{}`, not as `{}`", reference.dtype, options.dtype),
                    "export the model again");
}

class JudgeServer {
 public:
  JudgeServer(Wire& wire, std::filesystem::path executable, CompilerBroker* broker)
      : wire_(wire), executable_(std::move(executable)), broker_(broker) {}

  void serve() {
    while (auto message = wire_.receive()) {
      auto op = message->body.value("op", "");
      if (op == "open") {
        auto opened = open(message->body);
        wire_.send(opened.ok() ? json{{"target", options_.target}, {"threads", options_.threads}, {"waited", waited_}}
                               : json{{"diagnostic", to_json(opened.error())}});
      } else if (op == "eager") {
        auto times = eager_times();
        wire_.send(times.ok() ? to_json(*times) : json{{"diagnostic", to_json(times.error())}});
      } else if (op == "check" || op == "compare") {
        add_compiled_sides(*message);
        json answer = op == "check" ? to_json(check(request_from(message->body))) : compare(message->body);
        answer[kJudgeEnds] = gpu_is_lost();
        wire_.send(answer);
        if (answer[kJudgeEnds]) return;
      }
      if (share_) share_->release();
    }
  }

 private:
  Status open(const json& body) {
    options_ = read_options(body.at("options"));
    if (options_.threads > 0) at::set_num_threads(options_.threads);
    options_.threads = at::get_num_threads();
    if (options_.memory_limit_bytes <= 0) options_.memory_limit_bytes = bytes_of_memory() / 4 * 3;
    // What candidates will need, so that what this machine lacks is said once.
    auto opened = TRY(open_target(TRY(runtime::parse_target(options_.target)), {options_.cache, nullptr}));
    options_.target = runtime::to_string(opened.target);
    measures_ = opened.target.place != runtime::Place::emulator;
    gpu_ = std::move(opened.gpu);
    // Without NVML times are as good; they only come without what the GPU says of itself.
    if (gpu_)
      if (auto monitor = runtime::cuda::open_nvml({.library = {}, .bus_id = gpu_->bus_id()}); monitor.ok())
        monitor_ = *std::move(monitor);
    bus_id_ = gpu_ ? gpu_->bus_id() : "";
    // A driver that does not say which one it is: all of them are one.
    timing_lock_ = timing_lock_file(gpu_ && bus_id_.empty() ? "unnamed" : bus_id_);
    auto reference = TRY(load_reference(body.at("folder").get<std::string>()));
    TRY(check_dtype(reference, options_));
    TRY(reserve_memory(reference));
    if (options_.eager_only) {
      alone_ = std::move(reference);
      return {};
    }
    start_fork_server();
    ReferenceOptions reference_options{.seed = options_.seed ? *options_.seed : secret_seed(),
                                       .trials = std::max(1, options_.trials),
                                       .kept_bytes = std::min(kMostKept, bytes_of_memory() / 16),
                                       .precision = type_of_option(options_.precision)};
    try {
      if (gpu_) reference_options.device = gpu_device();
      reference_options.gpu = gpu_;
      if (gpu_) reference_options.exact_bytes = kExactBytesOnGpu;
      reference_options.idle_bytes = gpu_idle_bytes_;
      if (gpu_) {
        share_ = std::make_unique<DeviceShare>(timing_lock_);
        reference_options.begin_step = [this] { return share_waited_for(); };
        share_waited_for();
      }
      side_ = TRY(ReferenceSide::make(std::move(reference), reference_options));
    } catch (const std::exception& error) {
      return make_error(DiagnosticKind::reference_invalid, {},
                        fmt::format("the reference cannot be replayed: {}", error.what()));
    }
    return {};
  }

  Status reserve_memory(const Reference& reference) {
    auto available = [this]() -> Result<MemoryAvailable> {
      MemoryAvailable now = memory_available();
      if (gpu_) now.gpu = TRY(gpu_->free_memory());
      return now;
    };
    auto waits = [this](const std::string& what) { wire_.send({{kJudgeWaits, what}}); };
    const double begin = monotonic_seconds();
    const GraphUses uses(reference.forward);
    const bool on_gpu = gpu_ != nullptr;
    const bool alone = options_.reference_only || options_.eager_only;
    MemoryNeed need = alone ? reference_need(uses, on_gpu) : memory_need(uses, on_gpu);
    if (options_.baseline_compile && !alone) need = with_compiled_modes(need, on_gpu);
    gpu_limit_bytes_ = need.gpu_limit;
    gpu_idle_bytes_ = need.gpu_idle;
    memory_ = TRY(MemoryReservation::take(
        need, {.folder = lock_folder(), .gpu = bus_id_, .available = available, .waits = waits}));
    waited_ = monotonic_seconds() - begin;
    return {};
  }

  // It loads LibTorch while this process measures the model. Without it each candidate's process is started anew, as
  // those that use a GPU are.
  void start_fork_server() {
    fork_server_.reset();
    if (gpu_ || options_.reference_only) return;
    auto started = ForkServer::start(executable_, options_.threads);
    if (started.ok()) fork_server_ = *std::move(started);
  }

  double share_waited_for() {
    const double waited = share_->renew();
    waited_ += waited;
    return waited;
  }

  // A context that failed never works again; another judge has another one.
  bool gpu_is_lost() const {
    if (!gpu_) return false;
    try {
      synchronize_gpu();
      release_unused_gpu_memory();  // to the next candidate
      return false;
    } catch (const std::exception&) { return true; }
  }

  // One run at a time is timed on a machine.
  Result<EagerTimes> eager_times() {
    const NoShare alone(share_.get());
    const TimingLock lock(timing_lock_, [] {});
    try {
      auto times = time_nodes(side_ ? side_->reference() : alone_, gpu_ ? gpu_device() : c10::Device(c10::kCPU));
      if (gpu_) release_unused_gpu_memory();  // to the next candidate
      return times;
    } catch (const std::exception& error) { return make_error(DiagnosticKind::worker_unavailable, {}, error.what()); }
  }

  void add_compiled_sides(Message& message) {
    const json described = message.body.value(kCompiledProcesses, json::array());
    for (size_t i = 0; i < described.size() && i < message.descriptors.size(); ++i)
      compiled_.push_back(std::make_unique<CompiledSide>(
          CompiledLaunch{described[i].at("mode"), std::move(message.descriptors[i]), described[i].at("process")},
          *side_));
  }

  ExaminationOptions examination() {
    return {options_,
            executable_,
            broker_,
            fork_server_.get(),
            monitor_.get(),
            gpu_limit_bytes_,
            compiled_.empty() ? nullptr : &compiled_,
            &eager_profile_,
            share_.get(),
            timing_lock_};
  }

  CheckRequest request_from(const json& body) const {
    const bool time = body.at("time") && measures_;
    return {.source = body.at("source"),
            .name = body.at("name"),
            .time = time,
            .profile = time ? static_cast<Profiling>(body.at("profile").get<int>()) : Profiling::none};
  }
  static Verdict failure(const std::exception& error) {
    Verdict verdict;
    verdict.detail = fmt::format("the judge failed: {}", error.what());
    return verdict;
  }

  static json answer_of(const std::vector<Verdict>& verdicts) {
    json answer = {{"verdicts", json::array()}};
    for (const Verdict& verdict : verdicts) answer["verdicts"].push_back(to_json(verdict));
    return answer;
  }

  // Programs that were not verified before are examined first; those that fail then have their verdict.
  json compare(const json& body) {
    std::vector<CheckRequest> finalists;
    std::vector<Verdict> known, verdicts;
    std::vector<size_t> places;
    for (auto& each : body.at("requests")) {
      CheckRequest request = request_from(each);
      auto found = verified_.find(request.source);
      request.time = false;
      verdicts.push_back(found == verified_.end() ? check(request) : found->second);
      if (verdicts.back().outcome != Outcome::verified) continue;
      request.time = measures_;
      places.push_back(verdicts.size() - 1);
      known.push_back(verdicts.back());
      finalists.push_back(std::move(request));
    }
    if (finalists.empty()) return answer_of(verdicts);
    try {
      auto compared = compare_verified(*side_, finalists, examination(), known);
      for (size_t i = 0; i < places.size(); ++i) {
        for (PairedRatio& each : compared[i].paired) each.other = places[each.other];
        verdicts[places[i]] = std::move(compared[i]);
      }
    } catch (const std::exception& error) {
      for (const size_t place : places) verdicts[place] = failure(error);
    }
    return answer_of(verdicts);
  }

  Verdict check(const CheckRequest& request) {
    if (!side_) {
      Verdict none;
      none.detail = "this judge measures eager alone";
      return none;
    }
    if (options_.reference_only) {
      Verdict known;
      known.detail = "only the model was looked at";
      known.notes = side_->notes();
      known.degenerate = side_->degenerate();
      return known;
    }
    try {
      auto known = verified_.find(request.source);
      const bool is_known = known != verified_.end() && (request.profile == Profiling::none || known->second.profile);
      auto verdict = examine(*side_, request, examination(), is_known ? &known->second : nullptr);
      if (verdict.outcome == Outcome::verified) verified_.insert_or_assign(request.source, verdict);
      return verdict;
    } catch (const std::exception& error) { return failure(error); }
  }

  Wire& wire_;
  std::filesystem::path executable_;
  CompilerBroker* broker_;
  std::unique_ptr<ForkServer> fork_server_;  // of candidates; null: there is none
  JudgeOptions options_;
  MemoryReservation memory_;
  int64_t gpu_idle_bytes_ = 0;                        // of the judge
  int64_t gpu_limit_bytes_ = 0;                       // of a candidate
  double waited_ = 0;                                 // in seconds, for memory, and until others had been timed
  bool measures_ = true;                              // times in the emulator tell nothing
  std::shared_ptr<const runtime::cuda::Device> gpu_;  // kept, as its context is LibTorch's too
  std::string bus_id_;                                // of the GPU
  std::filesystem::path timing_lock_;
  std::unique_ptr<runtime::cuda::GpuMonitor> monitor_;
  std::unique_ptr<DeviceShare> share_;  // of the GPU
  std::unique_ptr<ReferenceSide> side_;
  Reference alone_;                          // where there is no `side_`
  CompiledSides compiled_;                   // under `torch.compile`, by mode
  std::map<std::string, Verdict> verified_;  // by source
  std::optional<SideProfile> eager_profile_;
};

}  // namespace

int run_judge(const std::filesystem::path& executable) {
  prctl(PR_SET_DUMPABLE, 0);  // nobody reads expected values out of this process
  const auto broker = CompilerBroker::start();
  install_fresh_memory();
  Wire wire{Descriptor(kWorkerSocket)};
  JudgeServer(wire, executable, broker.get()).serve();
  return 0;
}

}  // namespace tilepilot::eval
