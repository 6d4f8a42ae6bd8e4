// Where things are: the folders of this installation and of the user. Environment variables are read here and nowhere
// else.
#pragma once

#include <filesystem>
#include <string>

namespace tilepilot::cli {

inline constexpr const char* kVersion = "0.1.0";

struct Environment {
  std::filesystem::path root;     // holds scripts/, seeds/
  std::filesystem::path program;  // this executable
  std::filesystem::path worker;   // tilepilot-worker, beside it
  std::filesystem::path
      cache;  // compiled kernels, exported references: $TILEPILOT_CACHE, $XDG_CACHE_HOME/tilepilot, ~/.cache/tilepilot
  std::filesystem::path store;   // $TILEPILOT_STORE, $XDG_DATA_HOME/tilepilot/tilepilot.db,
                                 // ~/.local/share/tilepilot/tilepilot.db; empty: no $HOME
  std::string python;            // the interpreter whose PyTorch this build links
  std::string export_server;     // $TILEPILOT_EXPORT_SERVER (agent/export_server.h)
  std::string api_key;           // $TILEPILOT_API_KEY
  std::filesystem::path prices;  // of language models: $TILEPILOT_PRICES, $XDG_CONFIG_HOME/tilepilot/prices.json,
                                 // ~/.config/tilepilot/prices.json; empty: no $HOME
  std::string commit;            // of the sources that this build was made from; empty: unknown
  bool color = false;            // standard error is a terminal and $NO_COLOR is not set
};

Environment read_environment();

}  // namespace tilepilot::cli
