// Text of others in a message to a language model: models, stored programs, what a judge quotes of them. It stands
// between fences that it cannot close, so that a reader can tell it from what we say.
#pragma once

#include <string>
#include <string_view>

namespace tilepilot::agent {

// A fenced block (CommonMark: only as many backticks as opened it, or more, close it) whose fence is longer than every
// row of backticks in the text. Control characters are written out.
std::string fenced(std::string_view language, std::string_view text);

// A name or a short description, in one line without backticks.
std::string in_one_line(std::string_view text);

// Backticks around it.
std::string in_backticks(std::string_view text);

}  // namespace tilepilot::agent
