#include "cli/mcp/server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/mcp/resources.h"
#include "cli/mcp/tool_call.h"
#include "cli/mcp/tool_schema.h"

namespace tilepilot::cli::mcp {

using nlohmann::json;

namespace {

constexpr size_t kLongestMessage = size_t{16} << 20;
constexpr size_t kMostCalls = 8;        // at a time
constexpr int kLookAfterCallsMs = 250;  // while calls run
constexpr int kPatienceMs = 500;        // with calls that run when the input ends
constexpr int kKeptForMs = 3'600'000;   // lists change with the program alone

constexpr std::string_view kInstructions =
    "TilePilot makes PyTorch models faster with tile kernels in TileLang syntax, and proves it. Begin with "
    "`show_problem` for a model. `generate` writes a verified program by itself. To write one yourself: `language` and "
    "`search_corpus` for how, `compile` after each change, `check` for the verdict, `profile` and `explain` for what "
    "to change next. Files are given by path, or as text in the argument that ends in `_source`. Where a message names "
    "an option, as `--time-limit`, the argument is `time_limit`.";

json capabilities_of_server() { return {{"tools", json::object()}, {"resources", json::object()}}; }

// The answers to the messages of a batch, sent together when the last is there.
class BatchReplies {
 public:
  BatchReplies(Outbox& outbox, size_t messages) : outbox_(outbox), missing_(messages) {}
  void add(std::optional<json> answer) {
    std::lock_guard lock(mutex_);
    if (answer) answers_.push_back(*std::move(answer));
    if (--missing_ == 0 && !answers_.empty()) outbox_.send(answers_);
  }

 private:
  Outbox& outbox_;
  std::mutex mutex_;
  json answers_ = json::array();
  size_t missing_;
};

bool has_cursor(const Message& request) {
  const auto cursor = request.params.find("cursor");
  return cursor != request.params.end() && !cursor->is_null();
}

const RpcError kNoSuchPage{kInvalidParams, "there is no such page: lists have one"};

std::string tool_names() {
  std::vector<std::string_view> names;
  for (const Tool& tool : tools()) names.push_back(tool.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

json progress_token_of(const Message& request) {
  const json& meta = meta_of(request.params);
  const auto token = meta.find("progressToken");
  return token != meta.end() && (token->is_string() || token->is_number_integer()) ? *token : json();
}

}  // namespace

const Server::Method Server::kMethods[] = {
    {"server/discover", &Server::discover, Revision::v2026_07_28},
    {"tools/list", &Server::list_tools},
    {"tools/call", &Server::start_tool},
    {"resources/list", &Server::list_resources_of},
    {"resources/templates/list", &Server::list_templates},
    {"resources/read", &Server::read_resource_of},
};

Server::Server(const Setup& setup, int in, int out) : setup_(setup), reader_(in, kLongestMessage), outbox_(out) {}

void Server::serve() {
  std::string line;
  for (;;) {
    switch (reader_.next(line, calls_.empty() ? -1 : kLookAfterCallsMs)) {
      case LineReader::Got::line:
        receive(line);
        break;
      case LineReader::Got::too_long:
        outbox_.send(
            error_response(nullptr, {kInvalidRequest, fmt::format("a message has at most {} bytes", kLongestMessage)}));
        break;
      case LineReader::Got::nothing:
        break;
      case LineReader::Got::end:
        return end_calls();
    }
    forget_ended_calls();
  }
}

void Server::receive(const std::string& line) {
  const auto parsed = parse_line(line);
  if (const auto* error = std::get_if<RpcError>(&parsed)) return outbox_.send(error_response(nullptr, *error));
  const json& value = std::get<json>(parsed);
  if (value.is_array()) return receive_batch(value);
  receive_message(value, [this](std::optional<json> answer) {
    if (answer) outbox_.send(*answer);
  });
}

void Server::receive_batch(const json& messages) {
  if (!session_ || !has_batches(*session_) || messages.empty())
    return outbox_.send(error_response(
        nullptr, {kInvalidRequest, messages.empty() ? "a batch holds at least one message"
                                                    : "this revision of the protocol has no batches of messages"}));
  auto replies = std::make_shared<BatchReplies>(outbox_, messages.size());
  for (const json& message : messages)
    receive_message(message, [replies](std::optional<json> answer) { replies->add(std::move(answer)); });
}

void Server::receive_message(const json& object, const Reply& reply) {
  const auto read = read_message(object);
  if (const auto* bad = std::get_if<BadMessage>(&read)) return reply(error_response(bad->id, bad->error));
  const Message& message = std::get<Message>(read);
  if (!message.is_notification() && !message.is_response) return answer_request(message, reply);
  if (!message.is_response) take_notification(message);
  reply(std::nullopt);
}

void Server::answer_request(const Message& request, const Reply& reply) {
  // Both belong to sessions, and a session begins without one.
  const bool names_its_revision = meta_of(request.params).contains("io.modelcontextprotocol/protocolVersion");
  if (!names_its_revision && request.method == "initialize") return initialize(request, reply);
  if (!names_its_revision && request.method == "ping") return reply(response(request.id, json::object()));
  const auto revision = revision_of(request.params, session_);
  if (const auto* error = std::get_if<RpcError>(&revision)) return reply(error_response(request.id, *error));
  const Revision spoken = std::get<Revision>(revision);
  const auto method = std::find_if(std::begin(kMethods), std::end(kMethods),
                                   [&](const Method& each) { return each.name == request.method; });
  if (method == std::end(kMethods) || method->since > spoken)
    return reply(error_response(request.id, {kMethodNotFound, fmt::format("there is no method `{}` in revision {}",
                                                                          request.method, name_of(spoken))}));
  (this->*method->handler)(request, spoken, reply);
}

void Server::initialize(const Message& request, const Reply& reply) {
  const auto wanted = request.params.find("protocolVersion");
  if (wanted == request.params.end() || !wanted->is_string())
    return reply(error_response(request.id, {kInvalidParams, "`initialize` names a `protocolVersion`, a string"}));
  auto revision = revision_named(wanted->get<std::string>());
  if (!revision || *revision > kLastWithSessions) revision = kLastWithSessions;
  session_ = revision;
  reply(response(request.id, {{"protocolVersion", name_of(*revision)},
                              {"capabilities", capabilities_of_server()},
                              {"serverInfo", server_info()},
                              {"instructions", kInstructions}}));
}

void Server::discover(const Message& request, Revision revision, const Reply& reply) {
  reply(response(request.id, complete({{"supportedVersions", revision_names()},
                                       {"capabilities", capabilities_of_server()},
                                       {"instructions", kInstructions}},
                                      revision, true)));
}

void Server::list_tools(const Message& request, Revision revision, const Reply& reply) {
  if (has_cursor(request)) return reply(error_response(request.id, kNoSuchPage));
  json rows = json::array();
  for (const Tool& tool : tools()) rows.push_back(describe(setup_, tool, revision));
  reply(response(request.id, complete({{"tools", std::move(rows)}}, revision, true)));
}

void Server::start_tool(const Message& request, Revision revision, const Reply& reply) {
  const auto refuse = [&](const std::string& why) { reply(error_response(request.id, {kInvalidParams, why})); };
  const auto name = request.params.find("name"), given = request.params.find("arguments"), end = request.params.end();
  if (name == end || !name->is_string()) return refuse("`tools/call` names a tool: `name`, a string");
  const Tool* tool = find_tool(name->get_ref<const std::string&>());
  if (tool == nullptr)
    return refuse(fmt::format("there is no tool `{}`; tools: {}", name->get_ref<const std::string&>(), tool_names()));
  const json arguments = given == end || given->is_null() ? json::object() : *given;
  if (!arguments.is_object()) return refuse("`arguments` of a call is an object");
  forget_ended_calls();
  if (std::any_of(calls_.begin(), calls_.end(),
                  [&](const auto& call) { return call->id() == request.id && !call->is_cancelled(); }))
    return refuse("a request with this id is under way");
  const auto give = [this, id = request.id, revision](const ToolAnswer& answer) {
    return response(id, complete(result_of(answer, revision), revision));
  };
  const auto busy = [&](const std::string& why) {
    reply(give(failed_call({DiagnosticKind::bad_usage, {}, why, {}, "wait for one of them to end, or cancel one"})));
  };
  if (calls_.size() >= kMostCalls)
    return busy(fmt::format("{} calls are under way, as many as there may be", kMostCalls));
  auto call = std::make_unique<RunningCall>(request.id, progress_token_of(request), outbox_);
  const bool is_started =
      call->start([this, tool, arguments,
                   give](const CallWatch& watch) { return give(call_tool(setup_, *tool, arguments, watch)); },
                  reply);
  if (!is_started) return busy("the system gives no thread or no descriptors for a call");
  calls_.push_back(std::move(call));
}

void Server::list_resources_of(const Message& request, Revision revision, const Reply& reply) {
  if (has_cursor(request)) return reply(error_response(request.id, kNoSuchPage));
  reply(response(request.id, complete(list_resources(), revision, true)));
}

void Server::list_templates(const Message& request, Revision revision, const Reply& reply) {
  if (has_cursor(request)) return reply(error_response(request.id, kNoSuchPage));
  reply(response(request.id, complete({{"resourceTemplates", json::array()}}, revision, true)));
}

void Server::read_resource_of(const Message& request, Revision revision, const Reply& reply) {
  const auto uri = request.params.find("uri");
  auto resource =
      uri != request.params.end() && uri->is_string() ? read_resource(uri->get<std::string>()) : std::nullopt;
  if (!resource)
    return reply(error_response(request.id, {kInvalidParams, "there is no such resource: `resources/list` names all"}));
  reply(response(request.id, complete(*std::move(resource), revision, true)));
}

void Server::take_notification(const Message& message) {
  if (message.method != "notifications/cancelled") return;
  const auto id = message.params.find("requestId");
  for (const auto& call : calls_)
    if (id != message.params.end() && call->id() == *id) call->cancel();
}

json Server::server_info() const {
  return {{"name", "tilepilot"}, {"title", "TilePilot"}, {"version", setup_.version}};
}

json Server::complete(json result, Revision revision, bool can_be_kept) const {
  if (revision <= kLastWithSessions) return result;
  result["resultType"] = "complete";
  result["_meta"]["io.modelcontextprotocol/serverInfo"] = server_info();
  if (can_be_kept) result.update({{"ttlMs", kKeptForMs}, {"cacheScope", "public"}});
  return result;
}

void Server::forget_ended_calls() {
  std::erase_if(calls_, [](const auto& call) { return call->has_ended(); });
  for (const auto& call : calls_) call->remind();
}

// What is nearly done may still be answered: whoever pipes requests into the server sees its answers.
void Server::end_calls() {
  for (int waited = 0; waited < kPatienceMs && !calls_.empty(); waited += 5) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    forget_ended_calls();
  }
  for (const auto& call : calls_) call->cancel();
  calls_.clear();
}

}  // namespace tilepilot::cli::mcp
