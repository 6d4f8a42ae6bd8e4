// bench_cpu [--one-thread] [BMxBNxBK ...]: CPU kernels against LibTorch, alternating, on LibTorch's threads. Prints
// times in milliseconds (least and median of the rounds), the ratio LibTorch / ours, and how long kernels take to load.
// With
// --one-thread, processor time of one thread: the figure for a machine that others use too.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/softmax.h>
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "compiler/ir/text/text.h"
#include "compiler/runtime/kernel.h"
#include "eval/torch/threads.h"
#include "programs.h"

namespace tilepilot::bench {
namespace {

double read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

template <class F>
double timed(const F& work, clockid_t clock = CLOCK_MONOTONIC) {
  const double start = read_clock(clock);
  work();
  return read_clock(clock) - start;
}

struct Samples {
  std::vector<double> times;
  double least() const { return *std::min_element(times.begin(), times.end()); }
  double median() {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
  }
};

runtime::TensorView view(const at::Tensor& tensor, ir::DType type) {
  return {tensor.data_ptr(), type, tensor.sizes().vec(), tensor.strides().vec()};
}

class Benchmark {
 public:
  Benchmark(std::filesystem::path cache, bool one_thread)
      : options_{"", std::move(cache), {}}, clock_(one_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) {}

  template <class F>
  void compare(const std::string& name, const std::string& text, const std::vector<at::Tensor>& tensors,
               const F& reference, const char* other = "LibTorch") {
    const auto kernel = load(text);
    if (kernel == nullptr) return;
    std::vector<runtime::Argument> arguments;
    for (const at::Tensor& tensor : tensors)
      arguments.emplace_back(view(tensor, tensor.scalar_type() == at::kHalf       ? ir::kFloat16
                                          : tensor.scalar_type() == at::kBFloat16 ? ir::kBFloat16
                                                                                  : ir::kFloat32));
    Samples ours, theirs;
    for (int round = 0; round < 30; ++round) {
      const double t = timed([&] { reference(); }, clock_);
      const double o = timed([&] { (void)kernel->launch(arguments, eval::libtorch_threads(), {}); }, clock_);
      if (round < 3) continue;
      ours.times.push_back(o);
      theirs.times.push_back(t);
    }
    fmt::print("{:44} ours {:8.3f} {:8.3f}  {} {:8.3f} {:8.3f}  ratio {:.2f} {:.2f}\n", name, ours.least(),
               ours.median(), other, theirs.least(), theirs.median(), theirs.least() / ours.least(),
               theirs.median() / ours.median());
  }

  std::shared_ptr<runtime::CompiledKernel> load(const std::string& text) {
    SourceMap sources;
    DiagnosticList diagnostics;
    const auto program = ir::read_text(sources, sources.add("bench.ir", text), diagnostics);
    if (!program) fmt::print("{}\n", diagnostics.items().front().message);
    if (!program) return nullptr;
    auto kernel = runtime::cpu_backend(options_)->compile(*program, diagnostics);
    if (!kernel.ok()) fmt::print("{}\n", kernel.error().message);
    return kernel.ok() ? *kernel : nullptr;
  }

 private:
  runtime::ToolchainOptions options_;
  clockid_t clock_;
};

void gemms(Benchmark& benchmark, const std::vector<GemmTiles>& tiles) {
  for (const int64_t n : {1024, 2048})
    for (const bool transposed : {false, true}) {
      const at::Tensor a = at::rand({n, n}), b = at::rand({n, n}), c = at::empty_like(a);
      at::Tensor out = at::empty_like(a);
      for (const GemmTiles& t : tiles)
        benchmark.compare(fmt::format("gemm {}^3 {} tiles {}x{}x{}", n, transposed ? "[N,K]" : "[K,N]", t.m, t.n, t.k),
                          gemm_program({n, n, n, transposed}, t), {a, b, c},
                          [&] { at::mm_out(out, a, transposed ? b.t() : b); });
    }
}

void softmaxes(Benchmark& benchmark) {
  const at::Tensor x = at::rand({4096, 4096}), y = at::empty_like(x);
  at::Tensor out = at::empty_like(x);
  for (const int64_t rows : {1, 4, 16})
    benchmark.compare(fmt::format("softmax 4096x4096, {} rows a block", rows), softmax_program(4096, 4096, rows),
                      {x, y}, [&] { at::softmax_out(out, x, -1); });
}

std::vector<at::Tensor> tensors_of(const ThreadsAndTiles& program) {
  using Kind = ThreadsAndTiles::Kind;
  const at::ScalarType type = program.is_half ? at::kHalf : at::kFloat;
  std::vector<at::Tensor> tensors;
  for (const std::vector<int64_t>& shape : program.shapes) tensors.push_back(at::rand(shape).to(type));
  if (program.kind == Kind::shapes) return tensors;
  const at::Tensor x = at::rand({program.rows, program.columns}).to(type);
  if (program.kind == Kind::product) return {x, at::rand_like(x), at::empty_like(x)};
  return {x, program.kind == Kind::sums ? at::empty({program.rows}) : at::empty_like(x)};
}

// Beside the same written with tile operators instead of LibTorch.
void simt(Benchmark& benchmark) {
  for (const ThreadsAndTiles& program : threads_and_tiles()) {
    const std::vector<at::Tensor> tensors = tensors_of(program);
    const auto tiles = benchmark.load(program.tiles);
    if (tiles == nullptr) continue;
    std::vector<runtime::Argument> arguments;
    for (const at::Tensor& tensor : tensors)
      arguments.emplace_back(view(tensor, program.is_half ? ir::kFloat16 : ir::kFloat32));
    benchmark.compare(
        program.name, program.threads, tensors, [&] { (void)tiles->launch(arguments, eval::libtorch_threads(), {}); },
        "tiles");
  }
}

void loading(const std::filesystem::path& cache) {
  for (const auto& [name, text] : {std::pair("gemm", gemm_program({1024, 1024, 1024, true}, {256, 256, 256})),
                                   std::pair("softmax", softmax_program(4096, 4096, 1))}) {
    std::filesystem::remove_all(cache);
    const double first = timed([&, t = text] { Benchmark(cache, false).load(t); });
    const double again = timed([&, t = text] { Benchmark(cache, false).load(t); });
    fmt::print("{:44} text to loaded {:8.1f}  from the cache {:8.2f}\n", name, first, again);
  }
}

}  // namespace
}  // namespace tilepilot::bench

int main(int argc, char** argv) {
  using namespace tilepilot::bench;
  const auto cache = std::filesystem::temp_directory_path() / "tilepilot-bench";
  std::vector<GemmTiles> tiles;
  bool one_thread = false;
  for (int k = 1; k < argc; ++k) {
    one_thread = one_thread || std::string_view(argv[k]) == "--one-thread";
    GemmTiles t{};
    if (std::sscanf(argv[k], "%ldx%ldx%ld", &t.m, &t.n, &t.k) == 3) tiles.push_back(t);
  }
  if (tiles.empty()) tiles = {{256, 256, 256}, {512, 512, 256}};
  loading(cache);
  if (one_thread) at::set_num_threads(1);
  Benchmark benchmark(cache, one_thread);
  simt(benchmark);
  softmaxes(benchmark);
  gemms(benchmark, tiles);
  std::filesystem::remove_all(cache);
}
