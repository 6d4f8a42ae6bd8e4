#include "tests/show/pictures.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/driver/compile.h"
#include "compiler/emulator/emulator.h"

namespace tilepilot::show::testing {

Picture shown(const Shown& program) {
  Picture picture{"program.py",
                  program.call,
                  program.target,
                  "import tilelang\nimport tilelang.language as T\n" + program.text,
                  {}};
  SourceMap sources;
  const std::string compiled_for = program.target == "cpu" ? "cpu" : "cuda:" + program.target.substr(8);
  const auto compiled = driver::compile(sources, {picture.file, picture.text, program.call, compiled_for});
  for (const Diagnostic& diagnostic : compiled.diagnostics.items()) ADD_FAILURE() << diagnostic.message;
  if (compiled.programs.size() != 1) {
    ADD_FAILURE() << compiled.programs.size() << " programs";
    return picture;
  }
  ShowOptions options{
      picture.file, picture.call, picture.target, program.block, 0, program.executes, program.extents, {}, {}};
  options.toolchain.cache = TILEPILOT_KERNEL_CACHE;
  options.processor = {"a processor", 1e10, 2e11, 1e11};
  auto kernels = picture_of(compiled.programs[0], sources, options);
  if (!kernels.ok())
    ADD_FAILURE() << kernels.error().message;
  else
    picture.kernels = std::move(*kernels);
  return picture;
}

int line_of(const Picture& picture, const std::string& comment) {
  const size_t at = picture.text.find("# " + comment);
  if (at == std::string::npos) return 0;
  return 1 +
         static_cast<int>(std::count(picture.text.begin(), picture.text.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

const RegisterTile& registers_of(const Picture& picture, const std::string& name) {
  for (const KernelPicture& kernel : picture.kernels)
    for (const RegisterTile& tile : kernel.registers)
      if (tile.name == name) return tile;
  throw std::runtime_error("no tile " + name + " in registers");
}

const SharedPicture& shared_of(const Picture& picture, const std::string& name) {
  for (const KernelPicture& kernel : picture.kernels)
    for (const SharedPicture& tile : kernel.shared)
      if (tile.name == name) return tile;
  throw std::runtime_error("no tile " + name + " in shared memory");
}

std::string product(const std::string& tiles, int stages, int threads) {
  return fmt::format(R"(
def program(M=1024, N=1024, K=512):
    m, n, k = {}
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // n, M // m, threads={}) as (bx, by):
            a = T.alloc_shared((m, k), "float16")
            b = T.alloc_shared((n, k), "float16")
            c = T.alloc_fragment((m, n), "float32")
            T.clear(c)
            for s in T.Pipelined(K // k, num_stages={}):
                T.copy(A[by * m, s * k], a)  # a
                T.copy(B[bx * n, s * k], b)  # b
                T.gemm(a, b, c, transpose_B=True)  # gemm
            T.copy(c, C[by * m, bx * n])  # store
    return main
)",
                     tiles, threads, stages);
}

}  // namespace tilepilot::show::testing
