// C++ names for variables and buffers of the IR: their own names where those are free and legal.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/expr.h"

namespace tilepilot::targets::c {

// Whether C or C++ has the word, or a macro of their standard libraries.
bool is_reserved(std::string_view name);

class Names {
 public:
  // Free of C++'s own words and of what `prelude` declares.
  explicit Names(const std::string& prelude);
  const std::string& of(const ir::Var& var) { return of(std::shared_ptr<const void>(var), var->name); }
  const std::string& of(const ir::Buffer& buffer) { return of(std::shared_ptr<const void>(buffer), buffer->name); }
  // A new name that starts like `wish`.
  std::string fresh(const std::string& wish);

 private:
  // What is named is kept: else something else might get its address, and its name.
  struct Given {
    std::string name;
    std::shared_ptr<const void> thing;
  };
  std::unordered_map<const void*, Given> given_;
  std::unordered_set<std::string> taken_;

  const std::string& of(const std::shared_ptr<const void>& thing, const std::string& wish);
};

}  // namespace tilepilot::targets::c
