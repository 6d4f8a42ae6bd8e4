// What the person who starts the server decides for all calls: which program runs them, where, with which database and
// which language model. Clients can change none of it, so that a key never goes to an address that a client names.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tilepilot::agent {
class ExportServer;
}

namespace tilepilot::cli::mcp {

struct Setup {
  const CLI::App* app = nullptr;                // the parser of the command line: what commands and options there are
  std::filesystem::path program;                // this executable
  std::filesystem::path work_folder;            // where temporary folders are made
  std::string version;                          // of this program
  std::vector<std::string> given;               // of every command: the database, the Python
  std::map<std::string, std::string> defaults;  // by option, for calls that name none: "--target"
  std::vector<std::string> language_model;      // options of `generate`; empty: no endpoint is named
  std::string api_key;                          // for `generate` with a language model
  agent::ExportServer* exports = nullptr;       // started by the first call that exports; null: each call does alone
};

}  // namespace tilepilot::cli::mcp
