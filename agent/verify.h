// Repeats what a certificate says, here: the same program and model, with the certificate's seed and with a fresh one,
// and what differs.
#pragma once

#include <functional>
#include <optional>

#include "agent/certificate.h"

namespace tilepilot::agent {

struct VerifyOptions {
  std::filesystem::path certificate;
  std::filesystem::path work;  // folder for the exported reference
  ExporterOptions exporter;    // its interpreter and script; seed and dtype come from the certificate
  eval::JudgeOptions judge;    // its worker and cache; what was judged, and how, comes from the certificate
  bool time = true;
  std::string version;  // of this TilePilot
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct Difference {
  std::string what;  // "program", "environment.processor"
  std::string certified, here;
  bool matters = false;  // another program, another task, or not verified; else worth knowing
};

struct Verification {
  std::optional<eval::Verdict> repeated;  // with the certificate's seed; nullopt: it has none
  eval::Verdict fresh;                    // with a secret seed of now
  std::vector<Difference> differences;
  bool holds() const;
};

// Errors: the certificate, the program or the model cannot be read; what judging needs is missing here.
Result<Verification> verify(SourceMap& sources, const VerifyOptions& options);

}  // namespace tilepilot::agent
