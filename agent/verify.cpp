#include "agent/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/work_folder.h"
#include "compiler/source/file.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string shown(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// Judges as the certificate says it was judged.
Result<eval::JudgeOptions> judge_options(const VerifyOptions& options, const json& judging) {
  eval::JudgeOptions judge = options.judge;
  judging.at("dtype").get_to(judge.dtype);
  judging.at("precision").get_to(judge.precision);
  judging.at("target").get_to(judge.target);
  judging.at("aten").get_to(judge.aten);
  judging.at("trials").get_to(judge.trials);
  judging.at("threads").get_to(judge.threads);
  judging.at("time_limit_s").get_to(judge.time_limit_s);
  judging.at("memory_limit_bytes").get_to(judge.memory_limit_bytes);
  judging.at("timing_samples").get_to(judge.timing_samples);
  judging.at("timing_budget_s").get_to(judge.timing_budget_s);
  judging.at("baseline_compile").get_to(judge.baseline_compile);
  judge.seed.reset();
  TRY(eval::check_options(judge));
  return judge;
}

// The largest error of each output over all trials.
double largest_error(const eval::Verdict& verdict) {
  double largest = 0;
  for (const eval::OutputError& error : verdict.errors) largest = std::max(largest, error.max_abs);
  return largest;
}

class Verifier {
 public:
  Verifier(SourceMap& sources, const VerifyOptions& options, json certificate)
      : sources_(sources), options_(options), certificate_(std::move(certificate)) {}

  Result<Verification> run() {
    Certified here;
    here.program = beside("program");
    here.model = beside("model");
    here.version = options_.version;
    here.judge = TRY(judge_options(options_, certificate_.at("judging")));
    here.exporter = options_.exporter;
    here.exporter.dtype = here.judge.dtype;
    certificate_.at("reference").at("seed").get_to(here.exporter.seed);
    certificate_.at("reference").at("scale").get_to(here.exporter.scale);
    std::string why;
    if (!read_file(here.program, here.source, &why))
      return make_error(DiagnosticKind::file_not_found, {},
                        fmt::format("cannot read `{}`: {}", here.program.string(), why),
                        "the certified program has to lie where it lay, seen from the certificate");
    TRY(judge(here));
    compare(here);
    return std::move(result_);
  }

 private:
  fs::path beside(const char* what) const {
    return (options_.certificate.parent_path() / certificate_.at(what).at("file").get<std::string>())
        .lexically_normal();
  }

  Status judge(Certified& here) {
    WorkFolder work = TRY(WorkFolder::make(options_.work));
    const fs::path folder = work.path() / "reference";
    options_.progress(fmt::format("exporting {}", here.model.string()));
    auto reference = TRY(export_reference(sources_, here.model, folder, here.exporter));
    here.model_source = reference.model_source;
    here.torch_version = reference.torch_version;
    here.reference = hash_reference(folder);
    const json& seeds = certificate_.at("seeds");
    if (!seeds.is_array() || seeds.size() != 1 || !seeds.front().is_number_unsigned())
      return make_error(DiagnosticKind::bad_usage, {},
                        fmt::format("`{}` has no seed that can be used again", options_.certificate.string()),
                        "make it anew with `tilepilot check`");
    options_.progress("judging with the certificate's seed");
    here.judge.seed = seeds.front().get<uint64_t>();
    result_.repeated = TRY(eval::open_judge(folder, here.judge))
                           ->check({.source = here.source, .name = here.program.string(), .time = false});
    here.judge.seed.reset();
    options_.progress("judging with a fresh seed");
    result_.fresh = TRY(eval::open_judge(folder, here.judge))
                        ->check({.source = here.source, .name = here.program.string(), .time = options_.time});
    here.verdict = result_.fresh;
    return {};
  }

  void compare(const Certified& here) {
    const json now = make_certificate(here, options_.certificate.parent_path());
    differ("program", certificate_["program"]["sha256"], now["program"]["sha256"], true);
    differ("model", certificate_["model"]["sha256"], now["model"]["sha256"], true);
    // Another PyTorch exports another graph, and may draw other weights.
    const bool same_torch = certificate_["environment"]["torch"] == now["environment"]["torch"];
    for (const char* part : {"graph_sha256", "weights_sha256"})
      differ(std::string("reference.") + part, certificate_["reference"][part], now["reference"][part], same_torch);
    for (const auto& [name, value] : now["environment"].items())
      differ("environment." + name, certificate_["environment"].value(name, json("unknown")), value, false);
    compare_verdicts(eval::verdict_from_json(certified_verdict()));
  }

  // Certificates leave out what only failures have.
  json certified_verdict() const {
    json verdict = certificate_.at("verdict");
    verdict.update({{"diagnostics", json::array()}, {"rendered", json::array()}, {"line", 0}});
    return verdict;
  }

  void compare_verdicts(const eval::Verdict& certified) {
    auto outcome = [](const eval::Verdict& verdict) {
      return fmt::format("{}{}{}{}", eval::to_string(verdict.outcome), verdict.degenerate ? ", degenerate" : "",
                         verdict.given_inputs_only ? ", for these inputs only" : "",
                         verdict.detail.empty() ? "" : ": " + verdict.detail);
    };
    if (result_.repeated) differ("outcome with its seed", outcome(certified), outcome(*result_.repeated), true);
    differ("outcome with a fresh seed", outcome(certified), outcome(result_.fresh), true);
    const double before = largest_error(certified);
    // With the same seed the same numbers are drawn; a fresh one draws others, whose errors differ.
    const double now = largest_error(result_.repeated ? *result_.repeated : result_.fresh);
    if (now > before * 1.5) differ("largest error", fmt::format("{:.3g}", before), fmt::format("{:.3g}", now), false);
    compare_speed(certified);
  }

  void compare_speed(const eval::Verdict& certified) {
    const eval::Verdict& fresh = result_.fresh;
    if (certified.speedup() == 0 || fresh.speedup() == 0) return;
    auto low = [](const eval::Verdict& v) { return v.speedup_high > 0 ? v.speedup_low : v.speedup(); };
    auto high = [](const eval::Verdict& v) { return v.speedup_high > 0 ? v.speedup_high : v.speedup(); };
    auto text = [&](const eval::Verdict& v) {
      return fmt::format("{:.2f}x ({:.2f} to {:.2f})", v.speedup(), low(v), high(v));
    };
    if (high(fresh) < low(certified)) differ("speed-up, slower here", text(certified), text(fresh), false);
    if (low(fresh) > high(certified)) differ("speed-up, faster here", text(certified), text(fresh), false);
  }

  void differ(const std::string& what, const json& certified, const json& here, bool matters) {
    if (certified != here) result_.differences.push_back({what, shown(certified), shown(here), matters});
  }

  SourceMap& sources_;
  const VerifyOptions& options_;
  json certificate_;
  Verification result_;
};

}  // namespace

bool Verification::holds() const {
  auto verified = [](const eval::Verdict& verdict) { return verdict.outcome == eval::Outcome::verified; };
  return verified(fresh) && (!repeated || verified(*repeated)) &&
         std::none_of(differences.begin(), differences.end(), [](const Difference& each) { return each.matters; });
}

Result<Verification> verify(SourceMap& sources, const VerifyOptions& options) {
  json certificate = TRY(read_certificate(options.certificate));
  try {
    return Verifier(sources, options, std::move(certificate)).run();
  } catch (const json::exception& error) {
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`{}` lacks what a certificate has: {}", options.certificate.string(), error.what()),
                      "make it anew with `tilepilot check`");
  }
}

}  // namespace tilepilot::agent
