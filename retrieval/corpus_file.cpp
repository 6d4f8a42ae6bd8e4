#include "retrieval/corpus_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/source/file.h"
#include "retrieval/corpus_rows.h"

namespace tilepilot::retrieval {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFormat = "tilepilot-corpus";
constexpr int kVersion = 1;

// Objects that an entry keeps as texts.
json object_in(const std::string& text) {
  json object = json::parse(text, nullptr, /*allow_exceptions*/ false);
  return object.is_object() ? object : json();
}

std::string text_in(const json& object, const char* key, const char* empty) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_object() ? empty : found->dump();
}

Error invalid(const fs::path& file, std::string_view problem, std::string hint = {}) {
  return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` {}", file.string(), problem), std::move(hint));
}

Status check_header(const fs::path& file, const std::string& line) {
  const json header = json::parse(line, nullptr, /*allow_exceptions*/ false);
  if (!header.is_object() || header.value("format", json()) != kFormat || !header.value("version", json()).is_number())
    return invalid(file, "is no exported corpus", "`tilepilot corpus export FILE` writes one");
  if (header["version"] > kVersion)
    return invalid(file,
                   fmt::format("was written by a newer TilePilot (version {} of the format, this one knows {})",
                               header["version"].dump(), kVersion),
                   "update TilePilot, or export it with this version");
  return {};
}

}  // namespace

json to_json(const Entry& entry) {
  return {{"uid", entry.uid},
          {"name", entry.name},
          {"origin", entry.origin},
          {"summary", entry.summary},
          {"tags", entry.tags},
          {"target", entry.target},
          {"fingerprint", entry.fingerprint},
          {"graph", entry.graph},
          {"ops", entry.structure.ops},
          {"edges", entry.structure.edges},
          {"links", entry.structure.links},
          {"dtype", entry.structure.dtype},
          {"largest_elements", entry.structure.largest_elements},
          {"inputs", to_json(entry.inputs)},
          {"outputs", to_json(entry.outputs)},
          {"speedup", entry.speedup},
          {"compile_speedup", entry.compile_speedup},
          {"roofline", entry.roofline},
          {"licence", entry.licence},
          {"created", entry.created},
          {"verified", entry.verified},
          {"quarantined", entry.quarantined.empty() ? json() : json(entry.quarantined)},
          {"toolchain", object_in(entry.toolchain)},
          {"task", object_in(entry.task)},
          {"lineage", object_in(entry.lineage)},
          {"certificate", object_in(entry.certificate)},
          {"source", entry.source},
          {"model_source", entry.model_source}};
}

Entry entry_from_json(const json& object) {
  Entry entry;
  object.at("uid").get_to(entry.uid);
  object.at("name").get_to(entry.name);
  object.at("origin").get_to(entry.origin);
  object.at("summary").get_to(entry.summary);
  object.at("tags").get_to(entry.tags);
  object.at("target").get_to(entry.target);
  object.at("ops").get_to(entry.structure.ops);
  object.at("edges").get_to(entry.structure.edges);
  object.at("links").get_to(entry.structure.links);
  object.at("dtype").get_to(entry.structure.dtype);
  object.at("largest_elements").get_to(entry.structure.largest_elements);
  entry.inputs = shapes_from(object.at("inputs"));
  entry.outputs = shapes_from(object.at("outputs"));
  object.at("speedup").get_to(entry.speedup);
  object.at("compile_speedup").get_to(entry.compile_speedup);
  object.at("roofline").get_to(entry.roofline);
  object.at("licence").get_to(entry.licence);
  object.at("created").get_to(entry.created);
  object.at("verified").get_to(entry.verified);
  if (!object.at("quarantined").is_null()) object.at("quarantined").get_to(entry.quarantined);
  entry.toolchain = text_in(object, "toolchain", "{}");
  entry.task = text_in(object, "task", "{}");
  entry.lineage = text_in(object, "lineage", "{}");
  entry.certificate = text_in(object, "certificate", "");
  object.at("source").get_to(entry.source);
  object.at("model_source").get_to(entry.model_source);
  entry.graph = graph_fingerprint(entry.structure);
  return entry;
}

Result<int64_t> export_corpus(Corpus& corpus, const fs::path& file) {
  const auto entries = TRY(corpus.list());
  std::string text = json({{"format", kFormat}, {"version", kVersion}, {"entries", entries.size()}}).dump() + "\n";
  for (const Entry& entry : entries) text += to_json(entry).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  std::string why;
  if (!write_file(file, text, &why))
    return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`: {}", file.string(), why),
                      "give a file that can be written");
  return static_cast<int64_t>(entries.size());
}

Result<Imported> import_corpus(Corpus& corpus, const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!stream)
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", file.string()),
                      "give the file that `tilepilot corpus export` wrote");
  std::getline(stream, line);
  TRY(check_header(file, line));
  std::vector<Entry> entries;
  for (int number = 2; std::getline(stream, line); ++number) {
    if (line.empty()) continue;
    try {
      entries.push_back(entry_from_json(json::parse(line)));
    } catch (const json::exception&) { return invalid(file, fmt::format("has no entry in line {}", number)); }
    Entry& entry = entries.back();
    entry.verified.clear();  // that it was proven here would be the file's word
    if (entry.origin != "seed" && entry.origin != "generated")
      return invalid(file, fmt::format("has an entry of unknown origin `{}` in line {}", entry.origin, number));
    if (const auto print = fingerprint(entry.source); !print.ok())
      return invalid(file,
                     fmt::format("has a program in line {} that does not parse: {}", number, print.error().message));
  }
  Imported imported;
  imported.added = TRY(corpus.add_all(entries));
  imported.known = static_cast<int64_t>(entries.size()) - imported.added;
  return imported;
}

}  // namespace tilepilot::retrieval
