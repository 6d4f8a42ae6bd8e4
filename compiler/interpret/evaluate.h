// Values of expressions, and reads and writes of elements, in a scope.
#pragma once

#include "compiler/interpret/memory.h"
#include "compiler/interpret/session.h"
#include "compiler/ir/stmt.h"

namespace tilepilot::interpret {

// After a fault the values mean nothing.
class Evaluator {
 public:
  Evaluator(Session& session, const Scope& scope) : session_(session), scope_(scope) {}

  Element value(const ir::Expr& expr) const;
  int64_t integer(const ir::Expr& expr) const { return value(expr).whole; }
  Indices integers(const std::vector<ir::Expr>& exprs) const;

  // Outside a global buffer: zero, and nothing.
  Element read(const ir::Buffer& buffer, const Indices& at, Span span) const;
  void write(const ir::Buffer& buffer, const Indices& at, const Element& value, Span span) const;
  Element converted(const Element& value, ir::DType to, Span span) const;

 private:
  Session& session_;
  const Scope& scope_;

  Element compute(const ir::Binary& node) const;
  // What lies at an address in memory is made up in `addressed`.
  const Memory& memory_of(const ir::Buffer& buffer, std::optional<Memory>& addressed) const;
  std::optional<int64_t> place(const Memory& memory, const ir::Buffer& buffer, const Indices& at, Span span) const;
};

}  // namespace tilepilot::interpret
