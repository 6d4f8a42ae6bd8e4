// What the judge takes from a candidate's process. Whatever runs there may write to the socket, so an answer is looked
// at before it is used: a failure is a kind of failure and text, never a verdict, and numbers that cannot be are none.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "eval/judge.h"

namespace tilepilot::eval {

inline constexpr const char* kProtocolGuard = "protocol";

// What is wrong with the form of an answer that came with so many files: fields of another type, numbers that are
// negative, infinite or absurd, text or nesting without end. Nullopt: nothing. Control bytes in its text are escaped.
std::optional<std::string> fault_of_answer(nlohmann::json& body, size_t files);

// The verdict of a failure that the candidate tells: an outcome out of those it can know, its text shortened and
// escaped, diagnostics with spans inside of `sources`' file 0. Another outcome is rejected by the guard `protocol`.
Verdict told_failure(const nlohmann::json& failure, const SourceMap& sources);

// Adds to the verdict of wrong values the warnings of an answer that may explain them, shortened and escaped likewise.
void add_told_warnings(const nlohmann::json& warnings, const SourceMap& sources, Verdict& verdict);

// Of a candidate whose answers are no answers.
Verdict protocol_failure(std::string_view fault);

}  // namespace tilepilot::eval
