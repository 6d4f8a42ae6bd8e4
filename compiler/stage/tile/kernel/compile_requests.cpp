#include "compiler/stage/tile/kernel/compile_requests.h"

#include <fmt/format.h>

#include "compiler/stage/python/containers/containers.h"

namespace tilepilot::stage {
namespace {

// By the name of the key and by its text, as upstream has both.
bool is_fast_math(std::string_view key) { return key == "TL_ENABLE_FAST_MATH" || key == "tl.enable_fast_math"; }

bool is_fast_math_flag(std::string_view flag) { return flag == "--use_fast_math" || flag == "-use_fast_math"; }

}  // namespace

Result<bool> fast_math_of_configs(const TileArguments& arguments, size_t i) {
  auto* configs = arguments[i].get_if<DictObject>();
  Interpreter& interpreter = arguments.context().interpreter;
  bool fast = false;
  for (size_t at = 0; configs && at < configs->table.entries().size(); ++at) {
    const auto& entry = configs->table.entries()[at];
    if (!entry.live) continue;
    const std::string key = TRY(interpreter.str(entry.key));
    if (is_fast_math(key))
      fast = TRY(interpreter.truth(entry.value, arguments.span(i)));
    else
      arguments.context().announce_ignored(fmt::format("`{}` in `pass_configs`", key), arguments.span(i));
  }
  return fast;
}

Result<bool> fast_math_of_flags(const TileArguments& arguments, size_t i) {
  if (!arguments.has(i)) return false;
  std::vector<Value> flags = {arguments[i]};
  if (!arguments[i].if_string())
    flags = TRY(arguments.context().interpreter.to_vector(arguments[i], arguments.span(i)));
  bool fast = false;
  for (const Value& value : flags) {
    const std::string flag = TRY(arguments.context().interpreter.str(value));
    if (is_fast_math_flag(flag))
      fast = true;
    else
      arguments.context().announce_ignored(fmt::format("the flag `{}`", flag), arguments.span(i));
  }
  return fast;
}

}  // namespace tilepilot::stage
