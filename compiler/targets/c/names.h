// C++ names for variables and buffers of the IR: their own names where those are free and legal.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/expr.h"

namespace tilepilot::targets::c {

class Names {
 public:
  // Free of C++'s own words and of what `prelude` declares.
  explicit Names(const std::string& prelude);
  const std::string& of(const ir::Var& var) { return of(var.get(), var->name); }
  const std::string& of(const ir::Buffer& buffer) { return of(buffer.get(), buffer->name); }
  // A new name that starts like `wish`.
  std::string fresh(const std::string& wish);

 private:
  std::unordered_map<const void*, std::string> given_;
  std::unordered_set<std::string> taken_;

  const std::string& of(const void* thing, const std::string& wish);
};

}  // namespace tilepilot::targets::c
