#include "compiler/stage/python/script_importer.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/source/file.h"
#include "compiler/stage/python/objects/foreign.h"
#include "compiler/syntax/parser.h"

namespace tilepilot::embedded {
extern const char tilepilot_argparse[];
extern const char tilepilot_argparse_help[];
extern const char tilepilot_logging[];
extern const char tilepilot_packaging[];
extern const char tilepilot_packaging_version[];
extern const char tilepilot_pytest[];
extern const char tilepilot_random[];
extern const char tilepilot_tqdm[];
}  // namespace tilepilot::embedded

namespace tilepilot::stage {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNotes = 5;

// Modules of the standard library that are written in Python.
constexpr EmbeddedModule kStandard[] = {
    {"argparse", embedded::tilepilot_argparse},
    {"_argparse_help", embedded::tilepilot_argparse_help},
    {"logging", embedded::tilepilot_logging},
    {"packaging", embedded::tilepilot_packaging},
    {"packaging.version", embedded::tilepilot_packaging_version},
    {"pytest", embedded::tilepilot_pytest},
    {"random", embedded::tilepilot_random},
    {"tqdm", embedded::tilepilot_tqdm},
    {"tqdm.auto", embedded::tilepilot_tqdm},
};

fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path result = fs::weakly_canonical(fs::absolute(path), error);
  return error ? fs::absolute(path).lexically_normal() : result;
}

// "a.b" and "c" of "a.b.c".
std::pair<std::string, std::string> split(const std::string& name) {
  size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {"", name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

ScriptImporter::ScriptImporter(const fs::path& script, std::vector<EmbeddedModule> modules)
    : embedded_(std::move(modules)),
      folder_(script.parent_path()),
      root_(resolved(fs::absolute(script).parent_path())) {
  embedded_.insert(embedded_.end(), std::begin(kStandard), std::end(kStandard));
}

Result<std::shared_ptr<ModuleObject>> ScriptImporter::find(Interpreter& interpreter, const std::string& name,
                                                           Span span) {
  const auto [parent, last] = split(name);
  Found found = look_in(folders(interpreter, parent, span), last);
  if (found.file.empty() && found.package.empty()) return load_embedded(interpreter, name, span);
  ModuleRef module = TRY(load(interpreter, name, found, span));
  if (auto package = packages_.find(parent); package != packages_.end()) package->second.module->set(last, module);
  return module;
}

std::shared_ptr<ModuleObject> ScriptImporter::stand_in(const std::string& name, Span span) {
  ModuleRef& known = stand_ins_[name];
  if (!known) known = make_foreign_module(name, span);
  return known;
}

// Where a module of that package may lie; the top level is sys.path and the folder of the importing file.
std::vector<fs::path> ScriptImporter::folders(Interpreter& interpreter, const std::string& parent, Span span) const {
  if (!parent.empty()) {
    auto package = packages_.find(parent);
    return package == packages_.end() ? std::vector<fs::path>() : std::vector<fs::path>{package->second.folder};
  }
  std::vector<fs::path> result;
  auto sys = interpreter.find_module("sys");
  const Value* path = sys ? sys->members.find(Name("path")) : nullptr;
  if (const std::vector<Value>* entries = path ? sequence_items(*path) : nullptr) {
    for (const Value& entry : *entries) {
      if (auto* folder = entry.if_string()) result.push_back(fs::absolute(folder->empty() ? "." : *folder));
    }
  }
  if (span.valid()) result.push_back(fs::absolute(interpreter.sources().name(span.file)).parent_path());
  return result;
}

ScriptImporter::Found ScriptImporter::look_in(const std::vector<fs::path>& folders, const std::string& last) {
  for (const fs::path& folder : folders) {
    if (is_file(folder / last / "__init__.py")) return {folder / last / "__init__.py", folder / last};
    if (is_file(folder / (last + ".py"))) return {folder / (last + ".py"), {}};
  }
  for (const fs::path& folder : folders) {
    if (is_folder(folder / last)) return {{}, folder / last};
  }
  return {};
}

Result<std::shared_ptr<ModuleObject>> ScriptImporter::load(Interpreter& interpreter, const std::string& name,
                                                           const Found& found, Span span) {
  const fs::path file = resolved(found.file.empty() ? found.package : found.file);
  if (auto known = modules_.find(file.string()); known != modules_.end()) return known->second;
  if (!is_near(file)) {
    return make_error(
        DiagnosticKind::forbidden, span,
        fmt::format("`import {}` is not allowed: `{}` lies neither in the script's folder nor in one beside it", name,
                    shown_name(file)),
        "move it beside the script");
  }
  syntax::ModuleRef tree;
  ModuleRef module;
  if (found.file.empty()) {
    module = std::make_shared<ModuleObject>(name);
    interpreter.watch(module);
  } else {
    Text source{shown_name(file), ""};
    if (!read_file(file, source.text)) {
      return make_error(DiagnosticKind::unknown_module, span, fmt::format("`{}` cannot be read", source.shown_name));
    }
    tree = TRY(parse(interpreter, std::move(source), span));
    module = interpreter.make_module(tree, name);
  }
  module->set("__package__", Value(found.package.empty() ? split(name).first : name));
  modules_[file.string()] = module;
  if (!found.package.empty()) packages_[name] = {module, resolved(found.package)};
  Status ran = tree ? run(interpreter, tree, module, span) : Status();
  if (ran.ok()) return module;
  modules_.erase(file.string());
  packages_.erase(name);
  return std::move(ran).take_error();
}

Result<std::shared_ptr<ModuleObject>> ScriptImporter::load_embedded(Interpreter& interpreter, const std::string& name,
                                                                    Span span) {
  auto row = std::find_if(embedded_.begin(), embedded_.end(), [&](const auto& each) { return each.name == name; });
  if (row == embedded_.end()) return ModuleRef();
  const std::string shown_name = fmt::format("<{}>", name);
  if (auto known = modules_.find(shown_name); known != modules_.end()) return known->second;
  syntax::ModuleRef tree = TRY(parse(interpreter, {shown_name, row->text}, span));
  ModuleRef module = modules_[shown_name] = interpreter.make_module(tree, name);
  Status ran = run(interpreter, tree, module, span);
  if (ran.ok()) return module;
  modules_.erase(shown_name);
  return std::move(ran).take_error();
}

// The first error is the one that ends the program; the others are kept beside it.
Result<syntax::ModuleRef> ScriptImporter::parse(Interpreter& interpreter, Text source, Span span) const {
  DiagnosticList diagnostics;
  SourceMap& sources = interpreter.sources();
  const int32_t file = sources.add(std::move(source.shown_name), std::move(source.text));
  if (syntax::ModuleRef tree = syntax::parse(sources, file, diagnostics)) return tree;
  const std::vector<Diagnostic>& errors = diagnostics.items();
  for (size_t i = 1; i < errors.size(); ++i) interpreter.diagnostics().add(errors[i]);
  Error first = make_error(errors.front());
  first->note(span, "imported here");
  return first;
}

Status ScriptImporter::run(Interpreter& interpreter, const syntax::ModuleRef& tree, const ModuleRef& module,
                           Span span) {
  Interpreter::StagingGuard outside_of_kernels(interpreter, nullptr);
  Status ran = interpreter.run_module_in(tree, module);
  if (ran.ok()) return ran;
  Error error = std::move(ran).take_error();
  if (error->notes.size() < kMostNotes) error->note(span, "imported here");
  return error;
}

// In the script's folder or in one beside it, as examples share files by `sys.path.append`.
bool ScriptImporter::is_near(const fs::path& file) const {
  const fs::path around = root_.parent_path();
  return std::mismatch(around.begin(), around.end(), file.begin(), file.end()).first == around.end();
}

// As the script itself was named on the command line.
std::string ScriptImporter::shown_name(const fs::path& file) const {
  return (folder_ / file.lexically_relative(root_)).string();
}

}  // namespace tilepilot::stage
