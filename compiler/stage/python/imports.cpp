// import and from ... import.
#include <fmt/format.h>

#include "compiler/stage/python/evaluator.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/modules/system.h"
#include "compiler/stage/python/objects/exceptions.h"
#include "compiler/stage/python/objects/foreign.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

using namespace syntax;

// Null if there is no such module.
Result<std::shared_ptr<ModuleObject>> Evaluator::find_module(const std::string& name, Span span) {
  if (auto known = interpreter_.find_module(name)) return known;
  if (auto standard = interpreter_.core_->standard_module(name)) return standard;
  Importer* importer = interpreter_.importer();
  if (importer) {
    if (auto imported = TRY(importer->find(interpreter_, name, span))) return imported;
  }
  std::string_view top = std::string_view(name).substr(0, name.find('.'));
  if (!is_forbidden_module(top, importer != nullptr)) return std::shared_ptr<ModuleObject>();
  return make_outside_module(interpreter_, name, importer != nullptr);
}

// A program that catches the failure of an import wants to know that the module is not here. Any other script may
// import what nobody has; the error comes when it uses it.
Result<std::shared_ptr<ModuleObject>> Evaluator::import_one(const std::string& name, IfMissing if_missing, Span span) {
  if (auto found = TRY(find_module(name, span))) return found;
  Importer* importer = interpreter_.importer();
  if (importer && if_missing == IfMissing::stand_in && !activation_.catches_import_errors) {
    if (auto stand_in = importer->stand_in(name, span)) return stand_in;
  }
  return make_error(DiagnosticKind::unknown_module, span, fmt::format("no module named '{}' is available here", name));
}

// Imports `a`, `a.b` and `a.b.c` for "a.b.c", each an attribute of the one before; returns the last.
Result<std::shared_ptr<ModuleObject>> Evaluator::import_path(const std::string& name, IfMissing if_missing, Span span) {
  std::shared_ptr<ModuleObject> parent;
  for (size_t end = 0; end != std::string::npos;) {
    end = name.find('.', end == 0 ? 0 : end + 1);
    std::string path = name.substr(0, end);
    std::shared_ptr<ModuleObject> module = TRY(import_one(path, if_missing, span));
    if (parent) {
      Name last(std::string_view(path).substr(path.rfind('.') + 1));
      if (!parent->members.find(last)) parent->members.set(last, module);
    }
    parent = std::move(module);
  }
  return parent;
}

Result<Flow> Evaluator::visit(const ImportStmt& node, Span) {
  for (const ImportAlias& alias : node.names) {
    std::shared_ptr<ModuleObject> module = TRY(import_path(alias.name, IfMissing::stand_in, alias.span));
    if (alias.as.id()) {
      bind(alias.as, module);
      continue;
    }
    std::string top = alias.name.substr(0, alias.name.find('.'));
    bind(Name(top), TRY(import_one(top, IfMissing::stand_in, alias.span)));
  }
  return Flow::normal;
}

// The package that one dot means; "" at the top level, where it means the folder of the script.
Result<std::string> Evaluator::relative_base(int level, Span span) {
  if (!interpreter_.importer()) {
    return make_error(DiagnosticKind::unknown_module, span,
                      "relative imports are not available: a program is one file");
  }
  const Value* own = activation_.globals->members.find(Name("__package__"));
  std::string package = own && own->if_string() ? *own->if_string() : "";
  for (; level > 1; --level) {
    if (package.empty()) {
      return make_error(DiagnosticKind::unknown_module, span, "the relative import leaves the script's folder");
    }
    size_t dot = package.rfind('.');
    package.resize(dot == std::string::npos ? 0 : dot);
  }
  return package;
}

Result<Flow> Evaluator::visit(const ImportFromStmt& node, Span span) {
  std::string name = node.module;
  if (node.level > 0) {
    name = TRY(relative_base(node.level, span));
    if (!node.module.empty()) name += (name.empty() ? "" : ".") + node.module;
  }
  auto module = std::make_shared<ModuleObject>(name);  // stays for `from . import ...` at the top level
  IfMissing if_missing = node.level == 0 ? IfMissing::stand_in : IfMissing::fail;
  if (!name.empty()) module = TRY(import_path(name, if_missing, span));
  TRY(import_names(module, name, node));
  return Flow::normal;
}

// A package of the host has what programs were seen to use: a script may import more, and fails where it uses it.
bool Evaluator::may_lack_names(const std::string& module) const {
  const bool of_host = interpreter_.find_module(module.substr(0, module.find('.'))) != nullptr;
  return of_host && interpreter_.importer() && !activation_.catches_import_errors;
}

Status Evaluator::import_names(const std::shared_ptr<ModuleObject>& module, const std::string& module_name,
                               const ImportFromStmt& node) {
  for (const ImportAlias& alias : node.names) {
    if (alias.name == "*") {
      for (Name each : std::vector<Name>(module->members.names())) {
        if (each.text().front() != '_') bind(each, *module->members.find(each));
      }
      // Whatever nobody defines may have come from there.
      if (is_foreign_module(interpreter_, *module)) activation_.globals->missing = module->missing;
      continue;
    }
    Name name(alias.name);
    Name bound = alias.as.id() ? alias.as : name;
    auto member = module->get_attribute(interpreter_, name, alias.span);
    if (member.ok()) {
      bind(bound, *std::move(member));
      continue;
    }
    Error error = std::move(member).take_error();
    if (error->kind != DiagnosticKind::unknown_attribute) return error;
    if (auto submodule =
            TRY(find_module(module_name.empty() ? alias.name : module_name + "." + alias.name, alias.span))) {
      bind(bound, submodule);
      continue;
    }
    if (may_lack_names(module_name)) {
      bind(bound, Value(std::make_shared<ForeignObject>(fmt::format("{}.{}", module_name, alias.name), module_name,
                                                        alias.span, error->hint)));
      continue;
    }
    error->message = fmt::format("cannot import name '{}' from '{}'", alias.name, module_name);
    error->thrown = make_exception(interpreter_, "ImportError", {Value(error->message)});
    return error;
  }
  return {};
}

}  // namespace tilepilot::stage
