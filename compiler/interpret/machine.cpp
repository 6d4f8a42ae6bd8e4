#include "compiler/interpret/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/interpret/block.h"
#include "compiler/ir/one_symbol.h"

namespace tilepilot::interpret {
namespace {

class Machine {
 public:
  Machine(const ir::Program& program, const Options& options) : program_(program), session_(options) {}

  std::optional<Fault> run(const std::vector<Argument>& arguments) {
    bind(arguments);
    for (const ir::Buffer& buffer : program_.workspaces) allocate(buffer);
    for (const ir::Kernel& kernel : program_.kernels) {
      if (!session_.stopped()) launch(kernel);
    }
    return session_.take_fault();
  }

 private:
  const ir::Program& program_;
  Session session_;
  Scope scope_;
  std::vector<Storage> workspaces_;

  void bind(const std::vector<Argument>& arguments) {
    if (arguments.size() != program_.parameters.size())
      return fail(fmt::format("{} arguments for {} parameters", arguments.size(), program_.parameters.size()));
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (const auto* buffer = std::get_if<ir::Buffer>(&program_.parameters[k]))
        bind_tensor(**buffer, arguments[k]);
      else
        bind_scalar(*std::get<ir::Var>(program_.parameters[k]), arguments[k]);
    }
    for (const auto& parameter : program_.parameters) {
      const auto* buffer = std::get_if<ir::Buffer>(&parameter);
      if (buffer && !session_.stopped()) bind_free_strides(**buffer);
    }
    for (const ir::Var& symbol : program_.symbols) {
      if (!scope_.find(symbol.get())) return fail(fmt::format("no argument binds `{}`", symbol->name));
    }
    for (const auto& parameter : program_.parameters) {
      const auto* buffer = std::get_if<ir::Buffer>(&parameter);
      if (buffer && !session_.stopped()) check_shape(**buffer);
    }
  }

  void fail(std::string message) { session_.fail({FaultKind::bad_arguments, program_.span, std::move(message)}); }

  void bind_tensor(const ir::BufferData& buffer, const Argument& argument) {
    const auto* view = std::get_if<View>(&argument);
    if (!view || view->type != buffer.type || view->shape.size() != buffer.rank())
      return fail(fmt::format("`{}` is another tensor", buffer.name));
    scope_.buffers[&buffer] = {view->type, view->shape, view->strides, static_cast<std::byte*>(view->data),
                               nullptr,    true};
    const bool is_empty = std::find(view->shape.begin(), view->shape.end(), 0) != view->shape.end();
    for (size_t axis = 0; axis < buffer.rank(); ++axis) bind_symbol(buffer.shape[axis], view->shape[axis]);
    for (size_t axis = 0; axis < buffer.strides.size(); ++axis)
      if (view->shape[axis] != 1 && !is_empty) bind_symbol(buffer.strides[axis], view->strides[axis]);
  }

  // Strides of axes that nobody steps along say nothing, but their symbols need a value.
  void bind_free_strides(const ir::BufferData& buffer) {
    const Memory& memory = scope_.find(&buffer);
    for (size_t axis = 0; axis < buffer.strides.size(); ++axis) bind_symbol(buffer.strides[axis], memory.strides[axis]);
  }

  // The first place that determines a symbol counts.
  void bind_symbol(const ir::Expr& size, int64_t actual) {
    const auto form = ir::one_symbol(size);
    const auto& symbols = program_.symbols;
    if (!form || std::find(symbols.begin(), symbols.end(), form->symbol) == symbols.end()) return;
    if (const auto value = form->solve(actual))
      scope_.vars.emplace(form->symbol.get(), Element::integer(form->symbol->type, *value));
  }

  void bind_scalar(const ir::VarData& var, const Argument& argument) {
    const auto* integer = std::get_if<int64_t>(&argument);
    const auto* real = std::get_if<double>(&argument);
    if (!var.type.is_float() && integer) {
      scope_.vars[&var] = Element::integer(var.type, *integer);
    } else if (var.type.is_float() && (integer || real)) {
      scope_.vars[&var] = Element::real(var.type, integer ? static_cast<double>(*integer) : *real);
    } else {
      fail(fmt::format("`{}` is another kind of value", var.name));
    }
  }

  void check_shape(const ir::BufferData& buffer) {
    const Indices shape = Evaluator(session_, scope_).integers(buffer.shape);
    if (shape != scope_.find(&buffer).shape) fail(fmt::format("`{}` has another shape", buffer.name));
  }

  void allocate(const ir::Buffer& buffer) {
    if (session_.stopped()) return;
    const Indices shape = Evaluator(session_, scope_).integers(buffer->shape);
    // Moving a storage leaves its bytes where they are.
    workspaces_.push_back(storage_for(buffer->type, shape));
    scope_.buffers[buffer.get()] = memory_in(workspaces_.back(), buffer->type, shape, true);
  }

  void launch(const ir::Kernel& kernel) {
    const Indices grid = Evaluator(session_, scope_).integers(kernel.grid);
    std::vector<Indices> blocks;
    each({grid.rbegin(), grid.rend()}, [&](const Indices& at) { blocks.push_back({at.rbegin(), at.rend()}); });
    session_.arrange(blocks);
    const CollectiveGroups groups = collective_groups(session_, kernel);
    for (const Indices& at : blocks) {
      if (session_.stopped()) return;
      Block(session_, kernel, groups, scope_, at).run();
    }
  }
};

// A copy of a tensor's memory, to run on in its place.
struct Copied {
  std::vector<std::byte> bytes;
  View view;

  explicit Copied(const View& original) : view(original) {
    int64_t last = count(original.shape) == 0 ? -1 : 0;
    for (size_t axis = 0; last >= 0 && axis < original.shape.size(); ++axis)
      last += (original.shape[axis] - 1) * original.strides[axis];
    bytes.resize(bytes_of(original.type, last + 1));
    if (!bytes.empty()) std::memcpy(bytes.data(), original.data, bytes.size());
    view.data = bytes.data();
  }
};

Memory memory_of(const View& view) {
  return {view.type, view.shape, view.strides, static_cast<std::byte*>(view.data), nullptr, true};
}

// The number of the first element that differs.
std::optional<int64_t> difference(const View& a, const View& b) {
  std::optional<int64_t> found;
  int64_t number = 0;
  const Memory one = memory_of(a), other = memory_of(b);
  each(a.shape, [&](const Indices& at) {
    const int64_t place = *one.place(at);
    if (!found && !same(one.read(place), other.read(place))) found = number;
    ++number;
  });
  return found;
}

}  // namespace

std::optional<Fault> run(const ir::Program& program, const std::vector<Argument>& arguments, const Options& options) {
  return Machine(program, options).run(arguments);
}

std::optional<Fault> run_twice(const ir::Program& program, const std::vector<Argument>& arguments,
                               const Options& options) {
  std::vector<Copied> copies;
  std::vector<Argument> again = arguments;
  for (const Argument& argument : arguments) {
    if (const auto* view = std::get_if<View>(&argument)) copies.emplace_back(*view);
  }
  size_t next = 0;
  for (Argument& argument : again) {
    if (std::holds_alternative<View>(argument)) argument = copies[next++].view;
  }
  if (auto fault = run(program, arguments, options)) return fault;
  Options shuffled = options;
  shuffled.schedule = options.schedule + 1;
  if (auto fault = run(program, again, shuffled)) return fault;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const auto* view = std::get_if<View>(&arguments[k]);
    const auto element = view ? difference(*view, std::get<View>(again[k])) : std::nullopt;
    if (!element) continue;
    const std::string& name = std::get<ir::Buffer>(program.parameters[k])->name;
    return Fault{FaultKind::race, program.span,
                 fmt::format("element {} of `{}` depends on the order of threads or blocks", *element, name)};
  }
  return std::nullopt;
}

}  // namespace tilepilot::interpret
