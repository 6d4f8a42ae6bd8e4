// Random programs compute what the interpreter does, through the backend of each target that the GPU runs, or where
// there is none through those of the emulator.
//
// To the last bit: the interpreter rounds after each operation, so products and sums must not be fused here; sums that
// machines take in orders of their own, of reductions, tensor cores and atomic updates, are of small whole numbers and
// exact in any order. Only functions like `exp` have no value that all machines agree on. They come last, from exact
// arguments, so that a difference in the last place cannot choose another branch or element; those results may be some
// units in the last place from the C library's (random_arguments.cpp).
//
// TILEPILOT_ROUNDS asks for another number of programs, TILEPILOT_FIRST_SEED for others, and TILEPILOT_REPORTS names a
// folder for the texts of programs that differ.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

#include "compiler/emulator/backend.h"
#include "compiler/interpret/memory.h"
#include "compiler/runtime/cuda/cuda_kernel.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/cuda/nvrtc_fixture.h"
#include "tests/ir/random_arguments.h"
#include "tests/ir/random_program.h"
#include "tests/rounds.h"

namespace tilepilot::testing {
namespace {

using ir::testing::RandomArguments;
using targets::gpu::Architecture;

constexpr int kSeedsInARow = 20;  // for one target
constexpr auto kLongestLaunch = std::chrono::seconds(30);

// A launch that does not end would end the whole run without a word of who it was.
class Watch {
 public:
  Watch() : thread_([this] { run(); }) {}
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  // Empty: nothing is watched.
  void set(std::string what) {
    {
      const std::lock_guard lock(mutex_);
      what_ = std::move(what);
      ++number_;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  int number_ = 0;
  bool ended_ = false;
  std::thread thread_;

  void run() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      const int seen = number_;
      const bool goes_on = changed_.wait_for(lock, kLongestLaunch, [&] { return ended_ || number_ != seen; });
      if (goes_on || what_.empty()) continue;
      fmt::print(stderr, "{} does not end\n", what_);
      std::_Exit(EXIT_FAILURE);
    }
  }
};

int64_t bytes_of_view(const interpret::View& view) {
  int64_t last = 0;
  for (size_t axis = 0; axis < view.shape.size(); ++axis) last += (view.shape[axis] - 1) * view.strides[axis];
  return static_cast<int64_t>(interpret::bytes_of(view.type, last + 1));
}

class GpuPrograms : public GpuTest {
 protected:
  void compare(uint32_t seed) {
    const ir::testing::RandomOptions random_options{4, 3, seed % 3 != 0, true};
    const ir::Program program = ir::testing::RandomProgram(seed, random_options).program();
    const RandomArguments expected(program, seed), actual(program, seed);
    interpret::Options options;
    options.steps = 200'000;
    if (const auto fault = interpret::run(program, expected.values(), options)) {
      EXPECT_EQ(fault->kind, interpret::FaultKind::budget_exceeded) << "seed " << seed << ": " << fault->message;
      ++endless_;
      return;
    }
    const bool newer = has(90) && seed / kSeedsInARow % 2 != 0;
    DiagnosticList warnings;
    const auto kernel = (newer ? *newer_ : *older_).compile(program, warnings);
    if (!kernel.ok()) return not_compiled(seed, kernel.error());
    const std::lock_guard lock(one_at_a_time_);
    if (lost_) return;
    const std::string name = fmt::format("seed {}, {}:{}", seed, is_emulated() ? "emulate" : "cuda", target_of(newer));
    if (!is_emulated()) watch_.set(name);
    const Status status = launch(**kernel, actual);
    watch_.set("");
    if (!status.ok()) return not_launched(seed, name, status.error());
    ++compared_;
    const std::string difference = first_difference(expected, actual);
    if (!difference.empty())
      report(seed, program, **kernel,
             fmt::format("{}: differs from the interpreter: {}\n{}", name, difference,
                         emulated(seed, program, newer ? Architecture::sm_90a : Architecture::sm_80)));
  }

  std::atomic<int> compared_ = 0, refused_ = 0, endless_ = 0;
  std::atomic<bool> lost_ = false;  // the device takes no more launches

  static bool is_emulated() { return device() == nullptr; }

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    older_ = backend(false);
    if (has(90)) newer_ = backend(true);
  }

 private:
  static constexpr int kMostEmulated = 5;  // of those that differ

  std::unique_ptr<runtime::KernelBackend> older_, newer_;
  std::mutex one_at_a_time_;  // guards the device and what follows
  Watch watch_;
  int emulated_ = 0;

  static const char* target_of(bool newer) { return newer ? "sm_90a" : "sm_80"; }

  // Without a cache: nobody asks for these programs again.
  static std::unique_ptr<runtime::KernelBackend> backend(bool newer) {
    if (is_emulated()) return emulator::emulator_backend(newer ? Architecture::sm_90a : Architecture::sm_80, {});
    runtime::cuda::CudaOptions options;
    options.nvrtc = nvrtc_options();
    options.nvrtc.cache.clear();
    options.nvrtc.extra_flags = {"-fmad=false"};
    options.waits = true;
    options.architecture = target_of(newer);
    return runtime::cuda::cuda_backend(options);
  }

  void not_compiled(uint32_t seed, const Diagnostic& error) {
    if (error.kind == DiagnosticKind::compiler_failed || error.kind == DiagnosticKind::load_failed)
      ADD_FAILURE() << "seed " << seed << ": " << render(error);
    else
      ++refused_;
  }

  // Arrays of all threads that could run at once may be more than there is.
  void not_launched(uint32_t seed, const std::string& name, const Diagnostic& error) {
    const std::string text = render(error);
    if (text.find("OUT_OF_MEMORY") != std::string::npos) {
      ++refused_;
      return;
    }
    lost_ = true;
    ADD_FAILURE() << name << ": " << text
                  << "\nit takes no more launches; go on with TILEPILOT_FIRST_SEED=" << seed + 1;
  }

  static Status launch(runtime::CompiledKernel& kernel, const RandomArguments& arguments) {
    std::vector<runtime::Argument> given = to_launch(arguments.values());
    std::vector<Memory> copies;
    for (size_t k = 0; k < given.size(); ++k) {
      const auto* view = std::get_if<interpret::View>(&arguments.values()[k]);
      if (view == nullptr) continue;
      copies.push_back(copy_in(view->data, static_cast<size_t>(bytes_of_view(*view))));
      std::get<runtime::TensorView>(given[k]).data = copies.back().data();
    }
    TRY(kernel.launch(given, {}, {}));
    size_t next = 0;
    for (const interpret::Argument& argument : arguments.values())
      if (const auto* view = std::get_if<interpret::View>(&argument))
        copy_out(view->data, copies[next++], static_cast<size_t>(bytes_of_view(*view)));
    return {};
  }

  // Whether the emulator computes the same: then the fault is not in what the code says, but in how the GPU does it.
  std::string emulated(uint32_t seed, const ir::Program& program, Architecture architecture) {
    if (is_emulated() || ++emulated_ > kMostEmulated) return "";
    EmulatedBatch batch(architecture);
    if (!batch.add(program).ok()) return "";
    batch.compile();
    const RandomArguments expected(program, seed), actual(program, seed);
    interpret::run(program, expected.values());
    std::string wrong = batch.run(0, to_launch(actual.values()));
    if (wrong.empty()) wrong = first_difference(expected, actual);
    return wrong.empty() ? "the emulator agrees with the interpreter\n" : "the emulator: " + wrong + "\n";
  }

  static void report(uint32_t seed, const ir::Program& program, const runtime::CompiledKernel& kernel,
                     const std::string& what) {
    const std::string texts = ir::to_text(program) + kernel.source();
    const char* folder = std::getenv("TILEPILOT_REPORTS");
    if (folder != nullptr) std::ofstream(fmt::format("{}/{}.txt", folder, seed)) << what << texts;
    ADD_FAILURE() << what << (folder != nullptr ? "" : texts);
  }
};

TEST_F(GpuPrograms, AgreeWithTheInterpreter) {
  const int count = from_environment("TILEPILOT_ROUNDS", is_emulated() ? rounds(40) : 100);
  const int first = from_environment("TILEPILOT_FIRST_SEED", 0);
  std::atomic<int> next = 0;
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); ++k)
    threads.emplace_back([&] {
      for (int number = next++; number < count && !lost_; number = next++)
        compare(static_cast<uint32_t>(first + number));
    });
  for (std::thread& thread : threads) thread.join();
  fmt::print("{} programs: {} compared, {} too long, {} refused\n", count, compared_.load(), endless_.load(),
             refused_.load());
  EXPECT_GT(compared_, count * 3 / 4);
}

}  // namespace
}  // namespace tilepilot::testing
