// Server-sent events (WHATWG HTML, "Parsing an event stream"), the form in which endpoints stream their answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::agent {

struct StreamEvent {
  std::string name;  // of its `event:` line; may be empty
  std::string data;  // its `data:` lines, joined by line ends
};

// The events in a text, in order. Comments, with which servers keep a connection alive, and events without data are
// left out; so is an event at the end that no empty line closes, unless its data is complete JSON for itself: servers
// forget the line.
std::vector<StreamEvent> events_in(std::string_view text);

// Whether a body is such a stream rather than one JSON object.
bool is_event_stream(std::string_view content_type, std::string_view body);

}  // namespace tilepilot::agent
