// Text of others in a message to a language model: models, stored programs, what a judge quotes of them. It stands
// between fences that it cannot close, so that a reader can tell it from what we say.
#pragma once

#include <string>
#include <string_view>

namespace tilepilot::agent {

// A fenced block (CommonMark: only as many backticks as opened it, or more, close it) whose fence is longer than every
// row of backticks in the text. Control characters are written out.
std::string fenced(std::string_view language, std::string_view text);

// A program in a block of its own. Of one that is longer than `kLongestProgram` its beginning and its end are shown, in
// whole lines, and a comment between them says how much is left out: such programs are written by rules and repeat
// themselves, and would crowd out all else.
constexpr size_t kLongestProgram = 32'000;  // bytes
std::string fenced_program(std::string_view source);

// A name or a short description, in one line without backticks.
std::string in_one_line(std::string_view text);

// Backticks around it.
std::string in_backticks(std::string_view text);

}  // namespace tilepilot::agent
