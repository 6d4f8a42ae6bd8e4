// How a script imports: files of `sys.path`, which begins with the script's folder, then those beside the file that
// imports, all of them below the folder that holds the script's own; our modules written in Python; and for everything
// else a stand-in (foreign.h).
#pragma once

#include <filesystem>
#include <unordered_map>

#include "compiler/stage/python/script.h"

namespace tilepilot::stage {

class ScriptImporter final : public Importer {
 public:
  // `modules`: those written in Python beside the ones of the standard library.
  ScriptImporter(const std::filesystem::path& script, std::vector<EmbeddedModule> modules);

  Result<std::shared_ptr<ModuleObject>> find(Interpreter& interpreter, const std::string& name, Span span) override;
  std::shared_ptr<ModuleObject> stand_in(const std::string& name, Span span) override;

 private:
  using ModuleRef = std::shared_ptr<ModuleObject>;
  struct Found {
    std::filesystem::path file;     // may be empty: a folder without `__init__.py` is a package too
    std::filesystem::path package;  // empty: a module that is none
  };
  struct Package {
    ModuleRef module;
    std::filesystem::path folder;
  };
  struct Text {
    std::string shown_name;
    std::string text;
  };

  std::vector<std::filesystem::path> folders(Interpreter& interpreter, const std::string& parent, Span span) const;
  static Found look_in(const std::vector<std::filesystem::path>& folders, const std::string& last);
  Result<ModuleRef> load(Interpreter& interpreter, const std::string& name, const Found& found, Span span);
  Result<ModuleRef> load_embedded(Interpreter& interpreter, const std::string& name, Span span);
  Result<syntax::ModuleRef> parse(Interpreter& interpreter, Text source, Span span) const;
  Status run(Interpreter& interpreter, const syntax::ModuleRef& tree, const ModuleRef& module, Span span);
  bool is_near(const std::filesystem::path& file) const;
  std::string shown_name(const std::filesystem::path& file) const;

  std::vector<EmbeddedModule> embedded_;
  std::filesystem::path folder_;                        // of the script, as it was named
  std::filesystem::path root_;                          // the same, links resolved
  std::unordered_map<std::string, ModuleRef> modules_;  // by file, from before they run
  std::unordered_map<std::string, Package> packages_;   // by dotted name
  std::unordered_map<std::string, ModuleRef> stand_ins_;
};

}  // namespace tilepilot::stage
