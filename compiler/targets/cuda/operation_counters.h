// Lines of a kernel's text, in front of which a call counts who comes there, if what they compute is counted (see
// c/operation_count.h). Plain arithmetic cannot be seen when it runs, but the generator knows what it writes.
#pragma once

#include "compiler/targets/c/context.h"

namespace tilepilot::targets::cuda {

// The call that counts what has been written since the last one, or "".
inline std::string take_counter(c::Context& context) {
  const int64_t number = context.operations ? context.operations->take() : -1;
  return number < 0 ? "" : fmt::format("emulated::count_operations({})", number);
}
inline void put_counter(c::Context& context) {
  if (const std::string call = take_counter(context); !call.empty()) context.body.line("{};", call);
}
// An expression, between `?` and `:` or alone in a statement, that only some threads come to.
inline std::string with_counter(c::Context& context, const std::string& text) {
  const std::string call = take_counter(context);
  return call.empty() ? text : call + ", " + text;
}

// Around a branch, and a loop from before its text: with the counter of what it leaves unchanged, which may turn out to
// be nothing.
inline void begin_branch(c::Context& context) {
  if (context.operations) context.operations->open_branch();
}
inline void begin_loop(c::Context& context) {
  if (context.operations) context.body.line("emulated::count_operations({});", context.operations->open_loop());
}
inline void end_scope(c::Context& context) {
  if (context.operations) context.operations->close();
}

// A line, or one that opens a brace, after the call for all that its arguments compute.
template <class... Args>
void write(c::Context& context, fmt::format_string<Args...> format, Args&&... args) {
  put_counter(context);
  context.body.line(format, std::forward<Args>(args)...);
}
template <class... Args>
void open(c::Context& context, fmt::format_string<Args...> format, Args&&... args) {
  put_counter(context);
  context.body.open(format, std::forward<Args>(args)...);
}

}  // namespace tilepilot::targets::cuda
