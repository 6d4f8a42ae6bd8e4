// Integer expressions over extents and numbers of a call, in the C++ of an exported library: grids, shapes, sizes.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::exporting {

class HostNames {
 public:
  void add(const ir::Var& variable, std::string name) { names_[variable.get()] = std::move(name); }
  // Of 64 bits; uses the functions of runtime/status.h.in. Errors: unsupported_tile_feature, of an expression that
  // needs memory or floating-point numbers.
  Result<std::string> text(const ir::Expr& expr) const;
  Result<std::string> product(const std::vector<ir::Expr>& factors) const;

 private:
  std::unordered_map<const ir::VarData*, std::string> names_;
};

}  // namespace tilepilot::exporting
