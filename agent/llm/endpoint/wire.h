// What the forms of endpoints have in common in reading JSON, where anything may be missing or of another type.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "agent/llm/endpoint/provider.h"

namespace tilepilot::agent {

std::string_view role_name(ChatMessage::Role role);

// A value at a path of keys, or null.
const nlohmann::json* member(const nlohmann::json& value, std::initializer_list<const char*> path);
// 0 where there is no number.
int64_t count_at(const nlohmann::json& value, std::initializer_list<const char*> path);
// Empty where there is no text.
std::string text_at(const nlohmann::json& value, std::initializer_list<const char*> path);

// Appends to the text of an object under a key, which may not be there yet.
void append_text(nlohmann::json& object, const char* key, const std::string& text);

// The text of a content that is a string, null, or a list of parts with `text`.
std::string text_of(const nlohmann::json& content);

// A text that may not be UTF-8 is written with replacement characters.
std::string dump(const nlohmann::json& value);

}  // namespace tilepilot::agent
