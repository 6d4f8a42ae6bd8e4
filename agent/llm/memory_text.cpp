#include "agent/llm/memory_text.h"

#include <fmt/format.h>

#include "agent/llm/quotation.h"

namespace tilepilot::agent {

std::string fixes_text(const std::vector<retrieval::Fix>& fixes) {
  if (fixes.empty()) return {};
  std::string text = "\nProgram changes after which earlier programs that had failed like this were verified:\n";
  for (const retrieval::Fix& fix : fixes) {
    text += fmt::format("\n- {} ({})", in_backticks(fix.message.empty() ? fix.kind : fix.message),
                        in_backticks(fix.from.target));
    if (fix.seen > 1) text += fmt::format(", seen {} times", fix.seen);
    text += fmt::format(":\n\n{}", fenced("diff", fix.change));
  }
  return text;
}

std::string lessons_text(const std::vector<retrieval::Lesson>& lessons) {
  if (lessons.empty()) return {};
  std::string text = "\nChanges that made verified programs of like models faster, as measured in earlier runs:\n";
  for (const retrieval::Lesson& lesson : lessons)
    text += fmt::format("\n- {}: {:.1f} us before, {:.1f} us after, at least {:.2f} times as fast ({}):\n\n{}",
                        in_backticks(lesson.summary), lesson.before_us, lesson.after_us, lesson.gain_low,
                        in_backticks(lesson.from.target), fenced("diff", lesson.change));
  return text;
}

}  // namespace tilepilot::agent
