// T.Kernel and what is declared around and in it: allocations, symbolic extents, sizes and outputs.
#include <fmt/format.h>

#include <numeric>

#include "compiler/ir/scalar_buffer.h"
#include "compiler/stage/tile/buffers/declarations.h"
#include "compiler/stage/tile/buffers/regions.h"
#include "compiler/stage/tile/kernel/builder.h"
#include "compiler/stage/tile/kernel/expressions.h"
#include "compiler/stage/tile/kernel/fold.h"
#include "compiler/stage/tile/kernel/staging.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/advice.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr size_t kMaxDimensions = 3;
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxCluster = 8;  // that every device has room for

// `with T.Kernel(...) as (bx, by)`: opens the kernel on entry, closes it on exit.
struct KernelFrame final : TypedObject<KernelFrame> {
  static constexpr Type kType{"tile kernel"};
  KernelFrame(TileContext& context_, ir::Kernel kernel_, size_t bound_, bool threads_given_)
      : context(context_), kernel(std::move(kernel_)), bound(bound_), threads_given(threads_given_) {}

  Result<Value> enter(Interpreter&, Span) override {
    TRY(context.builder->begin_kernel(kernel));
    std::vector<Value> blocks;
    for (size_t axis = 0; axis < bound; ++axis)
      blocks.push_back(make_axis(context, kernel.block_vars[axis], kernel.span));
    return blocks.size() == 1 ? blocks[0] : make_list(std::move(blocks));
  }
  Status exit(Interpreter&, Span) override {
    if (!context.builder || !context.builder->in_kernel()) return {};
    context.builder->end_kernel(kernel.span);
    auto* tracer = dynamic_cast<const Tracer*>(context.interpreter.staging());
    if (tracer && !tracer->has_errors()) advise(context, context.builder->program().kernels.back(), threads_given);
    return {};
  }

  TileContext& context;
  ir::Kernel kernel;
  const size_t bound;  // how many block indices the program sees: 0 for a launch without extents, which is one block
  const bool threads_given;
};

Error invalid_launch(const TileArguments& arguments, std::string message, std::string hint = {}) {
  return make_error(DiagnosticKind::invalid_launch, arguments.span(), std::move(message), std::move(hint));
}

Error outside_program(const TileArguments& arguments) {
  arguments.context().missed_program = true;
  return make_error(DiagnosticKind::outside_kernel, arguments.span(),
                    fmt::format("`{}` outside a tile program", arguments.function()),
                    "put it into a function decorated with `@T.prim_func` or `@tilelang.jit`");
}

Result<std::vector<int64_t>> thread_shape(const TileArguments& arguments) {
  if (!arguments.has(0)) return std::vector<int64_t>{128};
  std::vector<int64_t> threads = TRY(to_constant_shape(arguments[0], "`threads` of `T.Kernel`", arguments.span(0)));
  int64_t count = std::accumulate(threads.begin(), threads.end(), int64_t{1}, std::multiplies<>());
  if (threads.empty() || threads.size() > kMaxDimensions)
    return invalid_launch(arguments, fmt::format("`threads` has {} dimensions", threads.size()), "it has 1 to 3");
  if (count > kMaxThreads)
    return invalid_launch(arguments, fmt::format("a block of {} threads is too large", count),
                          fmt::format("at most {} threads form a block", kMaxThreads));
  return threads;
}

// `cluster_dims`: extents of a cluster, one an axis of the grid; those that are left out are 1.
Status set_cluster(const TileArguments& arguments, size_t i, ir::Kernel& launch) {
  if (!arguments.has(i)) return {};
  std::vector<int64_t> extents = TRY(to_constant_shape(arguments[i], "`cluster_dims`", arguments.span(i)));
  while (extents.size() > launch.grid.size() && extents.back() == 1) extents.pop_back();
  if (extents.size() > launch.grid.size())
    return invalid_launch(
        arguments, fmt::format("`cluster_dims` has {} extents, the grid {}", extents.size(), launch.grid.size()));
  extents.resize(launch.grid.size(), 1);
  const int64_t blocks = std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  if (blocks > kMaxCluster)
    return invalid_launch(arguments, fmt::format("a cluster of {} blocks is too large", blocks),
                          fmt::format("at most {} blocks form a cluster", kMaxCluster));
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const auto extent = ir::constant_int(launch.grid[axis]);
    if (!extent || *extent % extents[axis] == 0) continue;
    return invalid_launch(
        arguments,
        fmt::format("{} blocks along axis {} of the grid are no multiple of {}", *extent, axis, extents[axis]),
        "a grid consists of whole clusters");
  }
  if (blocks > 1) launch.cluster = std::move(extents);
  return {};
}

// T.Kernel(*grid, threads=, prelude=, cluster_dims=, is_cpu=)
Result<Value> kernel(TileArguments& arguments) {
  TileContext& context = arguments.context();
  if (!context.builder) return outside_program(arguments);
  if (context.declarations) TRY(context.declarations->check_annotated(arguments.span()));
  if (arguments.has(1)) context.builder->program().sources.push_back(TRY(arguments.text(1)));
  std::vector<Value> extents = arguments.rest();
  const size_t bound = extents.size();
  if (bound > kMaxDimensions)
    return invalid_launch(arguments, fmt::format("`T.Kernel` has {} grid dimensions", bound), "it takes at most 3");
  if (bound == 0) extents.emplace_back(int64_t{1});
  static constexpr const char* kNames[] = {"bx", "by", "bz"};
  ir::Kernel launch;
  launch.span = arguments.span();
  launch.threads = TRY(thread_shape(arguments));
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    ir::Expr extent = TRY(to_index(extents[axis], "a grid extent", arguments.span()));
    if (auto constant = ir::constant_int(extent); constant && *constant <= 0)
      return invalid_launch(arguments, fmt::format("grid extent {} of `T.Kernel` is {}", axis, *constant),
                            "every extent must be at least 1");
    launch.grid.push_back(fold_cast(std::move(extent), ir::kInt32, arguments.span()));
    launch.block_vars.push_back(context.builder->make_var(kNames[axis]));
  }
  if (!arguments.function().ends_with("CUDASourceCodeKernel")) TRY(set_cluster(arguments, 2, launch));
  return Value(std::make_shared<KernelFrame>(context, std::move(launch), bound, arguments.has(0)));
}

Result<std::shared_ptr<ir::BufferData>> allocate(const TileArguments& arguments, ir::Scope scope) {
  ProgramBuilder& builder = *TRY(require_kernel(arguments));
  ir::BufferData data;
  data.name = "buffer";
  data.scope = scope;
  data.span = arguments.span();
  data.type = TRY(resolve_dtype(arguments.context(), arguments[1], arguments.span(1)));
  std::string what = fmt::format("an extent of `{}`", arguments.function());
  for (int64_t extent : TRY(to_constant_shape(arguments[0], what, arguments.span(0))))
    data.shape.push_back(ir::int_imm(extent, ir::kInt32, arguments.span()));
  return builder.allocate(std::move(data));
}

template <ir::Scope scope>
Result<Value> alloc(TileArguments& arguments) {
  return Value(std::make_shared<BufferObject>(arguments.context(), TRY(allocate(arguments, scope))));
}

// T.alloc_buffer(shape, dtype, scope=): TVM's general form, where the memory is told by name.
Result<Value> alloc_buffer(TileArguments& arguments) {
  static constexpr std::pair<std::string_view, ir::Scope> kScopes[] = {{"shared", ir::Scope::shared},
                                                                       {"shared.dyn", ir::Scope::shared},
                                                                       {"local", ir::Scope::local},
                                                                       {"local.var", ir::Scope::local},
                                                                       {"local.fragment", ir::Scope::fragment}};
  std::string name = arguments.has(2) ? TRY(arguments.text(2)) : "global";
  if (name == "global") return alloc_global(arguments);
  for (const auto& [known, scope] : kScopes)
    if (known == name)
      return Value(std::make_shared<BufferObject>(arguments.context(), TRY(allocate(arguments, scope))));
  return make_error(DiagnosticKind::wrong_scope, arguments.span(2),
                    fmt::format("`{}` allocates no memory in `{}`", arguments.function(), name),
                    "use \"global\", \"shared\", \"local\" or \"local.fragment\"");
}

// T.CUDASourceCodeKernel(*grid, threads=, source_code_or_path=, entry_name=): a launch of foreign source, which gets
// the program's parameters.
Result<Value> source_kernel(TileArguments& arguments) {
  TileContext& context = arguments.context();
  if (!context.builder) return outside_program(arguments);
  Value launch = TRY(kernel(arguments));
  ProgramBuilder& builder = *context.builder;
  builder.program().sources.push_back(TRY(arguments.text(2)));
  TRY(builder.begin_kernel(launch.get_if<KernelFrame>()->kernel));
  ir::ExternCall call;
  call.function = arguments.has(3) ? TRY(arguments.text(3)) : "main_kernel";
  for (const auto& parameter : builder.program().parameters) {
    if (const auto* scalar = std::get_if<ir::Var>(&parameter)) {
      call.arguments.emplace_back(ir::var_ref(*scalar, arguments.span()));
      continue;
    }
    const ir::Buffer& buffer = std::get<ir::Buffer>(parameter);
    std::vector<ir::Expr> start(buffer->rank(), ir::int_imm(0, ir::kInt32, arguments.span()));
    call.arguments.emplace_back(element_at(buffer, std::move(start), arguments.span()));
  }
  TRY(builder.emit(std::move(call), arguments.span()));
  builder.end_kernel(arguments.span());
  return Value();
}

// T.alloc_var(dtype, init=, scope=); a string in second place is the scope.
Result<Value> alloc_var(TileArguments& arguments) {
  TileContext& context = arguments.context();
  ProgramBuilder& builder = *TRY(require_kernel(context, "`T.alloc_var`", arguments.span()));
  const ir::DType type = TRY(resolve_dtype(context, arguments[0], arguments.span(0)));
  auto variable =
      std::make_shared<VarObject>(context, builder.allocate(ir::scalar_buffer("v", type, arguments.span())));
  if (arguments.has(1) && !arguments[1].if_string()) TRY(variable->store(arguments[1], arguments.span()));
  return Value(std::move(variable));
}

// "M, N" or "M N" as names.
std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names(1);
  for (char letter : text) {
    if (letter != ',' && letter != ' ')
      names.back() += letter;
    else if (!names.back().empty())
      names.emplace_back();
  }
  if (names.back().empty()) names.pop_back();
  return names;
}

Value one_or_tuple(std::vector<Value> values) { return values.size() == 1 ? values[0] : make_tuple(std::move(values)); }

// T.dynamic("m, n", dtype=): extents known at run time.
Result<Value> dynamic(TileArguments& arguments) {
  ir::DType type = ir::kInt32;
  if (arguments.has(1)) type = TRY(resolve_dtype(arguments.context(), arguments[1], arguments.span(1)));
  std::vector<Value> symbols;
  for (const std::string& name : split_names(TRY(arguments.text(0))))
    symbols.push_back(make_expr(arguments.context(), ir::var_ref(ir::make_var(name, type), arguments.span())));
  if (symbols.empty())
    return make_error(DiagnosticKind::value_error, arguments.span(),
                      fmt::format("`{}` names nothing", arguments.function()));
  return one_or_tuple(std::move(symbols));
}

// T.const("M, N"): sizes read from the tensors of the call.
Result<Value> constants(TileArguments& arguments) {
  Declarations* declarations = arguments.context().declarations;
  if (!declarations) return outside_program(arguments);
  if (!declarations->has_constants)
    return make_error(DiagnosticKind::invalid_jit, arguments.span(),
                      "`T.const` belongs to functions decorated with `@tilelang.jit`",
                      "in a `T.prim_func`, sizes are arguments of the factory");
  std::vector<Value> sizes;
  for (const std::string& name : split_names(TRY(arguments.text(0))))
    sizes.push_back(TRY(declarations->constant(arguments.context(), name, arguments.span())));
  if (sizes.empty()) return make_error(DiagnosticKind::value_error, arguments.span(), "`T.const` names nothing");
  return one_or_tuple(std::move(sizes));
}

// T.empty((M, N), dtype), T.empty(M, N, dtype=...): an output.
Result<Value> empty(TileArguments& arguments) {
  TileContext& context = arguments.context();
  Declarations* declarations = context.declarations;
  if (!declarations) return outside_program(arguments);
  std::vector<Value> extents = arguments.rest();
  Value dtype = arguments[0];
  if (!extents.empty() && names_dtype(context, extents.back())) {
    dtype = extents.back();
    extents.pop_back();
  }
  TensorSpec spec;
  spec.dtype = dtype.is_none() ? ir::kFloat32 : TRY(resolve_dtype(context, dtype, arguments.span()));
  Value shape = extents.size() == 1 ? extents[0] : make_tuple(extents);
  spec.shape = TRY(to_shape(shape, "an extent of `T.empty`", arguments.span()));
  return declarations->output(context, spec, arguments.span());
}

}  // namespace

const std::vector<TileFunction>& launch_functions() {
  static constexpr std::string_view kAllocation = "shape, dtype, scope=";
  static const std::vector<TileFunction> kFunctions = {
      {"Kernel", "*grid, threads=, prelude=, cluster_dims=, is_cpu?=False",
       "opens a launch: `with T.Kernel(gx, gy, threads=128) as (bx, by)`; up to 3 grid extents", kernel},
      {"ClusterKernel", "*grid, threads=, prelude=, cluster_dims=",
       "`T.Kernel`, whose blocks run together in clusters of these extents", kernel},
      {"CUDASourceCodeKernel", "*grid, threads=, prelude=, source_code_or_path=, entry_name=, cluster_dims?=1",
       "a launch of foreign device source, which gets the program's parameters", source_kernel},
      {"alloc_shared", kAllocation, "a tile in the memory that the threads of a block share", alloc<ir::Scope::shared>},
      {"alloc_fragment", kAllocation, "a tile spread over the registers of a block's threads",
       alloc<ir::Scope::fragment>},
      {"alloc_local", kAllocation, "an array of each thread's own", alloc<ir::Scope::local>},
      {"alloc_buffer", kAllocation, "an array in the memory that `scope` names", alloc_buffer},
      {"allocate", kAllocation, "an array in the memory that `scope` names", alloc_buffer},
      {"alloc_var", "dtype, init=, scope=", "a scalar that assignments store to", alloc_var},
      {"dynamic", "name, dtype=", "an extent known at run time, bound from the tensors' shapes", dynamic},
      {"symbolic", "name, dtype=", "the old name of `T.dynamic`", dynamic},
      {"const", "names, dtype=",
       "sizes of a `@tilelang.jit` program, read from its tensors: `M, N = T.const(\"M, N\")`", constants},
      {"empty", "*shape, dtype=", "an output of the program, to be returned", empty},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
