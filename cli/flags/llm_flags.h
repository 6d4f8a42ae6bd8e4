// The options of commands that may ask a language model.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/llm/endpoint/chat.h"
#include "cli/command.h"

namespace tilepilot::cli {

struct LlmFlags {
  agent::ChatOptions chat;
  double dollars = 1;
  int64_t tokens = 0;   // 0: no limit
  int64_t context = 0;  // 0: unknown
  int parallel = 1;     // answers at once
  std::string replay;   // a run, or a file of a recording; empty: none

  // `--llm-...` and prices: for commands that speak to an endpoint.
  void add_endpoint(CLI::App& command);
  // Those, limits of spending and, for a command that can answer from an earlier run, `--replay`.
  void add_to(CLI::App& command, bool with_replay);
  // Options that only the language model listens to are not dropped in silence. Errors: of kind `bad_usage`.
  Status check(Session& session, const std::string& author);
  // What `--replay` names; nullopt: it is not given. Errors: of kind `bad_usage`.
  Result<std::optional<agent::Recording>> recording(const Session& session) const;
  bool endpoint_given() const { return !chat.endpoint.url.empty(); }
  // Fills in what is not given as an option: the key, the prices. Errors: of kind `bad_usage`.
  Status complete(Session& session);
  bool dollars_given() const { return dollars_option_->count() > 0; }

 private:
  CLI::Option* add(CLI::App& command, const char* name, auto& value, const char* help);

  std::vector<const CLI::Option*> options_;
  const CLI::Option* dollars_option_ = nullptr;
  const CLI::Option* price_in_ = nullptr;
  const CLI::Option* price_out_ = nullptr;
  std::string key_file_, prices_;
  bool no_stream_ = false;
};

}  // namespace tilepilot::cli
