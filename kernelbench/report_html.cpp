// The page: a template (report.html.in) around the report's JSON. What is drawn, the page's own script draws.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "eval/stage_text.h"
#include "kernelbench/report.h"

namespace tilepilot::embedded {
extern const char tilepilot_report_page[];
}

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;

// Programs beside the best ones are left out beyond it: the page is to open at once.
constexpr size_t kMostSourceBytes = size_t{2} << 20;
constexpr size_t kMostErrors = 40;  // of a verdict, in its table
// Of conversations: of the page, and of one message.
constexpr size_t kMostTalkBytes = size_t{1} << 19, kMostMessageBytes = 6000;

// Which kernel goes wrong first.
std::string words_of(const json& stages) {
  try {
    return eval::stages_text(eval::stages_from_json(stages));
  } catch (const json::exception&) { return "its stages cannot be read"; }
}

// Of a verdict, what the page shows.
json brief(const json& verdict) {
  json shown = json::object();
  if (!verdict.is_object()) return shown;
  for (const char* key : {"outcome", "detail", "guard", "speedup", "speedup_interval", "eager", "candidate", "compiled",
                          "generated_share", "kernels", "notes", "rendered", "given_inputs_only", "kernelbench"})
    if (const auto found = verdict.find(key); found != verdict.end() && !found->is_null()) shown[key] = *found;
  if (const auto stages = verdict.find("stages"); stages != verdict.end()) shown["notes"].push_back(words_of(*stages));
  if (const auto errors = verdict.find("errors"); errors != verdict.end() && errors->is_array()) {
    shown["errors"] = json::array();
    for (size_t i = 0; i < std::min(errors->size(), kMostErrors); ++i) {
      const json& error = (*errors)[i];
      json few = json::object();
      for (const char* key : {"trial", "output", "max_abs", "eager_max_abs", "bound", "pattern"})
        if (error.contains(key)) few[key] = error[key];
      shown["errors"].push_back(few);
    }
  }
  return shown;
}

constexpr size_t kMostParts = 8, kMostObstacles = 4;  // of a profile, in its table

// Of a profile, what the page shows: numbers of the dearest parts, and what kept them from something faster.
json brief_profile(const json& profile) {
  const auto few = [](const json& parts, std::initializer_list<const char*> keys) {
    json shown = json::array();
    for (size_t i = 0; parts.is_array() && i < std::min(parts.size(), kMostParts); ++i) {
      json part = json::object();
      for (const char* key : keys)
        if (parts[i].contains(key)) part[key] = parts[i][key];
      for (const json& choice : parts[i].value("choices", json::array()))
        if (!choice.value("obstacles", json::array()).empty() && part["choices"].size() < kMostObstacles)
          part["choices"].push_back(choice);
      shown.push_back(std::move(part));
    }
    return shown;
  };
  json shown = json::object();
  for (const char* key : {"call", "host_us", "host_share"})
    if (profile.contains(key)) shown[key] = profile[key];
  shown["kernels"] =
      few(profile.value("kernels", json::array()), {"name", "line", "launches", "us", "share", "bound", "efficiency",
                                                    "bytes_per_s", "flops_per_s", "instructions", "gpu", "cpu"});
  shown["operators"] = few(profile.value("operators", json::array()), {"name", "line", "count", "us", "share"});
  const json eager = profile.value("eager", json::object());
  shown["eager"] = few(eager.value("operators", json::array()), {"name", "count", "us", "share"});
  return shown;
}

// Bytes that are left for texts of all problems.
struct Room {
  size_t sources = kMostSourceBytes, talks = kMostTalkBytes;
};

// What was said, as long as there is room: of a long message its end, where what is new stands.
json talks_of(const std::vector<Talk>& talks, size_t& room) {
  json shown = json::array();
  for (const Talk& talk : talks) {
    json one = {{"attempt", talk.attempt}};
    for (const auto& [key, text] : {std::pair{"asked", &talk.asked}, std::pair{"answered", &talk.answered}}) {
      const size_t kept = std::min({text->size(), kMostMessageBytes, room});
      one[key] = text->substr(text->size() - kept);
      one[fmt::format("{}_left_out", key)] = text->size() - kept;
      room -= kept;
    }
    shown.push_back(std::move(one));
  }
  return shown;
}

json page_of(const BatchProblem& problem, const ProblemPage& page, Room& room) {
  json shown = json::object();
  const json& record = problem.outcome.record;
  if (!record.is_object()) return shown;
  for (const char* key : {"ending", "best_attempt", "finalists"})
    if (record.contains(key)) shown[key] = record[key];
  if (record.contains("verdict")) shown["verdict"] = brief(record["verdict"]);
  if (const json verdict = record.value("verdict", json::object()); verdict.is_object() && verdict.contains("profile"))
    shown["profile"] = brief_profile(verdict["profile"]);
  if (const auto preflight = record.find("preflight"); preflight != record.end() && preflight->is_object())
    for (const char* key : {"bound", "shortcuts", "degenerate", "eager_launches", "least_bytes"})
      if (preflight->contains(key)) shown[key] = (*preflight)[key];
  const json attempts = record.value("attempts", json::array());
  const size_t best = record.value("best_attempt", attempts.empty() ? size_t{0} : attempts.size() - 1);
  shown["attempts"] = json::array();
  for (size_t i = 0; i < attempts.size(); ++i) {
    json attempt = {{"summary", attempts[i].value("summary", "")},
                    {"verdict", brief(attempts[i].value("verdict", json::object()))}};
    const std::string source = i < page.sources.size() ? page.sources[i] : "";
    if (i == best || source.size() <= room.sources) attempt["source"] = source;
    room.sources -= std::min(room.sources, source.size());
    shown["attempts"].push_back(std::move(attempt));
  }
  if (!page.talks.empty()) shown["talks"] = talks_of(page.talks, room.talks);
  return shown;
}

// Inside a script element nothing may look like its end.
std::string for_script(const json& data) {
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace), safe;
  for (size_t at = 0;;) {
    const size_t next = text.find('<', at);
    safe.append(text, at, next - at);
    if (next == std::string::npos) return safe;
    safe += "\\u003c";
    at = next + 1;
  }
}

}  // namespace

std::string report_html(const Report& report, const std::vector<ProblemPage>& pages) {
  json data = report_json(report);
  Room room;
  for (size_t i = 0; i < report.batch.problems.size(); ++i) {
    const ProblemPage none;
    data["problems"][i]["page"] = page_of(report.batch.problems[i], i < pages.size() ? pages[i] : none, room);
  }
  std::string page = embedded::tilepilot_report_page;
  constexpr std::string_view kPlace = "@DATA@";
  page.replace(page.find(kPlace), kPlace.size(), for_script(data));
  return page;
}

}  // namespace tilepilot::kernelbench
