// What a language model gets to know about the language, written from the compiler's own tables, so that it names what
// this version takes and nothing else.
#pragma once

#include <string>
#include <string_view>

namespace tilepilot::agent {

// The functions that programs for this target are made of, with their signatures and meanings; of others, the names.
std::string language_card(bool on_gpu);

// What `ask: language NAME` answers: a row of the tables, with the parameters that are accepted and not honoured; for a
// name that there is not, what to use instead, or names that are like it. Without a name all names.
std::string language_entry(std::string_view name);

}  // namespace tilepilot::agent
