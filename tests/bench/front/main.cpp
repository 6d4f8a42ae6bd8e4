// The front end's speed: megabytes of source parsed in a second, and milliseconds to stage a factory's program. Prints
// a row for each, with the figure that it has to reach, and fails if one does not.
// usage: bench_front [--parse-only]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>

#include "compiler/diagnostics/render.h"
#include "compiler/driver/compile.h"
#include "compiler/stage/python/interpreter.h"
#include "compiler/stage/tile/tile.h"
#include "compiler/syntax/parser.h"

namespace tilepilot {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(const std::function<void()>& body) {
  auto begin = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The least of several runs: what it takes when nothing else disturbs.
double least(int rounds, const std::function<double()>& run) {
  double best = run();
  for (int i = 1; i < rounds; ++i) best = std::min(best, run());
  return best;
}

bool row(std::string_view what, double value, std::string_view unit, bool reached) {
  fmt::print("{:<44} {:>9.3f} {:<6} {}\n", what, value, unit, reached ? "ok" : "TOO SLOW");
  return reached;
}

// The programs of the repository, several times over.
std::string programs_text(size_t bytes) {
  std::string once;
  for (const char* folder : {"seeds", "examples", "tests/programs"})
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(TILEPILOT_SOURCE_DIR) + "/" + folder)) {
      if (entry.path().extension() != ".py") continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      once += text.str() + "\n";
    }
  std::string all;
  while (all.size() < bytes) all += once;
  return all;
}

bool parsing() {
  constexpr double kWanted = 20;
  const std::string text = programs_text(4'000'000);
  double time = least(7, [&] {
    SourceMap sources;
    DiagnosticList diagnostics;
    const int32_t file = sources.add("programs.py", text);
    syntax::ModuleRef tree;
    double parse_time = seconds([&] { tree = syntax::parse(sources, file, diagnostics); });
    if (!tree) fmt::print("{}\n", render(sources, diagnostics));
    return parse_time;
  });
  const double speed = static_cast<double>(text.size()) / 1e6 / time;
  return row("parse the repository's programs", speed, "MB/s", speed >= kWanted);
}

constexpr std::string_view kFactory = R"(
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return main
)";

bool staging() {
  constexpr double kWanted = 2;
  SourceMap sources;
  DiagnosticList diagnostics;
  int programs = 0;
  stage::Interpreter interpreter(sources);
  stage::TileOptions options;
  options.on_program = [&](const ir::Program&) { ++programs; };
  stage::install_tile_language(interpreter, std::move(options));
  auto tree = syntax::parse(sources, sources.add("factory.py", std::string(kFactory)), diagnostics);
  auto module = interpreter.run_module(tree, "factory");
  if (!module.ok()) {
    fmt::print("{}\n", render(sources, module.error()));
    return false;
  }
  const stage::Value factory = *(*module)->members.find(stage::Name("matmul"));
  int64_t size = 1024;
  // Sizes differ, so that nothing is found in a cache.
  double time = least(200, [&] {
    stage::CallArgs args;
    size += 128;
    args.positional = {size, size, size, 128, 128, 32};
    return seconds([&] {
      auto kernel = interpreter.call(factory, std::move(args));
      if (!kernel.ok()) fmt::print("{}\n", render(sources, kernel.error()));
    });
  });
  if (programs < 200) return row("programs staged", programs, "of 200", false);
  return row("stage a gemm factory", time * 1e3, "ms", time * 1e3 <= kWanted);
}

bool whole_compilation() {
  driver::CompileRequest request;
  request.name = "factory.py";
  request.text = kFactory;
  request.call = "matmul(1024, 1024, 1024, 128, 128, 32)";
  double time = least(50, [&] {
    return seconds([&] {
      SourceMap sources;
      if (driver::compile(sources, request).programs.size() != 1) fmt::print("staged nothing\n");
    });
  });
  return row("parse and stage it in a fresh interpreter", time * 1e3, "ms", true);
}

}  // namespace
}  // namespace tilepilot

int main(int count, char** arguments) {
  const bool parse_only = count > 1 && std::string_view(arguments[1]) == "--parse-only";
  bool good = tilepilot::parsing();
  if (!parse_only) {
    good = tilepilot::staging() && good;
    good = tilepilot::whole_compilation() && good;
  }
  return good ? 0 : 1;
}
