// The judge as the rest of the program sees it: requests and verdicts, plain data. Behind it stands `tilepilot-worker`,
// in its own processes (eval/worker).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::eval {

enum class Outcome {
  verified,       // correct on all trials and passed the guards
  compile_error,  // the candidate does not parse, stage or compile
  runtime_error,  // it raised while running
  wrong_values,
  wrong_shape,
  wrong_dtype,
  wrong_strides,
  not_finite,  // NaN or Inf where the reference has none
  mutated_input,
  weights_mismatch,  // its parameters are not the model's
  crashed,           // a signal; see `detail`
  timed_out,
  out_of_memory,
  rejected,       // a guard: see `detail`
  worker_failed,  // our side
};
std::string_view to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(std::string_view name);

struct Profile;     // eval/profile/profile.h
struct EagerTimes;  // eval/profile/eager_times.h

struct Timing {
  double median_us = 0;
  double low_us = 0;   // 25th percentile
  double high_us = 0;  // 75th percentile
  int samples = 0;
};

// `torch.compile` in one of its modes, which ran the batches that candidate and eager ran.
struct CompiledTiming {
  std::string mode;  // "default", "max-autotune"
  Timing timing;
  double speedup = 0;  // its median by the candidate's
  double speedup_low = 0, speedup_high = 0;
  double compile_s = 0;  // compiling, with warming up: no part of the time
};

// Of a launch-bound program: a call of each side as a CUDA graph, and how long its replay takes.
struct GraphTiming {
  Timing candidate, eager;
  double speedup_low = 0, speedup_high = 0;
  double speedup() const { return candidate.median_us > 0 ? eager.median_us / candidate.median_us : 0; }
};

struct OutputError {  // one output of one trial
  int trial = 0;
  int output = 0;
  double max_abs = 0;        // candidate against the float64 replay
  double max_rel = 0;        // scaled, as docs/verification.md defines it
  double eager_max_abs = 0;  // eager against the same
  double bound = 0;          // what was allowed for max_abs
  std::string where;         // "[3, 17]" of the worst element
  std::string pattern;       // "only the last 24 columns", "every element", ...; empty if correct
  double fraction_wrong = 0;
};

// Of a program whose values are wrong: what one launch of a kernel wrote, held against the values that the model
// computes on the way.
struct StageCheck {
  std::string kernel;
  int line = 0;        // of the program's text; 0: unknown
  int launch = 0;      // among all of the call, from 1 on
  bool right = false;  // it wrote a value of the model
  int node = 0;        // that value's in the model's graph, from 1 on, or the one it comes nearest; 0: none is near
  std::string op;      // "aten::softmax"
  int node_line = 0;   // of the model's text; 0: unknown
  double fraction_wrong = 0;  // of what it wrote, against that node
  std::string pattern;        // of these elements, as in OutputError
};

// How many times as fast a program is as another one that was timed in the same rounds.
struct PairedRatio {
  size_t other = 0;  // its place among the requests of the comparison
  double ratio = 0;
  double low = 0, high = 0;  // 95 % confidence interval
};

// What KernelBench's own rule says beside ours: `allclose` to eager, on inputs from its seed.
struct KernelBenchRule {
  int trials = 0, passed = 0;
  double tolerance = 0;  // absolute and relative
};

// What KernelBench's script would measure: calls on one set of inputs, one by one.
struct KernelBenchTimes {
  double mean_ms = 0, std_ms = 0, min_ms = 0, max_ms = 0;
  int trials = 0;
};
struct KernelBenchTiming {
  KernelBenchTimes eager, candidate;
  double speedup() const { return candidate.mean_ms > 0 ? eager.mean_ms / candidate.mean_ms : 0; }
};

// What the GPU said of itself before, between and after the timed batches. Absent: it did not tell.
struct GpuState {
  std::optional<int> sm_mhz_low, sm_mhz_high;  // while it worked
  std::optional<int> mem_mhz;                  // the lowest
  std::optional<double> power_w;               // the highest
  std::optional<int> temperature;              // the highest, in degrees Celsius
  std::vector<std::string> throttled;          // what held the clocks down: "sw_power_cap", ...
  int samples = 0;
};

struct Verdict {
  Outcome outcome = Outcome::worker_failed;
  std::string detail;                   // one sentence
  std::string target;                   // that it holds for: "cpu", "cuda:sm_90a", ...
  std::string aten;                     // the policy of ATen's operators that it holds under
  std::vector<Diagnostic> diagnostics;  // spans refer to file 0: the candidate
  std::vector<std::string> rendered;    // the same, rendered with carets
  int line = 0;                         // candidate line of a crash, hang or error; 0: unknown
  std::vector<OutputError> errors;      // every output of every trial
  // Of wrong values: the last launch that wrote a value of the model, and the first after it that did not. Empty: the
  // kernels' values are none that can be told apart so, or see notes.
  std::vector<StageCheck> stages;
  std::optional<Timing> candidate, eager;
  std::vector<CompiledTiming> compiled;   // by mode; empty: not asked for, or see notes
  bool launch_bound = false;              // a call takes less time on the GPU than launching kernels does
  std::optional<GraphTiming> graph;       // where it is; absent: not launch-bound, or see notes
  double generated_share = 0;             // share of the candidate's time inside generated kernels
  std::vector<std::string> kernels;       // names of the generated kernels that ran
  std::vector<std::string> notes;         // what a reader of the verdict should know besides
  bool degenerate = false;                // a trivial answer (zeros, a constant, an input) would pass too; see notes
  std::string guard;                      // of `rejected`: the name of the guard that rejected; else empty
  std::map<std::string, int> guards_run;  // how often each guard has looked that does not watch all the time
  // What judging took, by phase; of these, "candidate" is what its process was waited for, "compiling" a part of that.
  std::map<std::string, double> seconds;
  bool given_inputs_only = false;  // right on what `get_inputs` draws, wrong on stress inputs; see notes
  std::optional<uint64_t> seed;    // that its trials were drawn from; told afterwards, and to nobody who is judged
  bool foreign_source = false;     // the program brings source text of its own (`--allow-foreign`)
  std::optional<KernelBenchRule> kernelbench;
  std::optional<KernelBenchTiming> kernelbench_timing;
  std::optional<GpuState> gpu_state;  // of a GPU that was timed on
  // Where a call's time goes; null: not asked for, not verified, or see notes. It decides nothing.
  std::shared_ptr<const Profile> profile;
  // 95 % confidence interval of the speed-up; both 0: not measured.
  double speedup_low = 0, speedup_high = 0;
  std::vector<PairedRatio> paired;  // of a comparison: to each of its other programs that was timed
  double speedup() const { return candidate && eager ? eager->median_us / candidate->median_us : 0; }
  // The faster mode of `torch.compile`; nullptr: none was timed.
  const CompiledTiming* best_compiled() const;
};
nlohmann::json to_json(const Verdict& verdict);
nlohmann::json to_json(const std::vector<PairedRatio>& ratios);
std::vector<PairedRatio> paired_ratios_from_json(const nlohmann::json& list);  // throws json::exception
// May throw what nlohmann::json throws on another shape.
Verdict verdict_from_json(const nlohmann::json& json);

// So many times its limit may a candidate take where the rest is waiting: for the compiler, for a processor.
inline constexpr double kPatience = 10;

struct JudgeOptions {
  std::filesystem::path worker;  // the tilepilot-worker executable
  std::string dtype = "model";   // or fp32, fp16, bf16
  std::string precision;         // fp16 or bf16: outputs need be no better than that; empty: their own element type
  std::string target = "cpu";    // as runtime::parse_target reads it
  std::string aten = "hybrid";   // which operators `forward` may call: none, data, hybrid, any (docs/verification.md)
  int trials = 5;
  std::optional<uint64_t> seed;    // none: secret, from the system's entropy
  double time_limit_s = 120;       // a candidate's own time in all trials; in timing, in one request
  int64_t memory_limit_bytes = 0;  // 0: three quarters of the machine
  int timing_samples = 30;         // at most; fewer when the ratio is known
  double timing_budget_s = 4;
  int threads = 0;                                // 0: as many as PyTorch takes
  bool baseline_compile = false;                  // `torch.compile` takes part in the rounds
  double compile_limit_s = 900;                   // for compiling and warming up one of its modes
  std::string python;                             // the exporter's interpreter, for baseline_compile
  std::filesystem::path exporter;                 // scripts/export_reference.py, for baseline_compile
  std::filesystem::path cache;                    // of compiled kernels; empty: none
  std::function<void(const std::string&)> waits;  // told what the judge waits for before it starts; none: nobody is
  bool kernelbench_timing = false;                // times as KernelBench's script does too; it decides nothing
  bool allow_foreign = false;                     // programs may bring device source of their own; the verdict says so
  // No program is judged: a check's verdict holds what is known of the model, its notes and whether it is degenerate.
  bool reference_only = false;
  // No program is judged, and nothing of the truth is made: only eager_times() is asked for.
  bool eager_only = false;
};

// Errors: `bad_usage`, for numbers that are none, or out of what a judge can keep, and for names that mean nothing.
Status check_options(const JudgeOptions& options);

// Quick: in a fraction of a second. Full: on a GPU kernels are timed by CUPTI too, whose start takes longer.
enum class Profiling { none, quick, full };

struct CheckRequest {
  std::string source;  // the candidate's text
  std::string name = "candidate.py";
  bool time = true;                     // else correctness only
  Profiling profile = Profiling::none;  // of a verified program that was timed: afterwards, in calls of its own
};

// Holds the reference side open between candidates, so that expected values and eager's times are made once.
class Judge {
 public:
  virtual ~Judge() = default;
  // Whether it can judge at all. Without having been asked it finds out with the first check, whose verdict is then
  // `worker_failed`.
  virtual Status ready() { return {}; }
  virtual Verdict check(const CheckRequest& request) = 0;
  // Measures verified programs side by side: samples of all of them and of eager take turns in one session, so that
  // their ratios can be compared. A verdict for each, in order. Unless overridden, each is checked alone.
  virtual std::vector<Verdict> compare(const std::vector<CheckRequest>& finalists);
  // Where candidates run: what `auto` has come to.
  virtual std::string target() const = 0;
  // How long eager takes for each node of the model's graph: a few calls of its own, a second or two in all. Errors:
  // a call takes too long for that; the worker failed.
  virtual Result<EagerTimes> eager_times();
};

// Starts the worker on an exported reference. Errors: the worker is missing or cannot load the reference. The judge
// survives its worker: a worker that dies gives `worker_failed` once, and the next check starts a new one. The worker
// and its candidates end with the thread that opened the judge, however that ends: let one thread open and use it.
Result<std::unique_ptr<Judge>> open_judge(const std::filesystem::path& reference_folder, const JudgeOptions& options);
// The same, but what the worker takes (memory, a GPU, seconds) it takes when something is to be judged; what open_judge
// would find wrong with it, ready() finds. Its options must name a target. Errors: those of the options.
Result<std::unique_ptr<Judge>> judge_on_demand(const std::filesystem::path& reference_folder,
                                               const JudgeOptions& options);

}  // namespace tilepilot::eval
