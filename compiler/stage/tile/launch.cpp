// T.Kernel and what is declared around and in it: allocations, symbolic extents, constants and outputs of eager
// functions.
#include <fmt/format.h>

#include <numeric>

#include "compiler/stage/tile/builder.h"
#include "compiler/stage/tile/dtypes.h"
#include "compiler/stage/tile/eager.h"
#include "compiler/stage/tile/expressions.h"
#include "compiler/stage/tile/fold.h"
#include "compiler/stage/tile/regions.h"
#include "compiler/stage/tile/tables.h"

namespace tilepilot::stage {
namespace {

constexpr size_t kMaxDimensions = 3;
constexpr int64_t kMaxThreads = 1024;

// `with T.Kernel(...) as (bx, by)`: opens the kernel on entry, closes it on exit.
struct KernelFrame final : TypedObject<KernelFrame> {
  static constexpr Type kType{"tile kernel"};
  KernelFrame(TileContext& context_, ir::Kernel kernel_) : context(context_), kernel(std::move(kernel_)) {}

  Result<Value> enter(Interpreter&, Span) override {
    TRY(context.builder->begin_kernel(kernel));
    std::vector<Value> blocks;
    for (const ir::Var& var : kernel.block_vars) blocks.push_back(make_expr(context, ir::var_ref(var, kernel.span)));
    return blocks.size() == 1 ? blocks[0] : make_tuple(std::move(blocks));
  }
  Status exit(Interpreter&, Span) override {
    if (context.builder && context.builder->in_kernel()) context.builder->end_kernel(kernel.span);
    return {};
  }

  TileContext& context;
  ir::Kernel kernel;
};

Error invalid_launch(const TileArguments& arguments, std::string message, std::string hint = {}) {
  return make_error(DiagnosticKind::invalid_launch, arguments.span(), std::move(message), std::move(hint));
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

// T.Kernel(*grid, threads=, prelude=, is_cpu=)
Result<Value> kernel(TileArguments& arguments) {
  TileContext& context = arguments.context();
  if (!context.builder)
    return make_error(DiagnosticKind::outside_kernel, arguments.span(), "`T.Kernel` outside a tile program",
                      "put it into a function decorated with `@T.prim_func` or `@tilelang.jit`");
  if (context.eager) TRY(context.eager->check_annotated(arguments.span()));
  if (arguments.has(1)) context.builder->program().sources.push_back(TRY(arguments.text(1)));
  size_t rank = arguments.rest().size();
  if (rank == 0 || rank > kMaxDimensions)
    return invalid_launch(arguments, fmt::format("`T.Kernel` has {} grid dimensions", rank), "it takes 1 to 3");
  static constexpr const char* kNames[] = {"bx", "by", "bz"};
  ir::Kernel launch;
  launch.span = arguments.span();
  launch.threads = TRY(thread_shape(arguments));
  for (size_t axis = 0; axis < rank; ++axis) {
    ir::Expr extent = TRY(to_index(arguments.rest()[axis], "a grid extent", arguments.span()));
    if (auto constant = ir::constant_int(extent); constant && *constant <= 0)
      return invalid_launch(arguments, fmt::format("grid extent {} of `T.Kernel` is {}", axis, *constant),
                            "every extent must be at least 1");
    launch.grid.push_back(fold_cast(std::move(extent), ir::kInt32, arguments.span()));
    launch.block_vars.push_back(context.builder->make_var(kNames[axis]));
  }
  return Value(std::make_shared<KernelFrame>(context, std::move(launch)));
}

Result<std::shared_ptr<ir::BufferData>> allocate(const TileArguments& arguments, ir::Scope scope) {
  ProgramBuilder& builder =
      *TRY(require_kernel(arguments.context(), fmt::format("`{}`", arguments.function()), arguments.span()));
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

// T.alloc_var(dtype, init=, scope=); a string in second place is the scope.
Result<Value> alloc_var(TileArguments& arguments) {
  TileContext& context = arguments.context();
  ProgramBuilder& builder = *TRY(require_kernel(context, "`T.alloc_var`", arguments.span()));
  ir::BufferData data;
  data.name = "v";
  data.scope = ir::Scope::local;
  data.span = arguments.span();
  data.type = TRY(resolve_dtype(context, arguments[0], arguments.span(0)));
  data.shape = {ir::int_imm(1, ir::kInt32, arguments.span())};
  auto variable = std::make_shared<VarObject>(context, builder.allocate(std::move(data)));
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

EagerTrace* eager_of(const TileArguments& arguments) { return arguments.context().eager; }

Error needs_eager(const TileArguments& arguments) {
  return make_error(DiagnosticKind::invalid_jit, arguments.span(),
                    fmt::format("`{}` belongs to functions decorated with `@tilelang.jit`", arguments.function()),
                    "in a `T.prim_func`, sizes are arguments of the factory and outputs are parameters");
}

// T.const("M, N"): sizes read from the tensors of the call.
Result<Value> constants(TileArguments& arguments) {
  EagerTrace* eager = eager_of(arguments);
  if (!eager) return needs_eager(arguments);
  std::vector<Value> sizes;
  for (const std::string& name : split_names(TRY(arguments.text(0))))
    sizes.push_back(TRY(eager->constant(arguments.context(), name, arguments.span())));
  if (sizes.empty()) return make_error(DiagnosticKind::value_error, arguments.span(), "`T.const` names nothing");
  return one_or_tuple(std::move(sizes));
}

// T.empty((M, N), dtype), T.empty(M, N, dtype=...): an output.
Result<Value> empty(TileArguments& arguments) {
  TileContext& context = arguments.context();
  EagerTrace* eager = eager_of(arguments);
  if (!eager) return needs_eager(arguments);
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
  return eager->output(context, spec, arguments.span());
}

}  // namespace

const std::vector<TileFunction>& launch_functions() {
  static constexpr std::string_view kAllocation = "shape, dtype, scope=";
  static const std::vector<TileFunction> kFunctions = {
      {"Kernel", "*grid, threads=, prelude=, is_cpu=",
       "opens a launch: `with T.Kernel(gx, gy, threads=128) as (bx, by)`; 1 to 3 grid extents", kernel},
      {"alloc_shared", kAllocation, "a tile in the memory that the threads of a block share", alloc<ir::Scope::shared>},
      {"alloc_fragment", kAllocation, "a tile spread over the registers of a block's threads",
       alloc<ir::Scope::fragment>},
      {"alloc_local", kAllocation, "an array of each thread's own", alloc<ir::Scope::local>},
      {"alloc_var", "dtype, init=, scope=", "a scalar that assignments store to", alloc_var},
      {"dynamic", "name, dtype=", "an extent known at run time, bound from the tensors' shapes", dynamic},
      {"symbolic", "name, dtype=", "the old name of `T.dynamic`", dynamic},
      {"const", "names, dtype=", "sizes of an eager function, read from its tensors: `M, N = T.const(\"M, N\")`",
       constants},
      {"empty", "*shape, dtype=", "an output of an eager function, to be returned", empty},
  };
  return kFunctions;
}

}  // namespace tilepilot::stage
