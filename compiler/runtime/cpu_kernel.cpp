#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <random>

#include "compiler/passes/grid_sync.h"
#include "compiler/passes/iterations/iteration_races.h"
#include "compiler/passes/pipeline.h"
#include "compiler/runtime/arguments.h"
#include "compiler/runtime/kernel.h"
#include "compiler/runtime/separate_blocks.h"
#include "compiler/targets/cpu/codegen.h"
#include "compiler/targets/cpu/supported.h"

namespace tilepilot::runtime {
namespace {

using targets::c::RuntimeCheck;
using targets::cpu::LaunchEvents;
using LaunchFunction = void (*)(void* const* buffers, const int64_t* scalars, int64_t first_block, int64_t last_block,
                                void* scratch, LaunchEvents* events);

constexpr std::align_val_t kAlignment{64};

// Memory for tiles, kept between launches: one piece for each thread that ran at once.
class ScratchPool {
 public:
  explicit ScratchPool(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {}
  ~ScratchPool() {
    for (void* piece : free_) ::operator delete(piece, kAlignment);
  }
  ScratchPool(const ScratchPool&) = delete;

  void* take() {
    if (bytes_ == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return fresh();
    void* piece = free_.back();
    free_.pop_back();
    return piece;
  }
  void give_back(void* piece) {
    if (piece == nullptr) return;
    const std::lock_guard lock(mutex_);
    free_.push_back(piece);
  }

 private:
  // Tiles that a program reads before it has written them hold numbers, not the zeros of new memory that hide it.
  void* fresh() const {
    void* piece = ::operator new(bytes_, kAlignment);
    constexpr uint64_t kFiniteInEveryType = 0xFBFBFBFBFBFBFBFB;
    std::mt19937_64 random(std::random_device{}());
    for (size_t at = 0; at < bytes_; at += sizeof(uint64_t)) {
      const uint64_t word = random() & kFiniteInEveryType;
      std::memcpy(static_cast<char*>(piece) + at, &word, std::min(sizeof word, bytes_ - at));
    }
    return piece;
  }

  size_t bytes_;
  std::mutex mutex_;
  std::vector<void*> free_;
};

struct Launch {
  LaunchFunction function;
  std::unique_ptr<ScratchPool> scratch;
  std::vector<RuntimeCheck> checks;
  std::vector<targets::c::ScalarCode> scalar_code;
  std::vector<ir::Expr> grid;            // of the kernel that it launches, after the passes
  int64_t operations;                    // of a block, at most
  Span kernel;                           // of the tile program
  std::vector<size_t> changed_in_place;  // global buffers
  int64_t last_blocks = 0;               // of the last launch

  // Waking threads takes microseconds, in which one thread does as much.
  bool is_worth_threads(int64_t blocks) const {
    constexpr int64_t kFewest = 1 << 15;
    return blocks > 1 && operations > kFewest / blocks;
  }
};

// What the pieces of one launch tell. Which of several failures counts does not depend on who is faster.
class Outcome {
 public:
  static void print(void* outcome, int64_t block, const char* text) {
    auto* self = static_cast<Outcome*>(outcome);
    const std::lock_guard lock(self->mutex_);
    self->printed_[block] += text;
  }
  // In the order of blocks.
  std::string printed() const {
    std::string all;
    for (const auto& [block, text] : printed_) all += text;
    return all;
  }
  void add(const LaunchEvents& events) {
    if (events.failed == 0) return;
    const std::lock_guard lock(mutex_);
    if (first_.failed == 0 || events.block < first_.block) first_ = events;
  }
  Status status(const std::vector<RuntimeCheck>& checks, Span call) const {
    if (first_.failed == 0) return {};
    const RuntimeCheck& check = checks[static_cast<size_t>(first_.failed - 1)];
    Error error = make_error(check.kind, check.span, fmt::format("{} (block {})", check.message, first_.block));
    static const std::string kLaunched =
        "the kernel is launched here";  // a literal here makes GCC 12 see faults in its library
    error->note(call, kLaunched);
    return error;
  }

 private:
  std::mutex mutex_;
  LaunchEvents first_;
  std::map<int64_t, std::string> printed_;
};

class CpuKernel : public CompiledKernel {
 public:
  CpuKernel(ir::Program program, std::string source, std::shared_ptr<SharedLibrary> library)
      : program_(std::move(program)), source_(std::move(source)), library_(std::move(library)) {}

  // False if the library lacks a launch.
  bool link(const targets::cpu::GeneratedCode& code) {
    for (size_t k = 0; k < code.scratch_bytes.size(); ++k) {
      void* symbol = library_->symbol("tp_launch_" + std::to_string(k));
      if (symbol == nullptr) return false;
      auto scratch = std::make_unique<ScratchPool>(code.scratch_bytes[k]);
      launches_.push_back({reinterpret_cast<LaunchFunction>(symbol), std::move(scratch), code.checks[k],
                           code.scalar_code[k], code.grids[k], code.operations[k], code.kernels[k],
                           changed_in_place(program_, program_.kernels[k])});
    }
    return true;
  }

  Status launch(const std::vector<Argument>& arguments, const ParallelFor& parallel_for, Span span) override {
    BoundArguments bound = TRY(bind_arguments(program_, arguments, span));
    std::vector<Workspace> workspaces;
    for (const ir::Buffer& buffer : program_.workspaces) {
      workspaces.push_back(allocate(*buffer, bound));
      bound.buffers.push_back(workspaces.back().get());
    }
    for (size_t k = 0; k < launches_.size(); ++k) {
      Launch& launch = launches_[k];
      const int64_t blocks = count_blocks(launch.grid, bound);
      std::atomic_ref(launch.last_blocks).store(blocks, std::memory_order_relaxed);
      Outcome outcome;
      std::optional<SeparateBlocks> separate;
      if (order_ == BlockOrder::last_to_first)
        separate.emplace(program_, launch.changed_in_place, bound, blocks, left_to_copy_);
      const auto run = [&](int64_t first, int64_t last) {
        void* scratch = launch.scratch->take();
        LaunchEvents events{0, 0, &outcome, Outcome::print};
        const auto call = [&](void* const* buffers, int64_t begin, int64_t end) {
          launch.function(buffers, bound.scalars.data(), begin, end, scratch, &events);
        };
        const auto backwards = [&](void* const* buffers, int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) call(buffers, blocks - 1 - k, blocks - k);
        };
        if (order_ == BlockOrder::first_to_last) {
          call(bound.buffers.data(), first, last);
        } else if (separate->copies()) {
          separate->run(first, last, backwards);
        } else {
          backwards(bound.buffers.data(), first, last);
        }
        launch.scratch->give_back(scratch);
        outcome.add(events);
      };
      if (observer_) observer_->begin_kernel(k);
      if (launch.is_worth_threads(blocks))
        parallel_for(blocks, run);
      else if (blocks > 0)
        run(0, blocks);
      if (observer_) observer_->end_kernel(k);
      keep_printed(outcome.printed());
      TRY(outcome.status(launch.checks, span));
    }
    return {};
  }

  void set_block_order(BlockOrder order) override { order_ = order; }
  void set_observer(LaunchObserver* observer) override { observer_ = observer; }
  std::vector<LaunchFacts> facts() const override {
    std::vector<LaunchFacts> all;
    for (const Launch& launch : launches_) {
      all.push_back({launch.kernel, "", launch.last_blocks, launch.is_worth_threads(launch.last_blocks)});
      for (const RuntimeCheck& check : launch.checks) all.back().checks.push_back(check.span);
      for (const targets::c::ScalarCode& code : launch.scalar_code)
        all.back().scalar.push_back({code.span, code.what, code.why});
    }
    return all;
  }
  std::string take_printed() override {
    if (!has_printed_.exchange(false)) return {};
    const std::lock_guard lock(mutex_);
    return std::exchange(printed_, {});
  }
  const ir::Program& program() const override { return program_; }
  const std::string& source() const override { return source_; }

 private:
  ir::Program program_;
  std::string source_;
  std::shared_ptr<SharedLibrary> library_;
  std::vector<Launch> launches_;
  BlockOrder order_ = BlockOrder::first_to_last;
  // Bytes, of all launches together: of many in a row those that come later run as they do otherwise.
  std::atomic<int64_t> left_to_copy_{int64_t{1} << 29};
  LaunchObserver* observer_ = nullptr;
  std::mutex mutex_;  // guards what follows
  std::string printed_;
  std::atomic<bool> has_printed_{false};

  void keep_printed(const std::string& text) {
    if (text.empty()) return;
    const std::lock_guard lock(mutex_);
    printed_ += text;
    has_printed_ = true;
  }

  struct Release {
    void operator()(void* memory) const { ::operator delete(memory, kAlignment); }
  };
  using Workspace = std::unique_ptr<void, Release>;

  static Workspace allocate(const ir::BufferData& buffer, const BoundArguments& bound) {
    int64_t bytes = buffer.type.bytes();
    for (const ir::Expr& extent : buffer.shape) bytes *= std::max<int64_t>(0, evaluate(extent, bound.values));
    return Workspace(::operator new(static_cast<size_t>(bytes), kAlignment));
  }

  static int64_t count_blocks(const std::vector<ir::Expr>& grid, const BoundArguments& bound) {
    int64_t blocks = 1;
    for (const ir::Expr& extent : grid) blocks *= std::max<int64_t>(0, evaluate(extent, bound.values));
    return blocks;
  }
};

class CpuBackend : public KernelBackend {
 public:
  explicit CpuBackend(ToolchainOptions options) : toolchain_(std::move(options)) {}

  Result<std::shared_ptr<CompiledKernel>> compile(const ir::Program& given, DiagnosticList& warnings) override {
    TRY(targets::cpu::check_supported(given));
    targets::cpu::announce_ignored(given, warnings);
    for (Diagnostic& warning : passes::race_warnings(given)) warnings.add(std::move(warning));
    const ir::Program program = TRY(passes::grid_sync(given));  // launches give memory to its workspaces, too
    const ir::Program lowered = TRY(passes::run_pipeline(program));
    targets::cpu::GeneratedCode code = TRY(targets::cpu::generate(lowered));
    auto library = TRY(toolchain_.load(targets::cpu::prelude() + code.source, warnings));
    auto kernel = std::make_shared<CpuKernel>(program, code.source, std::move(library));
    if (!kernel->link(code))
      return make_error(DiagnosticKind::load_failed, program.span,
                        "the compiled kernel of `" + program.name + "` lacks a launch function");
    return kernel;
  }

 private:
  Toolchain toolchain_;
};

}  // namespace

std::unique_ptr<KernelBackend> cpu_backend(ToolchainOptions options) {
  return std::make_unique<CpuBackend>(std::move(options));
}

}  // namespace tilepilot::runtime
