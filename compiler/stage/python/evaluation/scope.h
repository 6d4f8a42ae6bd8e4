// Name resolution: for each scope of a module (functions, lambdas, comprehensions, class bodies) where each of its
// names lives, decided once before the module runs. A local is a slot of the activation; a local that a nested scope
// uses is a cell; a name from an enclosing function is a cell of the closure; everything else is a global or a
// built-in.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/syntax/tree.h"

namespace tilepilot::stage {

enum class Storage : uint8_t { local, cell, captured, global };

struct Slot {
  Storage storage = Storage::global;
  uint32_t index = 0;
};

class ScopeLayout {
 public:
  enum class Kind : uint8_t { module, function, class_body, comprehension };

  // Where `name` lives; names that the scope never mentions are global.
  Slot find(syntax::Name name) const;
  // The layout of the scope that `node` opens (a FunctionDef, LambdaExpr, ClassDef or ComprehensionExpr).
  const std::shared_ptr<const ScopeLayout>& nested(const void* node) const { return nested_.at(node); }

  // True if a `global` or `nonlocal` statement of this scope names it.
  bool declares_outside(syntax::Name name) const;

  Kind kind = Kind::module;
  uint32_t local_count = 0;
  uint32_t cell_count = 0;
  std::vector<Slot> parameters;            // where each parameter goes
  std::vector<syntax::Name> captured;      // names of the closure's cells
  std::vector<Slot> captured_from;         // where the enclosing activation holds them
  std::vector<syntax::Name> global_reads;  // here and in nested scopes, in order of first mention
  std::vector<syntax::Name> declared_outside;
  std::vector<syntax::Name> names;  // of all locals and cells, for "did you mean"

 private:
  friend class ScopeBuilder;
  void add(syntax::Name name, Slot slot);
  struct Entry {
    syntax::Name name;
    Slot slot;
  };
  std::vector<Entry> table_;  // open addressing, a power of two in size
  size_t used_ = 0;
  std::unordered_map<const void*, std::shared_ptr<const ScopeLayout>> nested_;
};

std::shared_ptr<const ScopeLayout> resolve_names(const syntax::Module& module);
// As if `expression` stood at the top level of a module.
std::shared_ptr<const ScopeLayout> resolve_names(const syntax::Expr& expression);

}  // namespace tilepilot::stage
