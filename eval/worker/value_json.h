// Plain values of the evaluator as JSON and back: None, booleans, numbers, strings, lists and dicts with string keys.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "compiler/stage/python/interpreter.h"

namespace tilepilot::eval {

// Tuples are lists, and other values what `str` makes of them.
Result<nlohmann::json> json_of(stage::Interpreter& interpreter, const stage::Value& value);
Result<stage::Value> value_of(stage::Interpreter& interpreter, const nlohmann::json& json, Span span);

}  // namespace tilepilot::eval
