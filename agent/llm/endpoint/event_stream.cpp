#include "agent/llm/endpoint/event_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilepilot::agent {
namespace {

// Takes one line off the text, ended by CR, LF, both, or the end.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find_first_of("\r\n"), text.size());
  const std::string_view line = text.substr(0, end);
  const bool both = text.substr(end).starts_with("\r\n");
  text.remove_prefix(std::min(text.size(), end + (both ? 2 : 1)));
  return line;
}

void add_line(StreamEvent& event, bool& has_data, std::string_view line) {
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view field = line.substr(0, colon);
  std::string_view value = line.substr(std::min(line.size(), colon + 1));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event.name = value;
  if (field != "data") return;
  if (has_data) event.data += '\n';
  event.data += value;
  has_data = true;
}

}  // namespace

std::vector<StreamEvent> events_in(std::string_view text) {
  std::vector<StreamEvent> events;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  StreamEvent event;
  bool has_data = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!line.empty()) {
      if (line.front() != ':') add_line(event, has_data, line);
      continue;
    }
    if (has_data) events.push_back(std::move(event));
    event = {};
    has_data = false;
  }
  if (has_data && (event.data == "[DONE]" || nlohmann::json::accept(event.data))) events.push_back(std::move(event));
  return events;
}

bool is_event_stream(std::string_view content_type, std::string_view body) {
  if (content_type.starts_with("text/event-stream")) return true;
  const size_t begin = body.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  body.remove_prefix(begin);
  return body.starts_with("data:") || body.starts_with("event:") || body.front() == ':';
}

}  // namespace tilepilot::agent
