#include "agent/certificate.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <thread>

#include "compiler/runtime/cuda/driver.h"
#include "compiler/runtime/library.h"
#include "compiler/runtime/sha256.h"
#include "compiler/source/file.h"
#include "compiler/untrusted/isolation.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFormat = "tilepilot-certificate";
constexpr int kVersion = 1;
constexpr uintmax_t kMostHashed = uintmax_t{1} << 30;

std::string text_of(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

// Of all members but `integrity`.
std::string content_hash(json certificate) {
  certificate.erase("integrity");
  return sha256_of(text_of(certificate));
}

std::string now() {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string processor() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

std::string hash_of_file(const fs::path& file) {
  runtime::Sha256 hash;
  std::ifstream stream(file, std::ios::binary);
  std::string buffer(1 << 20, '\0');
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || stream.gcount() > 0)
    hash.add(std::string_view(buffer).substr(0, static_cast<size_t>(stream.gcount())));
  return hash.hex();
}

// A GPU's driver needs devices, so there the candidate's process has no namespaces and no root of its own.
untrusted::Layers layers_of_candidate(bool on_gpu) {
  auto layers = untrusted::available_layers();
  if (on_gpu) layers.namespaces = layers.root = false;
  return layers;
}

// Seen from where the certificate lies, so that both can move together.
std::string seen_from(const fs::path& folder, const fs::path& file) {
  std::error_code error;
  const fs::path relative = fs::relative(fs::absolute(file, error), fs::absolute(folder, error), error);
  return error || relative.empty() ? fs::absolute(file, error).string() : relative.string();
}

json judging_of(const Certified& facts) {
  return {{"dtype", facts.judge.dtype},
          {"precision", facts.judge.precision},
          {"target", facts.verdict.target},
          {"aten", facts.judge.aten},
          {"allow_foreign", facts.judge.allow_foreign},
          {"trials", facts.judge.trials},
          {"threads", facts.judge.threads},
          {"time_limit_s", facts.judge.time_limit_s},
          {"memory_limit_bytes", facts.judge.memory_limit_bytes},
          {"timing_samples", facts.judge.timing_samples},
          {"timing_budget_s", facts.judge.timing_budget_s},
          {"baseline_compile", facts.judge.baseline_compile},
          {"kernelbench_timing", facts.judge.kernelbench_timing}};
}

Error invalid(const fs::path& path, std::string_view problem, std::string hint) {
  return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` {}", path.string(), problem), std::move(hint));
}

bool is_certificate(const json& object) {
  auto format = object.is_object() ? object.find("format") : object.end();
  return format != object.end() && *format == kFormat;
}

Error unwritable_certificate(const fs::path& path, std::string_view why) {
  return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`: {}", path.string(), why),
                    "add `--no-cert` if none is wanted");
}

Status leave_others_alone(const fs::path& path) {
  std::string before;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  if (read_file(path, before) && is_certificate(json::parse(before, nullptr, /*exceptions*/ false))) return {};
  return make_error(DiagnosticKind::output_unwritable, {},
                    fmt::format("cannot write `{}`: it is there, and no certificate", path.string()),
                    "move it away, or add `--no-cert`");
}

// Of a reference as its exporter wrote it; empty where it is damaged.
json inputs_of(const json& reference) {
  json inputs = json::array();
  const json graph = reference.is_object() ? reference.value("forward", json()) : json();
  if (!graph.is_object() || !graph.contains("values") || !graph.contains("inputs")) return inputs;
  for (const json& id : graph["inputs"]) {
    if (!id.is_number_unsigned() || id.get<size_t>() >= graph["values"].size()) return json::array();
    const json& value = graph["values"][id.get<size_t>()];
    if (!value.is_object()) return json::array();
    inputs.push_back({{"dtype", value.value("dtype", json())}, {"shape", value.value("shape", json())}});
  }
  return inputs;
}

}  // namespace

std::string sha256_of(std::string_view text) { return runtime::Sha256().add(text).hex(); }

ReferenceHashes hash_reference(const fs::path& folder) {
  ReferenceHashes hashes;
  std::string text;
  read_file(folder / "reference.json", text);
  json reference = json::parse(text, nullptr, /*exceptions*/ false);
  if (reference.is_object()) reference.erase("model_path");
  hashes.inputs = inputs_of(reference);
  hashes.graph = sha256_of(text_of(reference));
  std::error_code error;
  const fs::path weights = folder / "weights.safetensors";
  const auto size = fs::file_size(weights, error);
  if (!error && size <= kMostHashed) hashes.weights = hash_of_file(weights);
  return hashes;
}

json describe_environment(const Certified& facts) {
  utsname system = {};
  uname(&system);
  json environment = {{"processor", processor()},
                      {"cores", std::thread::hardware_concurrency()},
                      {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
                      {"compiler", runtime::Toolchain({}).version()},
                      {"torch", facts.torch_version},
                      {"tilepilot", facts.version}};
  const bool on_gpu = facts.verdict.target.starts_with("cuda");
  environment["sandbox"] = untrusted::to_string(layers_of_candidate(on_gpu));
  if (!on_gpu) return environment;
  if (auto gpu = runtime::cuda::Device::open(); gpu.ok()) {
    environment["gpu"] = (*gpu)->name();
    environment["driver"] = fmt::format("CUDA {}", (*gpu)->driver_version());
  }
  return environment;
}

json make_certificate(const Certified& facts, const fs::path& folder) {
  json verdict = eval::to_json(facts.verdict);
  verdict.erase("profile");  // nothing that is certified
  for (const char* of_failures : {"diagnostics", "rendered", "line"}) verdict.erase(of_failures);
  json certificate = {
      {"format", kFormat},
      {"version", kVersion},
      {"created", now()},
      {"program", {{"file", seen_from(folder, facts.program)}, {"sha256", sha256_of(facts.source)}}},
      {"model", {{"file", seen_from(folder, facts.model)}, {"sha256", sha256_of(facts.model_source)}}},
      {"reference",
       {{"graph_sha256", facts.reference.graph},
        {"weights_sha256", facts.reference.weights.empty() ? json() : json(facts.reference.weights)},
        {"inputs", facts.reference.inputs},
        {"seed", facts.exporter.seed},
        {"scale", facts.exporter.scale}}},
      {"judging", judging_of(facts)},
      {"seeds", json::array()},
      {"rule", "float64 truth, PyTorch's own error and the condition of the task; docs/verification.md"},
      {"verdict", verdict},
      {"environment", describe_environment(facts)}};
  if (facts.verdict.seed) certificate["seeds"].push_back(*facts.verdict.seed);
  certificate = json::parse(text_of(certificate));  // as it will be read
  certificate["integrity"] = {{"sha256", content_hash(certificate)},
                              {"means", "shows edits; no signature: whoever edits can compute it anew"}};
  return certificate;
}

fs::path certificate_path(fs::path program) { return program.replace_extension(".cert.json"); }

Status probe_certificate(const fs::path& path) {
  TRY(leave_others_alone(path));
  const std::string why = why_unwritable(path);
  return why.empty() ? Status() : Status(unwritable_certificate(path, why));
}

Status write_certificate(const fs::path& path, const Certified& facts) {
  std::string why;
  TRY(leave_others_alone(path));
  fs::path folder = path.parent_path();
  const json certificate = make_certificate(facts, folder.empty() ? fs::path(".") : folder);
  if (write_file(path, certificate.dump(2) + "\n", &why)) return {};
  return unwritable_certificate(path, why);
}

Result<json> read_certificate(const fs::path& path) {
  std::string text, why;
  if (!read_file(path, text, &why))
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`: {}", path.string(), why),
                      "give the `.cert.json` that `generate` or `check` wrote");
  json certificate = json::parse(text, nullptr, /*exceptions*/ false);
  if (!is_certificate(certificate))
    return invalid(path, "is no certificate", "give the `.cert.json` that `generate` or `check` wrote");
  if (certificate.value("version", json()) != kVersion)
    return invalid(path, "is a certificate of another version", "make it anew with `tilepilot check`");
  const json integrity = certificate.value("integrity", json::object());
  if (!integrity.is_object() || integrity.value("sha256", json()) != content_hash(certificate))
    return invalid(path, "was edited: its content does not match its SHA-256",
                   "trust nothing it says; `tilepilot check` makes a new one");
  return certificate;
}

}  // namespace tilepilot::agent
