// The options of commands whose author may be a language model.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/llm/chat.h"
#include "cli/command.h"

namespace tilepilot::cli {

struct LlmFlags {
  agent::ChatOptions chat;
  double dollars = 1;
  std::optional<int64_t> replay;

  // `with_replay`: the command can answer from an earlier run.
  void add_to(CLI::App& command, bool with_replay);
  // Options that only the language model listens to are not dropped in silence. Errors: of kind `bad_usage`.
  Status check(const Session& session, const std::string& author) const;
  bool dollars_given() const { return dollars_option_->count() > 0; }

 private:
  std::vector<const CLI::Option*> options_;
  const CLI::Option* dollars_option_ = nullptr;
};

}  // namespace tilepilot::cli
