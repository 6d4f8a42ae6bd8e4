#include "cli/mcp/tool_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "agent/export_server.h"
#include "cli/mcp/tool_arguments.h"
#include "compiler/diagnostics/render.h"
#include "compiler/runtime/last_line.h"
#include "compiler/runtime/process.h"
#include "compiler/source/file.h"

namespace tilepilot::cli::mcp {
namespace {

using nlohmann::json;

// How long a command that is ended has for its last words: `generate` writes the best program so far.
constexpr double kGraceSeconds = 1.5;
// A language model's context is small: of a longer text, the beginning and the end.
constexpr size_t kLongestText = 32000, kLongestProgress = 4000, kLongestAttempts = 40000;

std::string without(std::string text, const std::string& what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) text.erase(at, what.size());
  return text;
}

// The last lines of a text that fit.
std::string tail_of(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const size_t begin = text.find('\n', text.size() - most);
  return begin == std::string::npos ? text.substr(text.size() - most) : "...\n" + text.substr(begin + 1);
}

std::string shortened(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  const size_t end = text.rfind('\n', kLongestText * 3 / 4);
  const std::string head = text.substr(0, end == std::string::npos ? kLongestText * 3 / 4 : end + 1);
  const std::string tail = tail_of(text, kLongestText / 4);
  return fmt::format("{}... ({} bytes are left out here)\n{}", head, text.size() - head.size() - tail.size(), tail);
}

json errors_of(const Diagnostic& error) { return json::parse(render_json(SourceMap(), error)); }

// Of the many attempts of a long run, what became of them: a client may hand the whole object to a language model.
void shorten_attempts(json& object) {
  const auto attempts = object.find("attempts");
  if (attempts == object.end() || !attempts->is_array() || attempts->dump().size() <= kLongestAttempts) return;
  for (json& attempt : *attempts) {
    if (!attempt.is_object() || !attempt.contains("verdict")) continue;
    json brief = json::object();
    for (const char* name : {"outcome", "detail", "line", "speedup", "rendered"})
      if (attempt["verdict"].contains(name)) brief[name] = attempt["verdict"][name];
    attempt.erase("compared");
    attempt["verdict"] = std::move(brief);
  }
}

bool is_ok(const json& answer) {
  const auto ok = answer.find("ok");
  return ok != answer.end() && ok->is_boolean() && ok->get<bool>();
}

class ToolRun {
 public:
  ToolRun(const Tool& tool, const json& arguments, const PlannedCommand& planned, runtime::ProcessResult ended)
      : tool_(tool), arguments_(arguments), planned_(planned), ended_(std::move(ended)) {
    if (!planned_.folder) return;
    const std::string folder = planned_.folder->path().string() + "/";
    ended_.out = without(std::move(ended_.out), folder);
    ended_.err = without(std::move(ended_.err), folder);
  }

  ToolAnswer answer() {
    json object = json::parse(ended_.out, nullptr, /*allow_exceptions*/ false);
    if (!object.is_object()) return no_answer();
    ToolAnswer answer;
    answer.is_error = ended_.exit_code > 1 || (ended_.exit_code < 0 && !is_ok(object));
    answer.texts = {shortened(text_from(object))};
    add_program(object, answer);
    shorten_attempts(object);
    answer.structured = std::move(object);
    return answer;
  }

 private:
  ToolAnswer no_answer() const {
    const std::string why = ended_.timed_out ? fmt::format("it did not end within {:g} seconds", planned_.time_limit_s)
                                             : runtime::ending_of(ended_);
    ToolAnswer answer = failed_call({DiagnosticKind::load_failed,
                                     {},
                                     fmt::format("`{}` gave no answer: {}", tool_.name, why),
                                     {},
                                     ended_.timed_out ? "give a longer `timeout_s`, or a smaller task" : ""});
    if (!ended_.err.empty()) answer.texts.front() += tail_of(ended_.err, kLongestProgress);
    return answer;
  }

  // Takes `text` out of the object, unless it is what was asked for.
  std::string text_from(json& object) const {
    const auto said = object.find("text");
    std::string text = said != object.end() && said->is_string() ? said->get<std::string>() : "";
    const bool is_output = std::any_of(tool_.outputs.begin(), tool_.outputs.end(),
                                       [](const ToolOutput& output) { return output.name == "text"; });
    const bool asked_for = tool_.text_with.empty() || arguments_.contains(std::string(tool_.text_with));
    const bool succeeded = is_ok(object);
    if (!asked_for && succeeded) text = "no errors";
    if (is_output && succeeded) text = ended_.err + text;  // warnings
    if (!is_output || !asked_for) object.erase("text");
    // What was tried, where nothing came of it.
    const std::string progress = tail_of(ended_.err, kLongestProgress);
    const bool is_told = text.empty() || ended_.timed_out || (tool_.writes && !succeeded);
    if (is_told) text = progress.find(text) != std::string::npos ? progress : progress + text;
    if (ended_.timed_out) text = fmt::format("ended after {:g} seconds\n{}", planned_.time_limit_s, text);
    // Carets, for clients that show a language model nothing but the object. A verdict has them.
    if (!succeeded && object.contains("errors") && !object.contains("rendered"))
      object["rendered"] = json::array({text});
    return text;
  }

  // A program that the client gave no place for goes back as text.
  void add_program(json& object, ToolAnswer& answer) const {
    if (planned_.program.empty()) return;
    object.erase("output");
    std::string program;
    if (!is_ok(object) || !read_file(planned_.program, program)) return;
    object["program"] = program;
    answer.texts.push_back(std::move(program));
  }

  const Tool& tool_;
  const json& arguments_;
  const PlannedCommand& planned_;
  runtime::ProcessResult ended_;
};

// What it reads is a model in PyTorch.
bool exports(const Tool& tool) {
  return std::any_of(tool.files.begin(), tool.files.end(),
                     [](const ToolFile& file) { return file.argument == "model"; });
}

}  // namespace

ToolAnswer failed_call(const Diagnostic& error) {
  return {{render(SourceMap(), error)}, {{"ok", false}, {"errors", json::array({errors_of(error)})}}, true};
}

ToolAnswer call_tool(const Setup& setup, const Tool& tool, const json& arguments, const CallWatch& watch) {
  auto planned = plan_command(setup, tool, arguments);
  if (!planned) return failed_call(planned.error());
  const std::string folder = planned->folder ? planned->folder->path().string() + "/" : "";
  runtime::LastLine last([&](const std::string& line) {
    if (watch.on_progress) watch.on_progress(folder.empty() ? line : without(line, folder));
  });
  runtime::ProcessOptions process;
  process.time_limit_s = planned->time_limit_s;
  process.grace_s = kGraceSeconds;
  process.abandon = watch.abandon;
  process.more_environment = planned->environment;
  if (setup.exports && exports(tool)) process.more_environment.push_back(setup.exports->variable());
  process.watch_err = [&last](std::string_view text) { last.add(text); };
  auto ended = runtime::run_process(planned->argv, process);
  if (!ended) return failed_call(ended.error());
  return ToolRun(tool, arguments, *planned, std::move(*ended)).answer();
}

json result_of(const ToolAnswer& answer, Revision revision) {
  json result = {{"content", json::array()}, {"isError", answer.is_error}};
  for (const std::string& text : answer.texts) result["content"].push_back({{"type", "text"}, {"text", text}});
  if (has_structured_results(revision)) result["structuredContent"] = answer.structured;
  return result;
}

}  // namespace tilepilot::cli::mcp
