#include "compiler/targets/cuda/codegen.h"

#include <algorithm>

#include "compiler/ir/cluster.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/algebra/simplify.h"
#include "compiler/passes/iterations/iteration_races.h"
#include "compiler/passes/iterations/unwritten_reads.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cuda/conversion_pairs.h"
#include "compiler/targets/cuda/emit.h"
#include "compiler/targets/cuda/load_hoisting.h"
#include "compiler/targets/cuda/load_unrolling.h"
#include "compiler/targets/cuda/operation_counters.h"
#include "compiler/targets/cuda/prelude.h"
#include "compiler/targets/cuda/target_lowering.h"
#include "compiler/targets/cuda/wgmma.h"
#include "compiler/targets/gpu/estimate/tiles.h"
#include "compiler/targets/gpu/layout/infer.h"
#include "compiler/targets/gpu/lower/lower.h"
#include "compiler/targets/gpu/lower/resources.h"
#include "compiler/targets/gpu/lower/warp_roles.h"
#include "compiler/targets/gpu/schedule/pipeline.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using c::Context;

namespace {

constexpr std::string_view kAxes[] = {"x", "y", "z"};

// Whether each tensor's elements can be counted in 32 bits.
bool fits_32_bits(const ir::Program& program) {
  const auto fits = [](const ir::Buffer& buffer) {
    if (buffer->few_elements) return true;
    int64_t elements = 1;
    for (size_t axis = 0; axis < buffer->rank(); ++axis) {
      const auto extent = ir::constant_int(buffer->shape[axis]);
      const auto stride = buffer->strides.empty() ? std::optional<int64_t>(1) : ir::constant_int(buffer->strides[axis]);
      if (!extent || !stride || *extent > INT32_MAX || *stride > INT32_MAX) return false;
      elements = buffer->strides.empty() ? elements * std::max<int64_t>(*extent, 1) : elements + *extent * *stride;
      if (elements > INT32_MAX) return false;
    }
    return true;
  };
  for (const auto& parameter : program.parameters)
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter); buffer && !fits(*buffer)) return false;
  for (const ir::Kernel& kernel : program.kernels)
    for (const ir::Buffer& buffer : kernel.allocations)
      if (buffer->scope == ir::Scope::global && !fits(buffer)) return false;
  return std::all_of(program.workspaces.begin(), program.workspaces.end(), fits);
}

// Loops that leave nothing unchanged have no counter before them.
std::string without_empty(const std::vector<c::OperationCounter>& operation_counters, std::string text) {
  for (size_t number = 0; number < operation_counters.size(); ++number) {
    if (!operation_counters[number].parts.empty()) continue;
    const size_t at = text.find(fmt::format("emulated::count_operations({});", number));
    const size_t begin = text.rfind('\n', at) + 1;
    text.erase(begin, text.find('\n', at) + 1 - begin);
  }
  return text;
}

class LaunchEmitter {
 public:
  LaunchEmitter(const ir::Program& program, const LoweredKernel& lowered, const Machine& machine,
                const GenerateOptions& options)
      : program_(program),
        lowered_(lowered),
        machine_(machine),
        shares_(lowered.shares_in_cluster),
        context_{program, lowered.kernel, c::Names(prelude())} {
    shared_bytes_ = (lowered.shared_bytes + 7) / 8 * 8;
    context_.wraps_by_itself = false;
    context_.fast_math = lowered.kernel.fast_math;
    context_.adds_float16 = true;
    context_.adds_bfloat16 = machine.compute_capability >= 90;
    if (machine.has_clusters) cluster_ = lowered.kernel.cluster;
    if (fits_32_bits(program)) context_.index_type = "int32_t";
    context_.sources = options.sources;
    if (options.operation_counters) context_.operations = &operations_;
  }

  Result<Launch> run(const std::string& function, std::string& source) {
    learn();
    operations_.start_statement(lowered_.kernel.span);
    name_parameters();
    name_places();
    const ir::Effects named = ir::effects_of(lowered_.kernel.body);
    const auto is_idle = [&](const ir::Buffer& buffer) {  // what a branch left behind that is never taken
      return buffer->scope == ir::Scope::local && !named.reads.contains(buffer.get()) &&
             !named.writes.contains(buffer.get()) && !is_under_another(buffer);
    };
    for (const ir::Buffer& buffer : lowered_.kernel.allocations)
      if (!is_idle(buffer)) declare(buffer);
    make_barriers();
    put_counter(context_);
    context_.predicated = read_only_tensors(lowered_.kernel.body);
    cuda::emit(context_, lowered_.kernel.body);
    // Others may still write to this block's memory, or arrive there.
    if (shares_) context_.body.line("sync_cluster();");
    if (context_.error) return std::move(context_.error);
    if (shared_bytes_ > machine_.block_shared_bytes)
      return too_much_shared_memory(lowered_.kernel, shared_bytes_, machine_.block_shared_bytes);
    if (local_bytes_ > kLocalLimit) return too_much_local_memory(lowered_.kernel, local_bytes_, kLocalLimit);
    const int64_t threads = thread_count(lowered_.kernel);
    const std::vector<c::OperationCounter> operation_counters = std::move(operations_).operation_counters();
    source += fmt::format("\nextern \"C\" __global__ void __launch_bounds__({}{}) {}({}) {{\n{}{}}}\n", threads,
                          fewest_blocks(threads), function, fmt::join(parameters_, ", "), context_.declarations.text(),
                          without_empty(operation_counters, context_.body.text()));
    Launch launch{function, lowered_.kernel.grid, lowered_.kernel.threads,    shared_bytes_,
                  false,    lowered_.persistent,  std::move(context_.checks), std::move(maps_)};
    launch.local_bytes = local_bytes_;
    launch.cluster = cluster_;
    launch.operation_counters = operation_counters;
    launch.kernel = lowered_.kernel.span;
    launch.tiles = std::move(tiles_);
    return launch;
  }

 private:
  const ir::Program& program_;
  const LoweredKernel& lowered_;
  const Machine& machine_;
  const bool shares_;  // memory with other blocks of a cluster
  std::vector<int64_t> cluster_;
  c::OperationCount operations_;
  Context context_;
  std::vector<std::string> parameters_;
  std::vector<TensorMap> maps_;
  std::vector<SharedTile> tiles_;
  std::vector<std::string> barriers_;  // what makes them
  int64_t shared_bytes_ = 0, local_bytes_ = 0;

  bool is_index(const ir::Var& var) const {
    return var->type.is_int() && (var->type.bits <= 32 || context_.index_type == "int64_t");
  }

  void learn() {
    for (const ir::Var& symbol : program_.symbols) context_.facts.set_range(symbol, {0, c::kLargestGrid});
    context_.facts.learn(lowered_.kernel);
    context_.facts.trust(lowered_.kernel);
    context_.facts.set_range(lowered_.thread, {0, thread_count(lowered_.kernel) - 1});
    for (const auto& [var, extent] : lowered_.extents) context_.facts.set_range(var, {0, extent - 1});
    for (size_t axis = 0; axis < lowered_.kernel.thread_vars.size(); ++axis)
      context_.facts.set_range(lowered_.kernel.thread_vars[axis], {0, lowered_.kernel.threads[axis] - 1});
  }

  void name_parameters() {
    const auto name_buffer = [&](const ir::Buffer& buffer) {
      parameters_.push_back(
          fmt::format("global_array<{}> {}", c::stored_type(buffer->type), context_.names.of(buffer)));
    };
    for (const auto& parameter : program_.parameters)
      if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) name_buffer(*buffer);
    for (const ir::Buffer& workspace : program_.workspaces) name_buffer(workspace);
    for (const auto& parameter : program_.parameters)
      if (const auto* var = std::get_if<ir::Var>(&parameter)) name_scalar(*var);
    for (const ir::Var& symbol : program_.symbols) name_scalar(symbol);
    for (const TensorBoxes& boxes : lowered_.maps) name_map(boxes);
  }

  void name_map(const TensorBoxes& boxes) {
    parameters_.push_back("const __grid_constant__ tensor_map " + context_.names.of(boxes.map));
    const ir::BufferData& tensor = *boxes.tensor;
    const ir::Buffer& memory = tensor.base ? tensor.base : boxes.tensor;
    TensorMap map{0, tensor.type, {}, {}, {}, static_cast<int64_t>(boxes.span)};
    for (const auto& parameter : program_.parameters) {
      const auto* buffer = std::get_if<ir::Buffer>(&parameter);
      if (buffer && *buffer == memory) break;
      map.buffer += buffer != nullptr;
    }
    for (const ir::Buffer& workspace : program_.workspaces) {
      if (std::find(program_.workspaces.begin(), program_.workspaces.end(), memory) == program_.workspaces.end() ||
          workspace == memory)
        break;
      ++map.buffer;
    }
    const auto times_of = [](const ir::Expr& a, const ir::Expr& b) {
      const auto left = ir::constant_int(a), right = ir::constant_int(b);
      if (left && right) return ir::int_imm(*left * *right, ir::kInt64);
      return ir::binary(ir::BinaryOp::mul, ir::cast(a, ir::kInt64), ir::cast(b, ir::kInt64), b->span);
    };
    const ir::Expr bytes = ir::int_imm(tensor.type.bytes(), ir::kInt64);
    ir::Expr step = bytes;
    for (size_t axis = tensor.rank(); axis-- > 0;) {
      map.extents.push_back(tensor.shape[axis]);
      map.box.push_back(boxes.box[axis]);
      if (!tensor.strides.empty()) step = times_of(bytes, tensor.strides[axis]);
      if (axis + 1 < tensor.rank()) map.strides.push_back(step);
      if (tensor.strides.empty()) step = times_of(step, tensor.shape[axis]);
    }
    maps_.push_back(std::move(map));
  }

  // Every argument has 8 bytes.
  void name_scalar(const ir::Var& var) {
    const std::string name = context_.names.of(var);
    const std::string given = context_.names.fresh(name + "_given");
    parameters_.push_back("int64_t " + given);
    const std::string real = fmt::format("__builtin_bit_cast(double, {})", given);
    if (is_index(var)) context_.wide.insert(var.get());
    const std::string type = is_index(var) ? context_.index_type : c::computed_type(var->type);
    const std::string value = var->type.is_small_float()
                                  ? fmt::format("round_{}(static_cast<float>({}))", c::stored_type(var->type), real)
                              : var->type.is_float() ? fmt::format("static_cast<{}>({})", type, real)
                              : var->type.is_bool()  ? given + " != 0"
                                                     : fmt::format("static_cast<{}>({})", type, given);
    context_.declarations.line("const {} {} = {};", type, name, value);
  }

  void name_places() {
    const ir::Kernel& kernel = lowered_.kernel;
    const auto name = [&](const ir::Var& var, const std::string& value) {
      context_.wide.insert(var.get());
      context_.declarations.line("const {0} {1} = {2};", context_.index_type, context_.names.of(var), value);
    };
    for (size_t axis = 0; axis < kernel.block_vars.size(); ++axis)
      name(kernel.block_vars[axis], fmt::format("blockIdx.{}", kAxes[axis]));
    for (size_t axis = 0; axis < kernel.thread_vars.size(); ++axis)
      name(kernel.thread_vars[axis], fmt::format("threadIdx.{}", kAxes[axis]));
    std::string number = "threadIdx.x";
    int64_t weight = 1;
    for (size_t axis = 1; axis < kernel.threads.size(); ++axis) {
      weight *= kernel.threads[axis - 1];
      number += fmt::format(" + threadIdx.{} * {}", kAxes[axis], weight);
    }
    if (!ir::mentions(kernel.body, lowered_.thread)) return;
    name(lowered_.thread, number);
    assume_threads(kernel);
    operations_.add(c::Operation::integer, 2 * static_cast<int64_t>(kernel.threads.size() - 1));
  }

  // NVRTC does not conclude from launch bounds which of the guarded iterations of a loop all threads have: each would
  // be a branch, and its loads would wait for each other. Products have no such loops in their way.
  void assume_threads(const ir::Kernel& kernel) {
    const bool guards = ir::contains(kernel.body, [](const ir::Stmt& stmt) { return ir::as<ir::If>(stmt) != nullptr; });
    if (!guards || lowered_.multiplies) return;
    context_.declarations.line("assume_below({}, {});", context_.names.of(lowered_.thread), thread_count(kernel));
  }

  bool is_under_another(const ir::Buffer& buffer) const {
    return std::any_of(lowered_.kernel.allocations.begin(), lowered_.kernel.allocations.end(),
                       [&](const ir::Buffer& other) { return other->base == buffer || other->address == buffer; });
  }

  // ptxas saves registers for the sake of more blocks, and has the loads of a thread wait for each other. Where a
  // thread keeps little, half of the threads that fit, with twice the registers, are enough.
  std::string fewest_blocks(int64_t threads) const {
    constexpr int64_t kLittle = 128, kThreads = 1024;
    if (lowered_.alone) return ", 1";
    const int64_t by_memory = shared_bytes_ > 0 ? machine_.shared_bytes / shared_bytes_ : kThreads;
    const int64_t blocks = std::clamp<int64_t>(kThreads / threads, 1, std::max<int64_t>(by_memory, 1));
    return local_bytes_ <= kLittle && !lowered_.multiplies ? fmt::format(", {}", blocks) : "";
  }

  void declare(const ir::Buffer& buffer) {
    int64_t elements = 1;
    for (const int64_t extent : c::extents(buffer)) elements *= extent;
    const std::string type = c::stored_type(buffer->type), &name = context_.names.of(buffer);
    if (buffer->address)
      return context_.declarations.line("const auto {} = array_at<{}>({});", name, type,
                                        context_.names.of(buffer->address));
    if (buffer->base)
      return context_.declarations.line("const auto {} = view<{}>({});", name, type, context_.names.of(buffer->base));
    if (buffer->scope == ir::Scope::barrier) return declare_barriers(buffer);
    if (buffer->scope != ir::Scope::shared) {
      context_.declarations.line("registers<{}, {}> {};", type, elements, name);
      if (lowered_.unwritten.contains({buffer->name, buffer->span.begin}))
        context_.declarations.line("poison({});", name);
      local_bytes_ += elements * buffer->type.bytes();
      return;
    }
    tiles_.push_back({buffer->name, buffer->span, lowered_.offsets.at(buffer.get()), elements * buffer->type.bytes()});
    context_.declarations.line("shared_array<{0}> {1} = shared_tile<{0}>({2}, {3});", type, name,
                               lowered_.offsets.at(buffer.get()), elements);
  }

  // After all tiles.
  void declare_barriers(const ir::Buffer& buffer) {
    const std::string& name = context_.names.of(buffer);
    const size_t count = buffer->arrivals.size();
    context_.declarations.line("shared_array<uint64_t> {} = shared_tile<uint64_t>({}, {});", name, shared_bytes_,
                               count);
    for (size_t k = 0; k < count; ++k)
      barriers_.push_back(fmt::format("barrier_init({} + {}, {});", name, k, buffer->arrivals[k]));
    shared_bytes_ += static_cast<int64_t>(count) * kBytesOfBarrier;
    if (!machine_.has_tma) check_barriers();
  }

  void check_barriers() {
    ir::walk(
        lowered_.kernel.body,
        [&](const ir::Stmt& stmt) {
          const auto* barrier = ir::as<ir::Barrier>(stmt);
          if (barrier && barrier->operand && barrier->op != ir::BarrierOp::wait &&
              ir::constant_int(barrier->operand) != 0)
            context_.fail(stmt->span, "barriers of " + machine_.target + " count arrivals alone, no bytes");
        },
        [](const ir::Expr&) {});
  }

  void make_barriers() {
    // Other blocks are there before this one writes to their memory.
    if (barriers_.empty()) return shares_ ? context_.declarations.line("sync_cluster();") : void();
    std::string first = "threadIdx.x == 0";
    for (size_t axis = 1; axis < lowered_.kernel.threads.size(); ++axis)
      first += fmt::format(" && threadIdx.{} == 0", kAxes[axis]);
    operations_.add(c::Operation::comparison, static_cast<int64_t>(lowered_.kernel.threads.size()));
    context_.declarations.open("if ({})", first);
    // The first copy by a descriptor that no cache holds waits for it.
    for (const TensorBoxes& boxes : lowered_.maps)
      context_.declarations.line("prefetch_map({});", context_.names.of(boxes.map));
    for (const std::string& one : barriers_) context_.declarations.line("{}", one);
    if (machine_.has_tma) context_.declarations.line("fence_barriers();");
    context_.declarations.close();
    context_.declarations.line("{}", shares_ ? "sync_cluster();" : "sync_threads();");
  }
};

}  // namespace

namespace {

Status check_clusters(const ir::Kernel& kernel, const Machine& machine) {
  if (machine.has_clusters) return {};
  Span span;
  const auto needs_cluster = [&](const ir::Stmt& stmt) {
    const auto* sync = ir::as<ir::Sync>(stmt);
    const auto* async = ir::as<ir::Async>(stmt);
    const bool waits = sync && (sync->scope == ir::SyncScope::cluster || sync->scope == ir::SyncScope::cluster_wait);
    const bool arrives =
        async && (async->op == ir::AsyncOp::arrive_cluster || async->op == ir::AsyncOp::arrive_cluster_relaxed);
    const bool needs = waits || arrives || ir::reaches_peers(stmt);
    if (needs) span = stmt->span;
    return needs;
  };
  if (!ir::contains(kernel.body, needs_cluster)) return {};
  return make_error(DiagnosticKind::unsupported_tile_feature, span, machine.target + " has no clusters of blocks",
                    "use the target cuda:sm_90a, or let blocks do without each other");
}

bool deals_out_registers(const ir::Stmt& stmt) {
  const auto* call = ir::as<ir::ExternCall>(stmt);
  return call && call->function.starts_with("set_registers_");
}

ir::VarRanges ranges_of_threads(const LoweredKernel& lowered) {
  ir::VarRanges ranges;
  for (const auto& [var, extent] : lowered.extents) ranges[var.get()] = {0, extent - 1};
  ranges[lowered.thread.get()] = {0, thread_count(lowered.kernel) - 1};
  return ranges;
}

}  // namespace

Result<GeneratedCode> generate(const ir::Program& given, Architecture architecture, const GenerateOptions& options) {
  const Machine& machine = machine_of(architecture);
  const ir::Program program = TRY(prepare(given));
  GeneratedCode code;
  code.warnings = sequence_warnings(given, program);
  for (Diagnostic& warning : passes::race_warnings(given)) code.warnings.push_back(std::move(warning));
  // Names that the headers of a host's C library give, which foreign source takes for granted.
  if (!program.sources.empty())
    code.source += "typedef unsigned short ushort;\ntypedef unsigned int uint;\ntypedef unsigned long ulong;\n";
  for (const std::string& source : program.sources) code.source += source + "\n";
  std::vector<Wgmma> written;
  const std::string name = c::Names(prelude()).fresh(program.name);
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    TRY(check_clusters(program.kernels[k], machine));
    if (machine.reallocates_registers) TRY(check_registers(program.kernels[k]));
    LoweredKernel lowered = TRY(lower_roles(program.kernels[k], machine, kLowering));
    lowered.shares_in_cluster = ir::shares_in_cluster(program.kernels[k].body);
    for (const passes::UnwrittenRead& read : passes::unwritten_reads(program.kernels[k]))
      lowered.unwritten.insert({read.buffer->name, read.buffer->span.begin});
    for (Diagnostic& warning : lowered.warnings) code.warnings.push_back(std::move(warning));
    for (const Wgmma& product : lowered.wgmmas) {
      if (std::find(written.begin(), written.end(), product) != written.end()) continue;
      written.push_back(product);
      code.source += wgmma_function(product);
    }
    ir::Program one = program;
    one.kernels = {lowered.kernel};
    lowered.kernel = passes::simplify(one, ranges_of_threads(lowered)).kernels[0];
    lowered.kernel.body = pair_conversions(hoist_loads(unroll_loads(lowered.kernel.body)));
    // ptxas has to know how many registers a thread begins with.
    lowered.alone = ir::contains(lowered.kernel.body, deals_out_registers);
    lowered.multiplies = ir::contains<ir::Gemm, ir::Mma>(program.kernels[k].body);
    const std::string function = fmt::format("{}_{}", name, k);
    code.launches.push_back(TRY(LaunchEmitter(program, lowered, machine, options).run(function, code.source)));
  }
  return code;
}

}  // namespace tilepilot::targets::cuda
