// The options of every command that writes certificates.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "agent/certificate.h"
#include "cli/command.h"

namespace tilepilot::cli {

struct CertificateFlags {
  std::string file;
  bool none = false;

  void add_to(CLI::App& command);
  // Before a program is judged: an error if the place that the user named cannot be written.
  Status probe() const;
  // Writes the certificate, to `usual` unless the user named a file, and says so in the answer and in `object`. That it
  // cannot be written is a warning: the verdict is no other.
  void write(const Session& session, const std::filesystem::path& usual, agent::Certified facts,
             nlohmann::json& object) const;
};

}  // namespace tilepilot::cli
