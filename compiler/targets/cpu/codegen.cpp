#include "compiler/targets/cpu/codegen.h"

#include <algorithm>

#include "compiler/ir/cluster.h"
#include "compiler/ir/search.h"
#include "compiler/ir/visit.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/emit.h"
#include "compiler/targets/cpu/loops/cost.h"
#include "compiler/targets/cpu/loops/loop_body.h"
#include "compiler/targets/cpu/loops/private_buffers.h"
#include "compiler/targets/cpu/plan/launch_plan.h"
#include "compiler/targets/cpu/plan/operand_layout.h"
#include "compiler/targets/cpu/roles.h"

namespace tilepilot::embedded {
extern const char tilepilot_cpu_types[], tilepilot_cpu_math[], tilepilot_cpu_tiles[], tilepilot_cpu_gemm[],
    tilepilot_cpu_atomics[], tilepilot_cpu_roles[];
}

namespace tilepilot::targets::cpu {
namespace {

constexpr int64_t kStackBytes = 2048;  // of one buffer, at most, that is an array of the function
constexpr const char* kAxisNames[] = {"x", "y", "z", "u", "v", "w", "r", "s"};

std::unordered_set<const ir::BufferData*> written_buffers(const ir::Kernel& kernel) {
  std::unordered_set<const ir::BufferData*> written;
  const auto add = [&](const ir::Buffer& buffer) {
    written.insert(buffer.get());
    if (buffer->base) written.insert(buffer->base.get());
  };
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        if (const auto* store = std::get_if<ir::Store>(&stmt->node)) add(store->buffer);
        for (const ir::Region* region : ir::region_accesses(stmt).writes) add(region->buffer);
      },
      [](const ir::Expr&) {});
  return written;
}

// A launch as two C++ functions: the work of one block, and the loop over blocks that the runtime calls.
class LaunchEmitter {
 public:
  LaunchEmitter(const ir::Program& program, size_t number)
      : LaunchEmitter(program, number, plan_launch(program.kernels[number])) {}

  Status run(GeneratedCode& code) {
    TRY(write_block());
    code.source += block_function();
    int64_t scratch_bytes = context_.scratch.bytes(), operations = most_operations(context_.kernel.body);
    std::vector<ir::Expr> grid = context_.kernel.grid;
    if (plan_.coarsened) {
      LaunchEmitter several(context_.program, number_, {plan_.coarsened->kernel, std::nullopt});
      TRY(several.write_block());
      coarsened_function_ = several.function_ = context_.names.fresh(function_ + "_blocks");
      code.source += several.block_function();
      scratch_bytes = std::max(scratch_bytes, several.context_.scratch.bytes());
      context_.has_streams = context_.has_streams || several.context_.has_streams;
      grid = coarsened_grid();
      operations = most_operations(several.context_.kernel.body);
      for (c::ScalarCode& each : several.context_.scalar_code) context_.note_scalar(std::move(each));
    }
    code.source += launch_function();
    code.grids.push_back(std::move(grid));
    code.scratch_bytes.push_back(scratch_bytes);
    code.operations.push_back(operations);
    code.checks.push_back(std::move(context_.checks));
    std::stable_sort(context_.scalar_code.begin(), context_.scalar_code.end(),
                     [](const c::ScalarCode& a, const c::ScalarCode& b) { return a.span.begin < b.span.begin; });
    code.scalar_code.push_back(std::move(context_.scalar_code));
    code.kernels.push_back(context_.kernel.span);
    return {};
  }

 private:
  size_t number_;
  LaunchPlan plan_;
  c::Context context_;
  std::string function_, coarsened_function_;
  std::unordered_set<const ir::BufferData*> written_;
  std::vector<std::string> parameters_;  // of the block function
  std::vector<std::string> arguments_;   // as the launch function passes them

  LaunchEmitter(const ir::Program& program, size_t number, LaunchPlan plan)
      : number_(number), plan_(std::move(plan)), context_{program, plan_.block, c::Names(prelude())} {}

  // Where coarsened blocks count as one.
  std::vector<ir::Expr> coarsened_grid() const {
    std::vector<ir::Expr> grid;
    for (size_t axis = 0; axis < context_.kernel.grid.size(); ++axis) {
      const ir::Expr& extent = context_.kernel.grid[axis];
      const int64_t count = plan_.coarsened->counts[axis];
      const ir::Expr last = ir::binary(ir::BinaryOp::add, extent, ir::int_imm(count - 1, extent->type));
      grid.push_back(count == 1 ? extent : ir::binary(ir::BinaryOp::floor_div, last, ir::int_imm(count, extent->type)));
    }
    return grid;
  }

  Status write_block() {
    learn();
    context_.layouts = choose_operand_layouts(context_.kernel);
    context_.sharing = ir::sharing_buffers(context_.kernel);
    function_ = context_.names.fresh(context_.program.name);  // the same for all launches: each has names of its own
    if (number_ > 0) function_ = context_.names.fresh(fmt::format("{}_{}", function_, number_ + 1));
    name_parameters();
    for (const ir::Buffer& buffer : context_.kernel.allocations)
      if (!context_.iteration_private.contains(buffer.get())) declare(buffer);
    emit(context_, context_.kernel.body);
    if (context_.error) return std::move(context_.error);
    if (context_.uses_events) parameters_.emplace_back("launch_events* events");
    return {};
  }

  // Ranges of variables and values of lets: each variable is bound in one place only.
  void learn() {
    const ir::Kernel& kernel = context_.kernel;
    context_.checks_tiles = true;
    context_.evaluates_both_sides = true;
    for (const auto& parameter : context_.program.parameters)
      if (const auto* var = std::get_if<ir::Var>(&parameter); var != nullptr && (*var)->type.is_int())
        context_.wide.insert(var->get());
    for (const ir::Var& symbol : context_.program.symbols) {
      context_.wide.insert(symbol.get());
      if (ir::is_extent(context_.program, symbol)) context_.facts.set_range(symbol, {0, c::kLargestGrid});
    }
    for (const ir::Var& var : kernel.block_vars) context_.wide.insert(var.get());
    ir::walk(
        kernel.body,
        [&](const ir::Stmt& stmt) {
          const auto* loop = std::get_if<ir::For>(&stmt->node);
          for (size_t k = 0; loop != nullptr && k < loop->vars.size(); ++k) context_.wide.insert(loop->vars[k].get());
        },
        [](const ir::Expr&) {});
    context_.facts.learn(kernel);
    context_.uses = count_uses(kernel.body);
    context_.iteration_private = find_private_buffers(kernel, context_.facts, context_.uses);
  }

  void name_parameters() {
    written_ = written_buffers(context_.kernel);
    size_t buffers = 0, scalars = 0;
    const auto name_buffer = [&](const ir::Buffer& buffer) {
      const std::string type = (written_.contains(buffer.get()) ? "" : "const ") + c::stored_type(buffer->type) + "*";
      parameters_.push_back(fmt::format("{} {}", type, context_.names.of(buffer)));
      arguments_.push_back(fmt::format("static_cast<{}>(buffers[{}])", type, buffers++));
    };
    for (const auto& parameter : context_.program.parameters) {
      if (const auto* buffer = std::get_if<ir::Buffer>(&parameter))
        name_buffer(*buffer);
      else
        name_scalar(std::get<ir::Var>(parameter), scalars++);
    }
    for (const ir::Buffer& workspace : context_.program.workspaces) name_buffer(workspace);
    for (const ir::Var& symbol : context_.program.symbols) name_scalar(symbol, scalars++);
    for (const ir::Var& var : context_.kernel.block_vars) parameters_.push_back("int64_t " + context_.names.of(var));
    parameters_.push_back("char* scratch");
  }

  void name_scalar(const ir::Var& var, size_t place) {
    const std::string type = var->type.is_int() ? "int64_t" : c::computed_type(var->type);
    parameters_.push_back(fmt::format("{} {}", type, context_.names.of(var)));
    const std::string bits = fmt::format("scalars[{}]", place);
    const std::string real = fmt::format("__builtin_bit_cast(double, {})", bits);
    arguments_.push_back(var->type.is_small_float()
                             ? fmt::format("to_float(convert<{}>({}))", c::stored_type(var->type), real)
                         : var->type.is_float() ? fmt::format("{}({})", type, real)
                         : var->type.is_bool()  ? bits + " != 0"
                                                : bits);
  }

  // The memory of another buffer by another type and shape. Generated code is compiled without type-based aliasing.
  void declare_view(const ir::Buffer& buffer) {
    const std::string type = c::stored_type(buffer->type);
    const bool written = buffer->scope != ir::Scope::global || written_.contains(buffer->base.get());
    context_.declarations.line("{0}{1}* {2} = reinterpret_cast<{0}{1}*>({3});", written ? "" : "const ", type,
                               context_.names.of(buffer), context_.names.of(buffer->base));
  }

  // A pointer that is what the buffer with the address holds at the time.
  void declare_by_address(const ir::Buffer& buffer) {
    const std::string type = c::stored_type(buffer->type);
    context_.declarations.line("{0}*& {1} = reinterpret_cast<{0}*&>({2}[0]);", type, context_.names.of(buffer),
                               context_.names.of(buffer->address));
  }

  void declare(const ir::Buffer& buffer) {
    if (buffer->scope == ir::Scope::barrier) return declare_barriers(context_, buffer);
    if (buffer->base) return declare_view(buffer);
    if (buffer->address) return declare_by_address(buffer);
    int64_t elements = 1;
    std::string shape;
    for (const int64_t extent : c::extents(buffer)) {
      elements *= extent;
      shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
    }
    ir::DType type = buffer->type;
    std::string note = fmt::format("{} [{}]", ir::to_string(buffer->scope), shape);
    if (const auto layout = context_.layouts.find(buffer.get()); layout != context_.layouts.end()) {
      elements = packed_elements(buffer, layout->second);
      type = layout->second.computed;
      note += layout->second.is_b ? ", packed in panels" : ", packed in rows";
    }
    const std::string &name = context_.names.of(buffer), cpp = c::stored_type(type);
    if (elements * type.bytes() <= kStackBytes)
      context_.declarations.line("alignas(64) {} {}[{}];  // {}", cpp, name, elements, note);
    else
      context_.declarations.line("{0}*{4} {1} = reinterpret_cast<{0}*>(scratch + {2});  // {3}", cpp, name,
                                 context_.scratch.reserve(elements * type.bytes()), note,
                                 context_.sharing.contains(buffer.get()) ? "" : " __restrict");
  }

  std::string block_function() const {
    return fmt::format("\nstatic void {}({}) {{\n{}{}}}\n", function_, fmt::join(parameters_, ", "),
                       context_.declarations.text(), context_.body.text());
  }

  // Blocks are numbered with the first axis fastest.
  std::string launch_function() {
    c::Writer out;
    out.put("");
    out.open(
        "extern \"C\" void tp_launch_{}(void* const* buffers, const int64_t* scalars, int64_t first_block, "
        "int64_t last_block, void* scratch, [[maybe_unused]] launch_events* events)",
        number_);
    for (size_t place = 0; place < scalar_names().size(); ++place)
      out.line("[[maybe_unused]] const int64_t {} = scalars[{}];", scalar_names()[place], place);
    plan_.coarsened ? write_coarsened_blocks(out) : write_blocks(out);
    if (context_.has_streams) out.line("end_streams();");
    out.close();
    return out.text();
  }

  // "block % blocks_x", "block / blocks_x": where a block stands along each axis.
  static std::vector<std::string> positions(size_t axes) {
    std::vector<std::string> blocks;
    std::string divisor;
    for (size_t axis = 0; axis < axes; ++axis) {
      std::string block = "block" + divisor;
      if (axis + 1 < axes) block += fmt::format(" % blocks_{}", kAxisNames[axis]);
      divisor += fmt::format(" / blocks_{}", kAxisNames[axis]);
      blocks.push_back(block);
    }
    return blocks;
  }

  std::string call(const std::string& function, const std::vector<std::string>& blocks) const {
    return fmt::format("{}({}{}{}, static_cast<char*>(scratch){});", function, fmt::join(arguments_, ", "),
                       arguments_.empty() ? "" : ", ", fmt::join(blocks, ", "), context_.uses_events ? ", events" : "");
  }

  void write_blocks(c::Writer& out) {
    const size_t axes = context_.kernel.grid.size();
    for (size_t axis = 0; axis + 1 < axes; ++axis)
      out.line("const int64_t blocks_{} = {};", kAxisNames[axis], index(context_, context_.kernel.grid[axis]));
    out.open("for (int64_t block = first_block; block < last_block; ++block)");
    if (context_.uses_events) out.line("events->block = block;");
    out.put(call(function_, positions(axes)));
    if (context_.uses_events) out.line("if (events->failed != 0) break;");
    out.close();
  }

  // A box of blocks at a time: together, or one by one where the grid ends inside it.
  void write_coarsened_blocks(c::Writer& out) {
    const std::vector<ir::Expr> grid = coarsened_grid();
    const std::vector<std::string> boxes = positions(grid.size());
    std::vector<std::string> blocks, fits;
    for (size_t axis = 0; axis < grid.size(); ++axis) {
      out.line("[[maybe_unused]] const int64_t blocks_{0} = {1}, end_{0} = {2};", kAxisNames[axis],
               index(context_, grid[axis]), index(context_, context_.kernel.grid[axis]));
      blocks.push_back(fmt::format("at_{}", kAxisNames[axis]));
    }
    out.open("for (int64_t block = first_block; block < last_block; ++block)");
    for (size_t axis = 0; axis < grid.size(); ++axis) {
      const int64_t count = plan_.coarsened->counts[axis];
      out.line("const int64_t {} = {} * {};", blocks[axis], boxes[axis], count);
      if (count > 1) fits.push_back(fmt::format("{} + {} <= end_{}", blocks[axis], count, kAxisNames[axis]));
    }
    out.open("if ({})", fmt::join(fits, " && "));
    out.put(call(coarsened_function_, blocks));
    out.line("continue;");
    out.close();
    int opened = 0;
    for (size_t axis = grid.size(); axis-- > 0;) {
      const int64_t count = plan_.coarsened->counts[axis];
      if (count == 1) continue;
      const std::string first = std::exchange(blocks[axis], fmt::format("b_{}", kAxisNames[axis]));
      out.open("for (int64_t {0} = {1}; {0} < min_of<int64_t>({1} + {2}, end_{3}); ++{0})", blocks[axis], first, count,
               kAxisNames[axis]);
      ++opened;
    }
    out.put(call(function_, blocks));
    for (; opened > 0; --opened) out.close();
    out.close();
  }

  // The integer scalars' names by place in `scalars`, for the extents of the grid.
  std::vector<std::string> scalar_names() {
    std::vector<std::string> names;
    for (const auto& parameter : context_.program.parameters)
      if (const auto* var = std::get_if<ir::Var>(&parameter)) names.push_back(context_.names.of(*var));
    for (const ir::Var& symbol : context_.program.symbols) names.push_back(context_.names.of(symbol));
    return names;
  }
};

}  // namespace

Result<GeneratedCode> generate(const ir::Program& program) {
  GeneratedCode code;
  for (const ir::Kernel& kernel : program.kernels)
    if (ir::shares_in_cluster(kernel.body))
      return make_error(DiagnosticKind::unsupported_tile_feature, kernel.span,
                        "blocks of a cluster share memory here, and this target runs one block after another",
                        "use the target cuda:sm_90a or emulate:sm_90a");
  code.source = fmt::format("// {}: {} launch{}.\n", program.name, program.kernels.size(),
                            program.kernels.size() == 1 ? "" : "es");
  for (size_t k = 0; k < program.kernels.size(); ++k) { TRY(LaunchEmitter(program, k).run(code)); }
  return code;
}

const std::string& prelude() {
  static const std::string text = std::string(embedded::tilepilot_cpu_types) + embedded::tilepilot_cpu_math +
                                  embedded::tilepilot_cpu_tiles + embedded::tilepilot_cpu_gemm +
                                  embedded::tilepilot_cpu_atomics + embedded::tilepilot_cpu_roles;
  return text;
}

}  // namespace tilepilot::targets::cpu
