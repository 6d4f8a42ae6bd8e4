#include "compiler/export/signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/export/c_names.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"

namespace tilepilot::exporting {
namespace {

ir::Effects effects_of_program(const ir::Program& program) {
  ir::Effects effects;
  for (const ir::Kernel& kernel : program.kernels) effects.add(ir::memory_effects_of(kernel.body));
  return effects;
}

std::vector<std::string> texts_of(const std::vector<ir::Expr>& exprs) {
  std::vector<std::string> texts;
  for (const ir::Expr& expr : exprs) texts.push_back(ir::to_text(expr));
  return texts;
}

std::string declared(const Argument& argument) {
  if (argument.kind == Argument::Kind::extent) return "int64_t " + argument.name;
  if (argument.kind == Argument::Kind::number) return number_type(argument.type) + " " + argument.name;
  return fmt::format("{}{}* {}", argument.is_written ? "" : "const ", element_type(argument.type), argument.name);
}

bool is_tensor(const Argument& argument) { return argument.kind == Argument::Kind::tensor; }

}  // namespace

Result<Function> function_of(const ir::Program& program, std::string name, std::string comment) {
  Function function{std::move(name), std::move(comment), {}};
  UniqueNames names(names_around());
  const ir::Effects effects = effects_of_program(program);
  bool writes = false;
  for (const auto& parameter : program.parameters) {
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) {
      const ir::BufferData& data = **buffer;
      Argument argument{Argument::Kind::tensor, names.of(identifier_of(data.name)), data.type, data.shape,
                        data.strides};
      argument.is_read = effects.reads.contains(buffer->get());
      argument.is_written = effects.writes.contains(buffer->get());
      writes = writes || argument.is_written;
      function.arguments.push_back(std::move(argument));
      continue;
    }
    const ir::Var& variable = std::get<ir::Var>(parameter);
    function.arguments.push_back({Argument::Kind::number, names.of(identifier_of(variable->name)), variable->type});
    function.arguments.back().variable = variable;
  }
  for (const ir::Var& symbol : program.symbols) {
    const bool is_extent = ir::is_extent(program, symbol);  // else a stride
    function.arguments.push_back({is_extent ? Argument::Kind::extent : Argument::Kind::number,
                                  names.of(identifier_of(symbol->name)), ir::kInt64});
    function.arguments.back().variable = symbol;
  }
  if (writes) return function;
  return make_error(DiagnosticKind::invalid_jit, program.span,
                    fmt::format("`{}` writes none of its tensors: its caller would get nothing", program.name),
                    "export kernels that have an output");
}

HostNames host_names(const Function& function) {
  HostNames names;
  for (const Argument& argument : function.arguments)
    if (argument.variable) names.add(argument.variable, argument.name);
  return names;
}

std::string prefixed(const Library& library, const Function& function) { return library.name + "_" + function.name; }

std::string parameter_list(const Function& function) {
  std::string list;
  for (const Argument& argument : function.arguments) list += declared(argument) + ", ";
  return list + "void* workspace, void* stream";
}

std::string size_parameter_list(const Function& function) {
  std::vector<std::string> list;
  for (const Argument& argument : function.arguments)
    if (!is_tensor(argument)) list.push_back(declared(argument));
  return list.empty() ? "void" : fmt::format("{}", fmt::join(list, ", "));
}

std::string size_arguments(const Function& function) {
  std::vector<std::string> list;
  for (const Argument& argument : function.arguments)
    if (!is_tensor(argument)) list.push_back(argument.name);
  return fmt::format("{}", fmt::join(list, ", "));
}

std::string described(const Argument& argument) {
  const std::string type = ir::to_string(argument.type);
  if (argument.kind == Argument::Kind::extent) return fmt::format("{}: an extent", argument.name);
  if (argument.kind == Argument::Kind::number) return fmt::format("{}: {}", argument.name, type);
  std::string text = fmt::format("{}: {}[{}]", argument.name, type, fmt::join(texts_of(argument.shape), ", "));
  if (!argument.strides.empty()) text += fmt::format(" with strides ({})", fmt::join(texts_of(argument.strides), ", "));
  if (argument.type.is_nibble()) text += ", two elements a byte";
  return text + (argument.is_written ? argument.is_read ? ", read and written" : ", written" : ", read");
}

Result<std::string> argument_checks(const Function& function, const std::string& full_name) {
  const HostNames names = host_names(function);
  std::string text;
  for (const Argument& argument : function.arguments)
    if (argument.kind == Argument::Kind::extent)
      text += fmt::format(
          "  if (const int tp_status = exported::check_extent(\"{0}\", \"{1}\", {1}); tp_status != 0) return "
          "tp_status;\n",
          full_name, argument.name);
  for (const Argument& argument : function.arguments) {
    if (!is_tensor(argument)) continue;
    text += fmt::format(
        "  if (const int tp_status = exported::check_tensor(\"{0}\", \"{1}\", {1}, {2}); tp_status != 0) return "
        "tp_status;\n",
        full_name, argument.name, TRY(names.product(argument.shape)));
  }
  return text;
}

Result<std::string> bytes_of(const ir::BufferData& buffer, const HostNames& names) {
  return fmt::format("exported::times(INT64_C({}), exported::most(0, {}))", buffer.type.bytes(),
                     TRY(names.product(buffer.shape)));
}

}  // namespace tilepilot::exporting
