#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/ir/search.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/explain.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"
#include "show/execution.h"
#include "show/kernels.h"
#include "show/replay.h"
#include "show/roofline.h"

namespace tilepilot::show {
namespace {

using emulator::Step;
using emulator::StepKind;
using targets::cuda::KernelPlan;
using targets::cuda::Launch;
using targets::gpu::PlannedKernel;

// "producer", "consumer", as what the role's threads do says; empty: all threads do the same.
std::string name_of_role(const KernelPlan& plan, const PlannedKernel& role) {
  if (plan.roles.size() == 1) return "";
  const bool multiplies = ir::contains<ir::Gemm>(role.kernel.body);
  const bool loads = ir::contains(role.kernel.body, [](const ir::Stmt& stmt) {
    const auto* copy = ir::as<ir::Copy>(stmt);
    return copy != nullptr && (copy->mode == ir::CopyMode::bulk_load || copy->mode == ir::CopyMode::group);
  });
  const std::string kind = multiplies ? "consumer" : loads ? "producer" : "role";
  const auto threads = targets::gpu::thread_count(role.kernel);
  return fmt::format("{} (threads {} to {})", kind, role.first_thread, role.first_thread + threads - 1);
}

std::vector<int64_t> extents_of(const ir::Buffer& buffer) {
  std::vector<int64_t> extents;
  for (const ir::Expr& extent : buffer->shape) extents.push_back(ir::constant_int(extent).value_or(0));
  return extents;
}

class GpuPictures {
 public:
  GpuPictures(const ir::Program& program, const SourceMap& sources, const ShowOptions& options)
      : program_(program), sources_(sources), options_(options) {}

  Result<std::vector<KernelPicture>> run(targets::gpu::Architecture architecture) {
    const auto plans = TRY(targets::cuda::plans_of(program_, architecture));
    const auto decisions = TRY(targets::cuda::decisions_of(program_, architecture));
    const auto code = TRY(targets::cuda::generate(program_, architecture, {&sources_, true}));
    ExecutionOptions execution{options_.toolchain, &sources_, architecture, options_.block};
    execution.extents = options_.extents;
    std::vector<Execution> executions(code.launches.size());
    for (Execution& one : executions) one.failure = "the kernel was not run in the emulator, as asked";
    if (options_.executes) executions = execute(program_, code, execution);
    values_ = values_of(program_, options_.extents);
    std::vector<KernelPicture> pictures;
    for (size_t k = 0; k < code.launches.size(); ++k) {
      const auto& machine = targets::gpu::machine_of(architecture);
      KernelPicture picture = kernel(k, code.launches.size(), code.launches[k], plans[k]);
      for (const targets::gpu::Decision& decision : decisions[k])
        picture.choices.push_back({line(decision.span), decision.what, decision.chosen, decision.obstacles});
      add_registers(plans[k], picture);
      add_shared(plans[k], code.launches[k], picture);
      add_execution(executions[k], plans[k], machine, picture);
      // Grid barriers cut kernels in two.
      const bool is_as_written = program_.kernels.size() == code.launches.size();
      const ir::Kernel& counted = is_as_written ? program_.kernels[k] : plans[k].prepared;
      picture.roofline = roofline_of(counted, values_, machine, tensor_parts(plans[k]), picture.no_roofline);
      pictures.push_back(std::move(picture));
    }
    // Where the first one's program is: a warning names its line.
    for (const Diagnostic& warning : code.warnings)
      if (!pictures.empty())
        pictures.front().notes.push_back(fmt::format("line {}: {}", line(warning.span), warning.message));
    return pictures;
  }

 private:
  const ir::Program& program_;
  const SourceMap& sources_;
  const ShowOptions& options_;
  ir::VarRanges values_;

  int line(Span span) const { return line_in(options_.file, sources_, span); }

  KernelPicture kernel(size_t number, size_t launches, const Launch& launch, const KernelPlan& plan) const {
    KernelPicture picture;
    picture.name = launches == 1 ? program_.name : fmt::format("{}, kernel {}", program_.name, number);
    picture.line = line(launch.kernel);
    std::vector<int64_t> grid;
    for (const ir::Expr& extent : launch.grid) grid.push_back(runtime_value(extent));
    int64_t threads = 1;
    for (const int64_t extent : launch.threads) threads *= extent;
    picture.facts = {fmt::format("grid {}{}", fmt::join(grid, " x "), launch.persistent ? " at most, persistent" : ""),
                     fmt::format("{} threads a block", threads),
                     fmt::format("{} bytes of shared memory", launch.shared_bytes)};
    if (!launch.cluster.empty())
      picture.facts.push_back(fmt::format("clusters of {}", fmt::join(launch.cluster, " x ")));
    if (plan.roles.size() > 1) {
      std::vector<std::string> roles;
      for (const PlannedKernel& role : plan.roles) roles.push_back(name_of_role(plan, role));
      picture.facts.push_back(fmt::format("warp roles: {}", fmt::join(roles, ", ")));
    }
    const auto assumed = assumed_names(program_, options_.extents);
    if (!assumed.empty())
      picture.notes.push_back(
          fmt::format("{} {} known at launch alone: {} is assumed for each (`--set {}=...` says otherwise)",
                      fmt::join(assumed, ", "), assumed.size() == 1 ? "is" : "are", kAssumedExtent, assumed.front()));
    return picture;
  }

  static TensorParts tensor_parts(const KernelPlan& plan) {
    TensorParts parts = 0;
    for (const PlannedKernel& role : plan.roles)
      for (const auto& [stmt, gemm] : role.inference.gemms)
        if (gemm.atom != nullptr) parts = std::max<TensorParts>(parts, gemm.splits ? 3 : 1);
    return parts;
  }

  int64_t runtime_value(const ir::Expr& extent) const {
    const ir::Bounds known = ir::bounds(extent, values_);
    return known.lo;
  }

  void add_registers(const KernelPlan& plan, KernelPicture& picture) const {
    for (const PlannedKernel& role : plan.roles) {
      const std::string name = name_of_role(plan, role);
      for (const ir::Buffer& buffer : role.kernel.allocations) {
        const auto found = role.inference.fragments.find(buffer.get());
        if (found == role.inference.fragments.end() || buffer->base) continue;
        picture.registers.push_back(
            {buffer->name, ir::to_string(buffer->type), name, line(buffer->span), role.first_thread, found->second});
      }
    }
    if (picture.registers.empty()) picture.no_registers = "no tile of this kernel lies in registers";
  }

  // A tile with an axis more than the program gave it is a ring buffer.
  static int64_t stages_of(const KernelPlan& plan, const ir::Buffer& buffer) {
    for (const ir::Buffer& given : plan.prepared.allocations) {
      if (given->name != buffer->name || given->span.begin != buffer->span.begin) continue;
      if (given->rank() + 1 == buffer->rank()) return std::max<int64_t>(1, extents_of(buffer).front());
      const auto before = extents_of(given), after = extents_of(buffer);
      if (before.size() == after.size() && !before.empty() && before[0] > 0 && after[0] % before[0] == 0)
        return after[0] / before[0];
    }
    return 1;
  }

  void add_shared(const KernelPlan& plan, const Launch& launch, KernelPicture& picture) const {
    const auto is_known = [&](const std::string& name, int64_t offset) {
      return std::any_of(picture.shared.begin(), picture.shared.end(),
                         [&](const SharedPicture& other) { return other.name == name && other.offset == offset; });
    };
    for (const PlannedKernel& role : plan.roles) {
      for (const ir::Buffer& buffer : role.kernel.allocations) {
        const auto found = role.inference.tiles.find(buffer.get());
        if (found == role.inference.tiles.end() || buffer->base) continue;
        const auto place = std::find_if(launch.tiles.begin(), launch.tiles.end(), [&](const auto& tile) {
          return tile.name == buffer->name && tile.span.begin == buffer->span.begin;
        });
        if (place == launch.tiles.end() || is_known(buffer->name, place->offset)) continue;
        picture.shared.push_back({buffer->name,
                                  ir::to_string(buffer->type),
                                  line(buffer->span),
                                  place->offset,
                                  place->bytes,
                                  stages_of(plan, buffer),
                                  found->second,
                                  {},
                                  {},
                                  false});
      }
    }
    for (SharedPicture& tile : picture.shared)
      for (const SharedPicture& other : picture.shared)
        if (&tile != &other && tile.offset < other.offset + other.bytes && other.offset < tile.offset + tile.bytes)
          tile.shares.push_back(other.name);
    if (picture.shared.empty()) picture.no_shared = "this kernel has no tile in shared memory";
  }

  void add_execution(const Execution& execution, const KernelPlan& plan, const targets::gpu::Machine& machine,
                     KernelPicture& picture) const {
    picture.defects = execution.defects;
    if (!execution.defects.empty())
      picture.notes.push_back("Tensors were all zero in the emulator: addresses and indices in them lead nowhere.");
    if (!execution.failure.empty()) {
      picture.no_timeline = "the emulator has not run it: " + execution.failure;
      return;
    }
    const int64_t warps = block_warps(plan, (targets::gpu::thread_count(plan.prepared) + 31) / 32);
    add_accesses(execution, warps, picture);
    std::vector<CopyTarget> targets;
    for (const SharedPicture& tile : picture.shared)
      targets.push_back({tile.name, tile.offset, tile.bytes, tile.stages});
    picture.timeline = replay({execution.steps, machine, options_.file, warps, std::move(targets)});
    picture.timeline->is_cut = execution.is_cut;
    picture.timeline->from = options_.from;
    for (TimelineRow& row : picture.timeline->rows) {
      if (row.warp < 0) continue;
      for (const PlannedKernel& role : plan.roles) {
        const int64_t first = role.first_thread / 32,
                      last = first + (targets::gpu::thread_count(role.kernel) + 31) / 32;
        if (row.warp >= first && row.warp < last) row.group = name_of_role(plan, role);
      }
    }
    if (picture.timeline->rows.empty()) {
      picture.no_timeline = "the block does nothing on tensors of zeros";
      picture.timeline.reset();
    }
  }

  // A producer warpgroup is no part of the program's own threads.
  static int64_t block_warps(const KernelPlan& plan, int64_t given) {
    int64_t warps = given;
    for (const PlannedKernel& role : plan.roles)
      warps = std::max(warps, (role.first_thread + targets::gpu::thread_count(role.kernel) + 31) / 32);
    return warps;
  }

  static bool is_access(StepKind kind) {
    return kind == StepKind::shared_read || kind == StepKind::shared_write || kind == StepKind::load_matrix ||
           kind == StepKind::store_matrix || kind == StepKind::copy;
  }

  void add_accesses(const Execution& execution, int64_t warps, KernelPicture& picture) const {
    using Key = std::tuple<int64_t, int, StepKind, int64_t>;  // tile, line, kind, bytes of a lane
    std::map<Key, SharedAccess> all;
    for (const Step& step : execution.steps) {
      if (step.kind == StepKind::bulk_load || step.kind == StepKind::bulk_store)
        for (SharedPicture& tile : picture.shared) tile.by_tma |= tile.offset == step.tile;
      if (!is_access(step.kind) || step.warp >= warps) continue;  // of the cluster's other blocks
      const int line = step.line.file == options_.file ? static_cast<int>(step.line.line) : 0;
      SharedAccess& access = all[{step.tile, line, step.kind, step.width}];
      access.line = line;
      access.what = std::string(name_of(step.kind));
      access.writes =
          step.kind == StepKind::shared_write || step.kind == StepKind::store_matrix || step.kind == StepKind::copy;
      access.width = step.width;
      access.instructions += step.traffic.instructions;
      access.bytes += step.bytes;
      access.wavefronts += step.traffic.shared_wavefronts;
      access.conflicts += step.traffic.bank_conflicts;
    }
    for (const auto& [key, access] : all) {
      bool placed = false;
      for (SharedPicture& tile : picture.shared) {
        if (tile.offset != std::get<0>(key) || placed) continue;
        tile.accesses.push_back(access);
        placed = tile.shares.empty();
      }
      if (!placed && access.conflicts > 0 && !knows(picture, std::get<0>(key)))
        picture.notes.push_back(
            fmt::format("line {}: {} at byte {} of shared memory, which is no tile of the program, "
                        "takes {} wavefronts, {} of them for bank conflicts",
                        access.line, access.what, std::get<0>(key), access.wavefronts, access.conflicts));
    }
  }

  static bool knows(const KernelPicture& picture, int64_t offset) {
    return std::any_of(picture.shared.begin(), picture.shared.end(),
                       [&](const SharedPicture& tile) { return tile.offset == offset; });
  }
};

}  // namespace

int line_in(const std::string& file, const SourceMap& sources, Span span) {
  if (!span.valid() || static_cast<size_t>(span.file) >= sources.size() || sources.name(span.file) != file) return 0;
  return sources.position(span.file, span.begin).line;
}

Result<std::vector<KernelPicture>> gpu_pictures(const ir::Program& given, const SourceMap& sources,
                                                targets::gpu::Architecture architecture, const ShowOptions& options) {
  const ir::Program program = targets::gpu::for_usual_tensors(given);
  return GpuPictures(program, sources, options).run(architecture);
}

}  // namespace tilepilot::show
