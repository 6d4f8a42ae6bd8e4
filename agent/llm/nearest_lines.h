// Where a text that is not in a program nearly is: what a language model is told about a SEARCH block that does not
// match.
#pragma once

#include <string>
#include <string_view>

namespace tilepilot::agent {

// The lines of the program that are most like those of the text, with their numbers, in a fence, and then how they
// differ from it, a line each. Says so where none are like it.
std::string nearest_lines(std::string_view program, std::string_view text);

// "lines 3, 17 and 40": where lines of the program begin that read as the text does.
std::string places_of(std::string_view program, std::string_view text);

}  // namespace tilepilot::agent
