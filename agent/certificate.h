// Certificates: what was judged, how, where, and what came out, as JSON beside the program. A certificate carries a
// SHA-256 of its own content, which shows edits; it is no signature, since whoever edits it can compute that anew.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "agent/exporter.h"
#include "compiler/diagnostics/result.h"
#include "eval/judge.h"

namespace tilepilot::agent {

// An exported reference in hashes, and what its inputs look like. Where the file lies does not count.
struct ReferenceHashes {
  std::string graph;    // of the op graph, the input recipe and the names of the weights
  std::string weights;  // of the weights' numbers; empty: more than 1 GiB, the seed and the model stand for them
  nlohmann::json inputs = nlohmann::json::array();  // of each tensor among forward's inputs: dtype and shape
};
ReferenceHashes hash_reference(const std::filesystem::path& folder);

// What a certificate is made of.
struct Certified {
  std::filesystem::path program;  // where it is, or will be, written
  std::string source;
  std::filesystem::path model;
  std::string model_source;
  std::string torch_version;
  ReferenceHashes reference;
  ExporterOptions exporter;
  eval::JudgeOptions judge;  // as it judged
  eval::Verdict verdict;
  std::string version;  // of TilePilot, with its commit
};

std::string sha256_of(std::string_view text);

// Processor, cores, system, C++ compiler, PyTorch, TilePilot, the layers of the candidate's sandbox, and the GPU where
// `target` is one.
nlohmann::json describe_environment(const Certified& facts);

// Sealed; paths are relative to the folder that the certificate will lie in.
nlohmann::json make_certificate(const Certified& facts, const std::filesystem::path& folder);

// "fast.py" -> "fast.cert.json".
std::filesystem::path certificate_path(std::filesystem::path program);

// Errors: of kind `output_unwritable`. A file that is there and is no certificate is not replaced.
// Whether it would have a chance, found out before a program is judged.
Status probe_certificate(const std::filesystem::path& path);
Status write_certificate(const std::filesystem::path& path, const Certified& facts);

// Errors: of kind `file_not_found`, or `bad_usage`: no certificate, one of another version, or an edited one.
Result<nlohmann::json> read_certificate(const std::filesystem::path& path);

}  // namespace tilepilot::agent
