// Messages of the Model Context Protocol: JSON-RPC 2.0, and what differs between the protocol's revisions. Up to
// 2025-11-25 a client opens a session with `initialize`; since 2026-07-28 each request says its revision itself. This
// server speaks both. Nothing here reads or writes a stream.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tilepilot::cli::mcp {

// Oldest first: later ones compare greater.
enum class Revision { v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 };
inline constexpr Revision kLastWithSessions = Revision::v2025_11_25;

std::string_view name_of(Revision revision);
std::optional<Revision> revision_named(std::string_view name);
// Newest first, as answers list them.
std::vector<std::string> revision_names();

// What the revisions add to results.
inline bool has_annotations(Revision revision) { return revision >= Revision::v2025_03_26; }
inline bool has_structured_results(Revision revision) { return revision >= Revision::v2025_06_18; }
inline bool has_batches(Revision revision) { return revision <= Revision::v2025_03_26; }

enum RpcCode : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kUnsupportedRevision = -32022,
};

struct RpcError {
  RpcCode code;
  std::string message;
  nlohmann::json data = nullptr;
};

struct Message {
  nlohmann::json id;  // a string or an integer; null: a notification
  std::string method;
  nlohmann::json params;     // an object
  bool is_response = false;  // to a request of ours, of which there are none

  bool is_notification() const { return id.is_null(); }
};

// An error that is answered with the message's id, as far as it has one.
struct BadMessage {
  nlohmann::json id;
  RpcError error;
};

// The JSON of a line. Errors: what is no JSON, or nested deeper than any message of the protocol.
std::variant<nlohmann::json, RpcError> parse_line(const std::string& line);
std::variant<Message, BadMessage> read_message(const nlohmann::json& object);

// What a request carries under `_meta`; an empty object if it has none.
const nlohmann::json& meta_of(const nlohmann::json& params);
// The revision that a request is of: its own, or the session's. Errors: none, or one that this server does not speak.
std::variant<Revision, RpcError> revision_of(const nlohmann::json& params, std::optional<Revision> session);

nlohmann::json response(const nlohmann::json& id, nlohmann::json result);
nlohmann::json error_response(const nlohmann::json& id, const RpcError& error);
nlohmann::json notification(std::string_view method, nlohmann::json params);

}  // namespace tilepilot::cli::mcp
