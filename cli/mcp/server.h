// The server of `tilepilot mcp`: reads messages from a client, answers them, and runs tools for it. Requests are
// answered while tools run. It ends with its input, and what it has started ends with it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/mcp/channel.h"
#include "cli/mcp/protocol.h"
#include "cli/mcp/running_call.h"
#include "cli/mcp/setup.h"

namespace tilepilot::cli::mcp {

class Server {
 public:
  // `in`, `out`: descriptors that nothing else reads or writes.
  Server(const Setup& setup, int in, int out);
  // Until the end of the input.
  void serve();

 private:
  using Handler = void (Server::*)(const Message&, Revision, const Reply&);
  struct Method {
    std::string_view name;
    Handler handler;
    Revision since = Revision::v2024_11_05;
  };
  static const Method kMethods[];

  void receive(const std::string& line);
  void receive_batch(const nlohmann::json& messages);
  void receive_message(const nlohmann::json& message, const Reply& reply);
  void answer_request(const Message& request, const Reply& reply);
  void initialize(const Message& request, const Reply& reply);
  void discover(const Message& request, Revision revision, const Reply& reply);
  void list_tools(const Message& request, Revision revision, const Reply& reply);
  void start_tool(const Message& request, Revision revision, const Reply& reply);
  void list_resources_of(const Message& request, Revision revision, const Reply& reply);
  void list_templates(const Message& request, Revision revision, const Reply& reply);
  void read_resource_of(const Message& request, Revision revision, const Reply& reply);
  void take_notification(const Message& message);

  nlohmann::json server_info() const;
  // A whole result: with what the revision asks of every one.
  nlohmann::json complete(nlohmann::json result, Revision revision, bool can_be_kept = false) const;
  void forget_ended_calls();
  void end_calls();

  const Setup& setup_;
  LineReader reader_;
  Outbox outbox_;
  std::optional<Revision> session_;  // what `initialize` has agreed on
  std::vector<std::unique_ptr<RunningCall>> calls_;
};

}  // namespace tilepilot::cli::mcp
