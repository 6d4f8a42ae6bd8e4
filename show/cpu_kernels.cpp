#include <fmt/format.h>

#include "compiler/ir/search.h"
#include "compiler/passes/pipeline.h"
#include "compiler/targets/cpu/codegen.h"
#include "show/execution.h"
#include "show/kernels.h"
#include "show/roofline.h"

namespace tilepilot::show {
namespace {

// Loops over tiles, and what became of them.
void add_loops(const ir::Kernel& kernel, const std::vector<targets::c::ScalarCode>& scalar, const std::string& file,
               const SourceMap& sources, KernelPicture& picture) {
  for (const targets::c::ScalarCode& code : scalar)
    picture.choices.push_back({line_in(file, sources, code.span), code.what, "one element at a time", {code.why}});
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        if (!ir::as<ir::For>(stmt) || ir::as<ir::For>(stmt)->kind != ir::LoopKind::parallel) return;
        const int line = line_in(file, sources, stmt->span);
        for (const ChoicePicture& other : picture.choices)
          if (other.line == line) return;
        picture.choices.push_back({line, "loop over elements", "vectors", {}});
      },
      [](const ir::Expr&) {});
}

}  // namespace

Result<std::vector<KernelPicture>> cpu_pictures(const ir::Program& program, const SourceMap& sources,
                                                const ShowOptions& options) {
  const ir::Program lowered = TRY(passes::run_pipeline(program, {.verify_after_each = true, .observer = {}}));
  const targets::cpu::GeneratedCode code = TRY(targets::cpu::generate(lowered));
  const ir::VarRanges values = values_of(program, options.extents);
  std::vector<KernelPicture> pictures;
  for (size_t k = 0; k < code.grids.size(); ++k) {
    KernelPicture picture;
    picture.name = code.grids.size() == 1 ? program.name : fmt::format("{}, kernel {}", program.name, k);
    picture.line = line_in(options.file, sources, code.kernels[k]);
    int64_t blocks = 1;
    for (const ir::Expr& extent : code.grids[k]) blocks *= std::max<int64_t>(0, ir::bounds(extent, values).lo);
    picture.facts = {fmt::format("{} blocks, each by one thread of the processor", blocks),
                     fmt::format("{} bytes of scratch memory a thread", code.scratch_bytes[k])};
    picture.notes = {
        "Copies, fills and reductions of tiles are loops over vectors, GEMMs are micro-kernels in registers."};
    picture.no_registers = "on a processor tiles are arrays of the thread that runs the block; no thread holds a part";
    picture.no_shared = "on a processor shared tiles are arrays in the cache, row after row, and have no banks";
    picture.no_timeline =
        "on a processor a block is one thread, which does one thing after another; `tilepilot profile` "
        "tells what it takes";
    if (k < lowered.kernels.size()) add_loops(lowered.kernels[k], code.scalar_code[k], options.file, sources, picture);
    const size_t counted = std::min(k, program.kernels.size() - 1);
    if (options.processor.bytes_per_s > 0 && program.kernels.size() == code.grids.size())
      picture.roofline = roofline_of(program.kernels[counted], values, options.processor);
    else
      picture.no_roofline = options.processor.bytes_per_s > 0 ? "the compiler has joined kernels of this program"
                                                              : "the rates of this processor are not known";
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

Result<std::vector<KernelPicture>> picture_of(const ir::Program& program, const SourceMap& sources,
                                              const ShowOptions& options) {
  if (options.target == "cpu") return cpu_pictures(program, sources, options);
  const bool ampere = options.target.ends_with("sm_80");
  return gpu_pictures(program, sources, ampere ? targets::gpu::Architecture::sm_80 : targets::gpu::Architecture::sm_90a,
                      options);
}

}  // namespace tilepilot::show
