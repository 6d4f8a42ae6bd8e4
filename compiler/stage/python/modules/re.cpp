// What re.py needs of the matcher: `_compile`, and `_scan` for the matches of a text one after another.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/modules/standard.h"
#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/text/regex.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::stage {

namespace {

constexpr int64_t kMostSteps = 50'000'000;  // of one scan

struct RegexObject final : TypedObject<RegexObject> {
  static constexpr Type kType{"re.program"};
  bool is_callable() const override { return false; }
  explicit RegexObject(regex::Program program_) : program(std::move(program_)) {}
  regex::Program program;
};

regex::Text decoded(const std::string& text) {
  regex::Text result;
  for (size_t i = 0; i < text.size();) {
    const syntax::CodePoint point = syntax::code_point_at(text, i);
    result.push_back(point.value);
    i += point.length;
  }
  return result;
}

// _compile(pattern, flags): the program, its flags, the number of groups, and the groups' names.
Result<Value> compile(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"_compile", {"pattern", "flags"}, 2};
  Arguments read = TRY(Arguments::read(args, kSignature));
  const regex::Text pattern = decoded(TRY(read.text(0)));
  auto compiled = regex::compile(pattern, static_cast<unsigned>(TRY(read.integer(1))));
  if (auto* problem = std::get_if<regex::Problem>(&compiled)) {
    if (!problem->unsupported)
      return value_error(args.span, fmt::format("{} at position {}", problem->message, problem->position));
    return make_error(DiagnosticKind::unsupported_syntax, args.span,
                      fmt::format("in a regular expression, {}", problem->message));
  }
  auto program = std::make_shared<RegexObject>(std::get<regex::Program>(std::move(compiled)));
  auto names = std::make_shared<DictObject>();
  for (const auto& [name, index] : program->program.names)
    TRY(names->table.set(interpreter, Value(name), Value(int64_t{index}), args.span));
  const Value flags(static_cast<int64_t>(program->program.flags)), groups(int64_t{program->program.groups});
  return make_tuple({Value(program), flags, groups, Value(names)});
}

Value spans_of(const regex::Found& found) {
  std::vector<Value> spans;
  for (size_t i = 0; i + 1 < found.slots.size(); i += 2) {
    const bool took_part = found.slots[i] >= 0 && found.slots[i + 1] >= 0;
    spans.push_back(make_tuple({Value(took_part ? found.slots[i] : -1), Value(took_part ? found.slots[i + 1] : -1)}));
  }
  return make_tuple({Value(found.last_group), make_tuple(std::move(spans))});
}

// _scan(program, text, pos, endpos, anchor, most): (last group, spans of the groups) of up to `most` matches.
Result<Value> scan(Interpreter& interpreter, CallArgs& args) {
  static constexpr Signature kSignature{"_scan", {"program", "text", "pos", "endpos", "anchor", "most"}, 6};
  Arguments read = TRY(Arguments::read(args, kSignature));
  auto* regex = read[0]->get_if<RegexObject>();
  if (!regex) return type_error(args.span, "_scan() takes a compiled pattern");
  regex::Text text = decoded(TRY(read.text(1)));
  const auto size = static_cast<int64_t>(text.size());
  const int64_t end = std::clamp<int64_t>(TRY(read.integer(3)), 0, size);
  const int64_t begin = std::clamp<int64_t>(TRY(read.integer(2)), 0, size), most = TRY(read.integer(5));
  text.resize(static_cast<size_t>(end));
  std::vector<Value> matches;
  const auto anchor = static_cast<regex::Anchor>(TRY(read.integer(4)));
  regex::Subject subject{text, static_cast<size_t>(begin), false, anchor};
  int64_t steps_left = kMostSteps;
  while (subject.start <= text.size() && (most == 0 || static_cast<int64_t>(matches.size()) < most)) {
    TRY(interpreter.charge(args.span));
    regex::Found found;
    const regex::Outcome outcome = regex::find(regex->program, subject, steps_left, found);
    if (outcome == regex::Outcome::out_of_steps)
      return make_error(DiagnosticKind::step_limit, args.span, "a regular expression took too many steps to match",
                        "look for repetitions inside repetitions");
    if (outcome == regex::Outcome::no_match) break;
    matches.push_back(spans_of(found));
    subject.start = static_cast<size_t>(found.slots[1]);
    subject.must_advance = found.slots[1] == found.slots[0];
  }
  return make_list(std::move(matches));
}

}  // namespace

void fill_re(Interpreter&, ModuleObject& module) {
  module.function("_compile", compile);
  module.function("_scan", scan);
}

}  // namespace tilepilot::stage
