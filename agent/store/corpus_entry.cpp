#include "agent/store/corpus_entry.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/generate/generate.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

retrieval::TensorShape shape_of(const eval::GraphValue& value) { return {value.dtype, value.shape}; }

std::vector<retrieval::TensorShape> output_shapes(const eval::Graph& graph) {
  std::vector<retrieval::TensorShape> shapes;
  eval::for_each_value(graph.outputs, [&](int id) {
    if (const auto& value = graph.values[static_cast<size_t>(id)]; value.is_tensor) shapes.push_back(shape_of(value));
  });
  return shapes;
}

// Texts of models may hold anything.
std::string json_text(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::vector<retrieval::TensorShape> input_shapes(const eval::Graph& graph) {
  std::vector<retrieval::TensorShape> shapes;
  for (int input : graph.inputs)
    if (const auto& value = graph.values[static_cast<size_t>(input)]; value.is_tensor)
      shapes.push_back(shape_of(value));
  return shapes;
}

std::string licence_in(const std::string& source) {
  constexpr std::string_view kMark = "SPDX-License-Identifier:";
  const size_t mark = source.find(kMark);
  if (mark == std::string::npos) return {};
  const size_t begin = source.find_first_not_of(" \t", mark + kMark.size());
  if (begin == std::string::npos) return {};
  const std::string line = source.substr(begin, source.find_first_of("\r\n", begin) - begin);
  const size_t end = line.find_last_not_of(" \t*/\"'");
  return end == std::string::npos ? std::string() : line.substr(0, end + 1);
}

std::string toolchain_of(const json& environment) {
  json toolchain = json::object();
  for (const char* part : {"tilepilot", "compiler", "torch", "gpu", "driver"})
    if (environment.contains(part)) toolchain[part] = environment[part];
  return json_text(toolchain);
}

retrieval::Entry corpus_entry(const EntryFacts& facts) {
  const eval::Verdict& verdict = facts.certified.verdict;
  retrieval::Entry entry;
  entry.name = facts.name;
  entry.origin = "generated";
  entry.summary = facts.summary;
  entry.structure = structure_of(facts.reference);
  entry.source = facts.certified.source;
  entry.speedup = verdict.speedup();
  entry.target = verdict.target;
  entry.graph = retrieval::graph_fingerprint(entry.structure);
  if (const eval::CompiledTiming* compiled = verdict.best_compiled()) entry.compile_speedup = compiled->speedup;
  if (verdict.candidate && verdict.candidate->median_us > 0)
    entry.roofline = std::min(1.0, 1e6 * facts.preflight.least.least_s() / verdict.candidate->median_us);
  entry.inputs = input_shapes(facts.reference.forward);
  entry.outputs = output_shapes(facts.reference.forward);
  entry.model_source = facts.certified.model_source;
  entry.licence = licence_in(entry.model_source);
  const auto& judge = facts.certified.judge;
  entry.task = json_text({{"seed", facts.certified.exporter.seed},
                          {"scale", facts.certified.exporter.scale},
                          {"dtype", judge.dtype},
                          {"precision", judge.precision},
                          {"aten", judge.aten},
                          {"allow_foreign", judge.allow_foreign}});
  entry.lineage = json_text({{"run", facts.run},
                             {"attempt", facts.attempt},
                             {"author", facts.author},
                             {"model", facts.certified.model.string()},
                             {"shown", facts.shown}});
  const json certificate = make_certificate(facts.certified, facts.certified.program.parent_path());
  entry.toolchain = toolchain_of(certificate.at("environment"));
  entry.certificate = json_text(certificate);
  entry.verified = certificate.at("created");
  return entry;
}

}  // namespace tilepilot::agent
