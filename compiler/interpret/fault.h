// What is wrong with a program's run, as a value: with the place in the program, and for threads where each of them is.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"

namespace tilepilot::interpret {

enum class FaultKind : uint8_t {
  bad_arguments,    // they do not fit the parameters
  outside_tile,     // an index leaves a tile
  uninitialised,    // memory is read that nobody wrote
  undefined_cast,   // a float becomes an integer whose type cannot hold it
  threads_part,     // not all threads of a block take part in a collective operation
  threads_differ,   // threads do something together, but do not agree on what
  deadlock,         // all that have not ended wait on hardware barriers
  check_failed,     // what the program itself checks does not hold
  race,             // what threads or blocks leave depends on which of them is faster
  budget_exceeded,  // it takes more steps than it may
  not_interpreted,  // barriers of a grid, foreign functions
};
std::string_view to_string(FaultKind kind);

struct Fault {
  FaultKind kind;
  Span span;
  std::string message;
  std::vector<Note> notes = {};
};

}  // namespace tilepilot::interpret
