#include "agent/llm/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "agent/llm/language_card.h"
#include "agent/llm/quotation.h"
#include "compiler/runtime/process.h"
#include "compiler/source/file.h"
#include "retrieval/computations.h"

namespace tilepilot::agent {
namespace {

constexpr double kCompileLimit = 30;         // seconds
constexpr size_t kMostAnswerBytes = 12'000;  // of what the compiler prints

std::string clipped(std::string text) {
  if (text.size() <= kMostAnswerBytes) return text;
  const size_t left_out = text.size() - kMostAnswerBytes;
  text.resize(kMostAnswerBytes);
  return text + fmt::format("\n... {} further bytes are left out\n", left_out);
}

std::string listed(const retrieval::Entry& entry) {
  return fmt::format("- {}: {}; {}\n", in_backticks(entry.name), in_backticks(retrieval::title_of(entry)),
                     in_backticks(entry.summary));
}

std::string stored_program(const QuestionSources& sources, const std::string& name) {
  if (name.empty()) {
    auto entries = sources.corpus.list();
    if (!entries) return "The stored programs cannot be read.\n";
    std::string text;
    constexpr size_t kMostListed = 60;
    for (size_t i = 0; i < std::min(entries->size(), kMostListed); ++i) text += listed((*entries)[i]);
    return text.empty() ? "There is no stored program.\n" : text;
  }
  auto entry = sources.corpus.find(name);
  if (entry && *entry) return fenced("python", (*entry)->source);
  // What it does, rather than what it is called.
  constexpr int kNearest = 5;
  std::string text = fmt::format("There is no stored program {}; `ask: seed` lists them.", in_backticks(name));
  const auto hits = sources.corpus.search({}, name, kNearest);
  if (!hits || hits->empty()) return text + "\n";
  text += " Nearest to these words:\n";
  for (const retrieval::Hit& hit : *hits) text += listed(hit.entry);
  return text;
}

// A call of a plain name with plain arguments: it becomes an argument of a command.
bool is_call(const std::string& text) {
  constexpr std::string_view kOther = "_.,()=-+*/ \"'[]";
  return text.find('(') != std::string::npos && text.size() < 400 &&
         std::all_of(text.begin(), text.end(), [&](unsigned char letter) {
           return std::isalnum(letter) != 0 || kOther.find(static_cast<char>(letter)) != std::string_view::npos;
         });
}

bool is_of_kernel(std::string_view what) {
  return what == "ir" || what == "source" || what == "explain" || what == "asm";
}

std::string compiled(const QuestionSources& sources, const std::string& what, const std::string& call,
                     const std::string& program) {
  if (sources.program.empty()) return "Nothing can be compiled here.\n";
  if (program.empty()) return "There is no base yet.\n";
  if (!call.empty() && !is_call(call))
    return fmt::format(
        "Name a call of one of the program's factories, as `ask: {} scale_rows(2048, 512)`, or, of "
        "attempt 3, `ask: {} 3 scale_rows(2048, 512)`.\n",
        what, what);
  const auto file = sources.work / "asked.py";
  if (!write_file(file, program)) return "The program could not be written for the compiler.\n";
  // In a process of its own: what the program does while it is staged may take for ever.
  std::vector<std::string> command = {
      sources.program.string(), "compile", file.filename().string(), "--target", sources.target, "--emit", what};
  // Without one the compiler names the factories whose sizes a call has to say, if there are any.
  if (!call.empty()) command.insert(command.end(), {"--call", call});
  auto ran = runtime::run_process(command, {.time_limit_s = kCompileLimit, .working_directory = sources.work.string()});
  if (!ran) return "The compiler could not be started.\n";
  if (ran->timed_out) return fmt::format("Compiling it takes longer than {:.0f} s.\n", kCompileLimit);
  return fenced("", clipped(ran->exit_code == 0 ? ran->out : ran->err));
}

}  // namespace

QuestionOfAttempt question_of_attempt(const std::string& question) {
  static const std::regex kForm(R"re((\w+)\s+(?:[Aa]ttempt\s+)?#?(\d{1,6})(?:\s*[,:]?\s+(.*))?)re");
  std::smatch found;
  if (question.size() > 500 || !std::regex_match(question, found, kForm)) return {question};
  const std::string what = found[1], call = found[3];
  if (what != "program" && !is_of_kernel(what)) return {question};
  return {call.empty() || what == "program" ? what : what + " " + call, static_cast<size_t>(std::stoul(found[2]))};
}

std::string answer_question(const QuestionSources& sources, const std::string& question, const std::string& program) {
  const size_t blank = question.find(' ');
  const std::string what = question.substr(0, blank);
  const std::string rest = blank == std::string::npos
                               ? ""
                               : question.substr(std::min(question.find_first_not_of(" ", blank), question.size()));
  if (what == "language") return language_entry(rest);
  if (what == "seed") return stored_program(sources, rest);
  if (what == "program") return program.empty() ? "There is no base yet.\n" : fenced("python", program);
  if (is_of_kernel(what)) return compiled(sources, what, rest, program);
  return "Questions are `language T.NAME`, `seed NAME`, `program N`, and, of a kernel, `ir CALL`, `source CALL`, "
         "`explain CALL` and `asm CALL`, each also with an attempt's number before the call.\n";
}

}  // namespace tilepilot::agent
