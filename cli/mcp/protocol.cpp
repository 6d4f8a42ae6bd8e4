#include "cli/mcp/protocol.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilepilot::cli::mcp {

using nlohmann::json;

namespace {

constexpr std::string_view kRevisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};

// Copying and destroying JSON recurses. Messages of the protocol are a few levels deep.
constexpr int kDeepest = 64;

constexpr const char* kRevisionKey = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";

// How deep brackets nest, of whatever text.
int nesting_of(const std::string& text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (in_string) {
      if (letter == '\\') ++i;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '[' || letter == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
  return deepest;
}

bool is_id(const json& value) { return value.is_string() || value.is_number_integer(); }

}  // namespace

std::string_view name_of(Revision revision) { return kRevisions[static_cast<size_t>(revision)]; }

std::optional<Revision> revision_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kRevisions); ++i)
    if (kRevisions[i] == name) return static_cast<Revision>(i);
  return std::nullopt;
}

std::vector<std::string> revision_names() { return {std::rbegin(kRevisions), std::rend(kRevisions)}; }

std::variant<json, RpcError> parse_line(const std::string& line) {
  if (nesting_of(line) > kDeepest)
    return RpcError{kInvalidRequest, fmt::format("the message is nested deeper than {} levels", kDeepest)};
  json value = json::parse(line, nullptr, /*allow_exceptions*/ false);
  if (value.is_discarded()) return RpcError{kParseError, "the line is not a JSON value in UTF-8"};
  return value;
}

std::variant<Message, BadMessage> read_message(const json& object) {
  if (!object.is_object()) return BadMessage{nullptr, {kInvalidRequest, "a message is a JSON object"}};
  const auto id = object.find("id"), method = object.find("method"), version = object.find("jsonrpc"),
             params = object.find("params"), end = object.end();
  Message message;
  if (id != end && is_id(*id)) message.id = *id;
  if (version == end || *version != "2.0")
    return BadMessage{message.id, {kInvalidRequest, "`jsonrpc` of a message is \"2.0\""}};
  if (method == end && (object.contains("result") || object.contains("error"))) {
    message.is_response = true;
    return message;
  }
  if (id != end && message.id.is_null())
    return BadMessage{nullptr, {kInvalidRequest, "the `id` of a request is a string or an integer"}};
  if (method == end || !method->is_string())
    return BadMessage{message.id, {kInvalidRequest, "a message has a `method`, which is a string"}};
  message.method = method->get<std::string>();
  message.params = params == end || params->is_null() ? json::object() : *params;
  if (!message.params.is_object())
    return BadMessage{message.id, {kInvalidParams, "`params` of a message is an object"}};
  return message;
}

const json& meta_of(const json& params) {
  static const json kNone = json::object();
  const auto meta = params.find("_meta");
  return meta != params.end() && meta->is_object() ? *meta : kNone;
}

std::variant<Revision, RpcError> revision_of(const json& params, std::optional<Revision> session) {
  const json& meta = meta_of(params);
  const auto named = meta.find(kRevisionKey);
  if (named == meta.end()) {
    if (session) return *session;
    return RpcError{
        kInvalidParams,
        fmt::format("begin with `initialize`, or name the protocol's revision in `_meta` under `{}`", kRevisionKey)};
  }
  const auto revision = named->is_string() ? revision_named(named->get_ref<const std::string&>()) : std::nullopt;
  if (!revision || *revision <= kLastWithSessions)
    return RpcError{kUnsupportedRevision,
                    "requests of this revision of the protocol are not served without a session",
                    {{"supported", revision_names()}, {"requested", *named}}};
  if (const auto capabilities = meta.find(kCapabilitiesKey); capabilities == meta.end() || !capabilities->is_object())
    return RpcError{kInvalidParams, fmt::format("`_meta` of a request holds an object `{}`", kCapabilitiesKey)};
  return *revision;
}

json response(const json& id, json result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}; }

json error_response(const json& id, const RpcError& error) {
  json object = {{"code", static_cast<int>(error.code)}, {"message", error.message}};
  if (!error.data.is_null()) object["data"] = error.data;
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(object)}};
}

json notification(std::string_view method, json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

}  // namespace tilepilot::cli::mcp
