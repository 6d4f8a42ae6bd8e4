#include "cli/flags/certificate_flags.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/manual/help.h"

namespace tilepilot::cli {

void CertificateFlags::add_to(CLI::App& command) {
  CLI::Option* named =
      command.add_option("--cert", file, "Where the certificate goes (default: the program's name with .cert.json)")
          ->type_name("FILE");
  command.add_flag("--no-cert", none, "Write no certificate")->excludes(named);
}

Status CertificateFlags::probe() const { return none || file.empty() ? Status() : agent::probe_certificate(file); }

void CertificateFlags::write(const Session& session, const std::filesystem::path& usual, agent::Certified facts,
                             nlohmann::json& object) const {
  if (none) return;
  const std::filesystem::path path = file.empty() ? usual : std::filesystem::path(file);
  facts.version = version_text(session.environment);
  if (auto written = agent::write_certificate(path, facts); !written) {
    session.progress("warning: " + written.error().message);
    object["warnings"] = {written.error().message};
    return;
  }
  session.answer(fmt::format("  certificate    {}", path.string()));
  object["certificate"] = path.string();
}

}  // namespace tilepilot::cli
