// Which of ATen's operators a program may call in `forward`: the rule behind `--aten`. The dispatcher itself says what
// runs, whatever name the program reached it by.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::eval {

enum class AtenPolicy {
  none,    // views, and memory without values
  data,    // what moves data too: copies, casts, fills, gathers
  hybrid,  // every operator, beside kernels that matter
  any,     // every operator
};
std::optional<AtenPolicy> parse_aten_policy(std::string_view name);

// What an operator does; a composite one does what those do that it calls.
enum class AtenWork { none, moves, computes, composite };
// `name`: as the dispatcher knows it, "aten::add".
AtenWork aten_work(std::string_view name);

// While it lives, notes the first operator of this thread that the policy does not allow. Costs nothing where the
// policy allows all.
class AtenWatch {
 public:
  // `place`: where the program is, moved on by the interpreter.
  AtenWatch(AtenPolicy policy, const stage::StatementMarker& place);
  ~AtenWatch();
  AtenWatch(const AtenWatch&) = delete;

  // Errors: `forbidden`, at the statement that called the operator.
  Status status() const;
  // That operator, "aten::add", and the statement; empty: there was none.
  std::string offender() const;
  Span place() const;

 private:
  AtenPolicy policy_;
  std::optional<uint64_t> callback_;
};

}  // namespace tilepilot::eval
