#include "compiler/targets/c/events.h"
#include "compiler/targets/c/expr.h"
#include "compiler/targets/cpu/emit.h"

namespace tilepilot::targets::cpu {
namespace {

struct Names {
  std::string_view plain, keeps_nan;
};
// By ReduceOp.
constexpr Names kReductions[] = {
    {"sum_reduction", "sum_reduction"},
    {"max_reduction", "keeps_nan<max_reduction>"},
    {"min_reduction", "keeps_nan<min_reduction>"},
    {"abs_sum_reduction", "abs_sum_reduction"},
    {"abs_max_reduction", "keeps_nan<abs_max_reduction>"},
    {"and_reduction", "and_reduction"},
    {"or_reduction", "or_reduction"},
    {"xor_reduction", "xor_reduction"},
};

std::string_view reduction(const ir::Reduce& reduce) {
  const Names& names = kReductions[static_cast<size_t>(reduce.op)];
  return reduce.nan_propagate ? names.keeps_nan : names.plain;
}

ir::Expr shifted(const ir::Expr& start, const ir::Var& var) {
  const ir::Expr step = ir::cast(ir::var_ref(var), start->type);
  return ir::constant_int(start) == 0 ? step : ir::binary(ir::BinaryOp::add, start, step);
}

class ReduceEmitter {
 public:
  ReduceEmitter(c::Context& context, const ir::Reduce& reduce) : context_(context), reduce_(reduce) {}

  void run() {
    const size_t axis = static_cast<size_t>(reduce_.axis);
    const size_t rank = reduce_.source.extent.size();
    // The axis along memory that one call works on: the reduced one, or the last.
    const bool along_rows = axis + 1 == rank;
    size_t loops = 0;
    for (size_t k = 0; k < rank; ++k)
      if (k != axis && (along_rows || k + 1 != rank)) loops += open(k);
    call(axis, along_rows);
    for (size_t k = 0; k < loops; ++k) context_.body.close();
  }

 private:
  c::Context& context_;
  const ir::Reduce& reduce_;
  std::unordered_map<size_t, ir::Var> vars_;  // by axis of the source

  bool open(size_t axis) {
    if (reduce_.source.extent[axis] == 1) return false;
    const ir::Var var = ir::make_var(fmt::format("r{}", axis), ir::kInt64);
    context_.wide.insert(var.get());
    context_.facts.set_range(var, {0, reduce_.source.extent[axis] - 1});
    context_.body.open("for (int64_t {0} = 0; {0} < {1}; ++{0})", context_.names.of(var), reduce_.source.extent[axis]);
    vars_[axis] = var;
    return true;
  }

  ir::Expr at(const ir::Expr& start, size_t source_axis) const {
    const auto found = vars_.find(source_axis);
    return found == vars_.end() ? start : shifted(start, found->second);
  }

  std::string source_address() {
    std::vector<ir::Expr> indices;
    for (size_t k = 0; k < reduce_.source.start.size(); ++k) indices.push_back(at(reduce_.source.start[k], k));
    return address(context_, reduce_.source.buffer, indices);
  }

  std::string destination_address() {
    const ir::Region& to = reduce_.destination;
    const bool keeps_axis = to.extent.size() == reduce_.source.extent.size();
    std::vector<ir::Expr> indices;
    for (size_t k = 0; k < to.start.size(); ++k) {
      const size_t source_axis = keeps_axis || k < static_cast<size_t>(reduce_.axis) ? k : k + 1;
      indices.push_back(at(to.start[k], source_axis));
    }
    return address(context_, to.buffer, indices);
  }

  void call(size_t axis, bool along_rows) {
    const ir::Region& from = reduce_.source;
    const std::string accumulator = c::computed_type(reduce_.destination.buffer->type);
    const std::string to = destination_address(), source = source_address();
    if (along_rows) {
      context_.body.line("reduce_row<{}, {}>({}, {}, {}, {});", reduction(reduce_), accumulator, to, source,
                         from.extent[axis], reduce_.clear);
      return;
    }
    context_.body.line("reduce_columns<{}, {}>({}, rows<const {}>{{{}, {}}}, {}, {}, {});", reduction(reduce_),
                       accumulator, to, c::stored_type(from.buffer->type), source, strides(context_, from.buffer)[axis],
                       from.extent[axis], from.extent.back(), reduce_.clear);
  }
};

}  // namespace

void emit_reduce(c::Context& context, const ir::Reduce& reduce, Span span) {
  for (const ir::Region* region : {&reduce.source, &reduce.destination}) {
    if (region->buffer->scope == ir::Scope::global)
      return context.fail(span, fmt::format("`{}` is a global tensor; reductions work on tiles", region->buffer->name),
                          "copy it to a fragment first");
    if (region->buffer->type.is_bool())
      return context.fail(span, fmt::format("reduction of the bool buffer `{}`", region->buffer->name),
                          "cast it to an integer type first");
  }
  context.body.line("// reduce {} -> {}", reduce.source.buffer->name, reduce.destination.buffer->name);
  check_inside(context, reduce.source);
  check_inside(context, reduce.destination);
  ReduceEmitter(context, reduce).run();
}

}  // namespace tilepilot::targets::cpu
