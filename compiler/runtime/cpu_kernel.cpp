#include <mutex>
#include <new>

#include "compiler/passes/pipeline.h"
#include "compiler/runtime/arguments.h"
#include "compiler/runtime/kernel.h"
#include "compiler/targets/cpu/codegen.h"
#include "compiler/targets/cpu/supported.h"

namespace tilepilot::runtime {
namespace {

using LaunchFunction = void (*)(void* const* buffers, const int64_t* scalars, int64_t first_block, int64_t last_block,
                                void* scratch);

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
    if (free_.empty()) return ::operator new(bytes_, kAlignment);
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
  size_t bytes_;
  std::mutex mutex_;
  std::vector<void*> free_;
};

struct Launch {
  LaunchFunction function;
  std::unique_ptr<ScratchPool> scratch;
};

class CpuKernel : public CompiledKernel {
 public:
  CpuKernel(ir::Program program, std::string source, std::shared_ptr<SharedLibrary> library)
      : program_(std::move(program)), source_(std::move(source)), library_(std::move(library)) {}

  // False if the library lacks a launch.
  bool link(const std::vector<int64_t>& scratch_bytes) {
    for (size_t k = 0; k < scratch_bytes.size(); ++k) {
      void* symbol = library_->symbol("tp_launch_" + std::to_string(k));
      if (symbol == nullptr) return false;
      launches_.push_back({reinterpret_cast<LaunchFunction>(symbol), std::make_unique<ScratchPool>(scratch_bytes[k])});
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
      const int64_t blocks = count_blocks(program_.kernels[k], bound);
      const Launch& launch = launches_[k];
      const auto run = [&](int64_t first, int64_t last) {
        void* scratch = launch.scratch->take();
        launch.function(bound.buffers.data(), bound.scalars.data(), first, last, scratch);
        launch.scratch->give_back(scratch);
      };
      if (blocks == 1)
        run(0, 1);
      else if (blocks > 1)
        parallel_for(blocks, run);
    }
    return {};
  }

  const ir::Program& program() const override { return program_; }
  const std::string& source() const override { return source_; }

 private:
  ir::Program program_;
  std::string source_;
  std::shared_ptr<SharedLibrary> library_;
  std::vector<Launch> launches_;

  struct Release {
    void operator()(void* memory) const { ::operator delete(memory, kAlignment); }
  };
  using Workspace = std::unique_ptr<void, Release>;

  static Workspace allocate(const ir::BufferData& buffer, const BoundArguments& bound) {
    int64_t bytes = buffer.type.bytes();
    for (const ir::Expr& extent : buffer.shape) bytes *= std::max<int64_t>(0, evaluate(extent, bound.values));
    return Workspace(::operator new(static_cast<size_t>(bytes), kAlignment));
  }

  static int64_t count_blocks(const ir::Kernel& kernel, const BoundArguments& bound) {
    int64_t blocks = 1;
    for (const ir::Expr& extent : kernel.grid) blocks *= std::max<int64_t>(0, evaluate(extent, bound.values));
    return blocks;
  }
};

class CpuBackend : public KernelBackend {
 public:
  explicit CpuBackend(ToolchainOptions options) : toolchain_(std::move(options)) {}

  Result<std::shared_ptr<CompiledKernel>> compile(const ir::Program& program, DiagnosticList& warnings) override {
    TRY(targets::cpu::check_supported(program));
    const ir::Program lowered = TRY(passes::run_pipeline(program));
    targets::cpu::GeneratedCode code = TRY(targets::cpu::generate(lowered));
    auto library = TRY(toolchain_.load(targets::cpu::prelude() + code.source, warnings));
    auto kernel = std::make_shared<CpuKernel>(program, std::move(code.source), std::move(library));
    if (!kernel->link(code.scratch_bytes))
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
