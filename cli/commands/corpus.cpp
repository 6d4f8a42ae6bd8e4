// tilepilot corpus: the verified programs and the search over them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/generate/generate.h"
#include "agent/work_folder.h"
#include "cli/command.h"
#include "cli/commands/corpus_upkeep.h"
#include "compiler/untrusted/printable.h"
#include "retrieval/corpus_file.h"
#include "retrieval/seeds.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct CorpusFlags {
  std::string entry;
  std::string model;
  std::string text;
  std::string file;
  int count = 5;
};

json entry_json(const retrieval::Entry& entry, bool whole) {
  json object = retrieval::to_json(entry);
  object["id"] = entry.id;
  if (!whole)
    for (const char* text : {"source", "model_source", "certificate", "edges", "links"}) object.erase(text);
  return object;
}

// A line of what may have been imported.
std::string shown(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  return printable(line);
}

std::string table_line(const retrieval::Entry& entry) {
  std::string speedup = entry.speedup > 0 ? fmt::format("{:.2f}x", entry.speedup) : "-";
  return shown(fmt::format("{:>4}  {:<9}  {:<28}  {:<11}  {:>7}  {}{}", entry.id, entry.origin, entry.name,
                           entry.target, speedup, entry.quarantined.empty() ? "" : "[in quarantine] ", entry.summary));
}

std::string shapes_text(const std::vector<retrieval::TensorShape>& shapes) {
  std::string text;
  for (const auto& shape : shapes)
    text += fmt::format("{}{}[{}]", text.empty() ? "" : ", ", shape.dtype, fmt::join(shape.extents, ", "));
  return text;
}

// What is known of an entry besides its program, a line each.
std::vector<std::string> facts_of(const retrieval::Entry& entry) {
  std::vector<std::string> lines = {fmt::format("{} ({}), {} for {}: {}", entry.name, entry.uid.substr(0, 12),
                                                entry.origin, entry.target, entry.summary)};
  auto add = [&](std::string_view what, const std::string& text) {
    if (!text.empty() && text != "{}") lines.push_back(fmt::format("  {:<12} {}", what, text));
  };
  if (entry.speedup > 0)
    add("speed",
        fmt::format("{:.2f}x eager{}{}", entry.speedup,
                    entry.compile_speedup > 0 ? fmt::format(", {:.2f}x torch.compile", entry.compile_speedup) : "",
                    entry.roofline > 0 ? fmt::format(", {:.0f} % of the roofline", 100 * entry.roofline) : ""));
  if (!entry.inputs.empty()) add("shapes", shapes_text(entry.inputs) + " -> " + shapes_text(entry.outputs));
  add("licence", entry.licence);
  add("lineage", entry.lineage);
  add("proven", entry.verified.empty() ? "" : fmt::format("{} with {}", entry.verified, entry.toolchain));
  add("quarantine", entry.quarantined);
  return lines;
}

int list(Session& session, const CorpusFlags&) {
  auto corpus = open_corpus_with_seeds(session);
  if (!corpus) return session.fail(corpus.error());
  auto entries = (*corpus)->list();
  if (!entries) return session.fail(entries.error());
  json object = {{"ok", true}, {"entries", json::array()}};
  for (const auto& entry : *entries) {
    session.answer(table_line(entry));
    object["entries"].push_back(entry_json(entry, false));
  }
  session.finish(object);
  return kDone;
}

int show(Session& session, const CorpusFlags& options) {
  auto corpus = open_corpus_with_seeds(session);
  if (!corpus) return session.fail(corpus.error());
  auto entry = (*corpus)->find(options.entry);
  if (!entry) return session.fail(entry.error());
  if (!*entry)
    return session.fail({DiagnosticKind::bad_usage,
                         {},
                         fmt::format("the corpus has no entry `{}`", options.entry),
                         {},
                         "`tilepilot corpus list` shows them"});
  for (const std::string& line : facts_of(**entry)) session.progress(shown(line));
  session.answer(printable((*entry)->source));
  session.finish({{"ok", true}, {"entry", entry_json(**entry, true)}});
  return kDone;
}

Result<retrieval::Structure> structure_of_model(Session& session, const std::string& model) {
  if (model.empty()) return retrieval::Structure{};
  auto work = TRY(agent::WorkFolder::make(session.work_folder()));
  auto reference =
      TRY(agent::export_reference(session.sources, model, work.path() / "reference", session.exporter_options()));
  return agent::structure_of(reference);
}

int search(Session& session, const CorpusFlags& options) {
  if (options.model.empty() && options.text.empty())
    return session.fail(
        {DiagnosticKind::bad_usage, {}, "nothing to search for", {}, "give a model file, or `--text WORDS`"});
  auto corpus = open_corpus_with_seeds(session);
  if (!corpus) return session.fail(corpus.error());
  auto structure = structure_of_model(session, options.model);
  if (!structure) return session.fail(structure.error());
  retrieval::Query query{*structure, options.text};
  query.count = options.count;
  if (session.common.target != "auto") query.target = session.common.target;
  auto hits = (*corpus)->search(query);
  if (!hits) return session.fail(hits.error());
  json object = {{"ok", true}, {"hits", json::array()}};
  for (const auto& hit : *hits) {
    session.answer(shown(fmt::format("{:.2f}  {:<28}  {}", hit.score, hit.entry.name, hit.entry.summary)));
    if (!hit.reason.empty()) session.answer(shown("      " + hit.reason));
    object["hits"].push_back({{"score", hit.score}, {"reason", hit.reason}, {"entry", entry_json(hit.entry, false)}});
  }
  if (hits->empty()) session.answer("no entry of the corpus is related");
  session.finish(object);
  return kDone;
}

void add_action(CLI::App& corpus, Session& session, const std::shared_ptr<CorpusFlags>& options, const char* name,
                const char* help, int (*action)(Session&, const CorpusFlags&)) {
  corpus.add_subcommand(name, help)->callback([&session, options, action] {
    session.run = [&session, options, action] { return action(session, *options); };
  });
}

}  // namespace

void add_corpus(CLI::App& app, Session& session) {
  auto options = std::make_shared<CorpusFlags>();
  auto* command = app.add_subcommand("corpus", "The verified programs: list, show, search, prove again, share");
  command->require_subcommand(1);
  add_action(*command, session, options, "list", "All entries, a line each", list);
  add_action(*command, session, options, "show", "The program of one entry", show);
  add_action(*command, session, options, "search", "The entries that are most useful for a model, and why", search);
  command->get_subcommand("show")->add_option("entry", options->entry, "Id or name")->required();
  auto* find = command->get_subcommand("search");
  find->add_option("model", options->model, "Model file to find related programs for")->type_name("FILE");
  find->add_option("--text", options->text, "Words to look for");
  find->add_option("-n,--count", options->count, "Most entries to show")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_corpus_upkeep(*command, session);
}

}  // namespace tilepilot::cli
