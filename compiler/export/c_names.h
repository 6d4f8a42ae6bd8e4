// Names in C and C++ for what has a name in Python.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "compiler/ir/dtype.h"

namespace tilepilot::exporting {

// Letters, digits and underscores, no digit first, no keyword of C or C++.
bool is_identifier(std::string_view name);
// The nearest identifier: what no identifier holds becomes an underscore.
std::string identifier_of(std::string_view name);
// The same for what stands behind a prefix: keywords are allowed there.
std::string identifier_part_of(std::string_view name);
std::string upper_case(std::string_view name);

// What parameters of a function cannot be called, because the code around them has these names.
std::set<std::string> names_around();

// Names of one scope: asks for a name, gets it, or one that nobody has yet: "main", "main_2".
class UniqueNames {
 public:
  explicit UniqueNames(std::set<std::string> taken = {}) : taken_(std::move(taken)) {}
  // `with`: what must be free behind the name, too.
  std::string of(std::string_view wish, std::string_view with = "");

 private:
  std::set<std::string> taken_;
};

// The type of elements in memory, and of a number that is passed.
std::string element_type(ir::DType type);
std::string number_type(ir::DType type);

}  // namespace tilepilot::exporting
