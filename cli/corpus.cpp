// tilepilot corpus: the verified programs and the search over them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "agent/generate.h"
#include "agent/work_folder.h"
#include "cli/command.h"
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

json to_json(const retrieval::Entry& entry, bool with_source) {
  json object = {{"id", entry.id},           {"name", entry.name},
                 {"origin", entry.origin},   {"summary", entry.summary},
                 {"tags", entry.tags},       {"ops", entry.structure.ops},
                 {"speedup", entry.speedup}, {"target", entry.target},
                 {"created", entry.created}, {"fingerprint", entry.fingerprint}};
  if (with_source) object["source"] = entry.source;
  return object;
}

Result<std::unique_ptr<retrieval::Corpus>> open_with_seeds(const Session& session) {
  auto corpus = TRY(retrieval::open_corpus(session.store_file()));
  TRY(retrieval::sync_seeds(*corpus, session.environment.root / "seeds"));
  return corpus;
}

// Opens the corpus with the seeds in it; a store that can be read but not written is opened as it is.
Result<std::unique_ptr<retrieval::Corpus>> open(const Session& session) {
  auto corpus = open_with_seeds(session);
  if (corpus || corpus.error().kind != DiagnosticKind::store_unusable) return corpus;
  auto as_it_is = retrieval::open_corpus(session.store_file(), /*read_only*/ true);
  return as_it_is ? std::move(as_it_is) : std::move(corpus);
}

std::string table_line(const retrieval::Entry& entry) {
  std::string speedup = entry.speedup > 0 ? fmt::format("{:.2f}x", entry.speedup) : "-";
  return fmt::format("{:>4}  {:<9}  {:<28}  {:<11}  {:>7}  {}", entry.id, entry.origin, entry.name, entry.target,
                     speedup, entry.summary);
}

int list(Session& session, const CorpusFlags&) {
  auto corpus = open(session);
  if (!corpus) return session.fail(corpus.error());
  auto entries = (*corpus)->list();
  if (!entries) return session.fail(entries.error());
  json object = {{"ok", true}, {"entries", json::array()}};
  for (const auto& entry : *entries) {
    session.answer(table_line(entry));
    object["entries"].push_back(to_json(entry, false));
  }
  session.finish(object);
  return kDone;
}

int show(Session& session, const CorpusFlags& options) {
  auto corpus = open(session);
  if (!corpus) return session.fail(corpus.error());
  auto entry = (*corpus)->find(options.entry);
  if (!entry) return session.fail(entry.error());
  if (!*entry)
    return session.fail({DiagnosticKind::bad_usage,
                         {},
                         fmt::format("the corpus has no entry `{}`", options.entry),
                         {},
                         "`tilepilot corpus list` shows them"});
  session.answer((*entry)->source);
  session.finish({{"ok", true}, {"entry", to_json(**entry, true)}});
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
  auto corpus = open(session);
  if (!corpus) return session.fail(corpus.error());
  auto structure = structure_of_model(session, options.model);
  if (!structure) return session.fail(structure.error());
  auto hits = (*corpus)->search(*structure, options.text, options.count);
  if (!hits) return session.fail(hits.error());
  json object = {{"ok", true}, {"hits", json::array()}};
  for (const auto& hit : *hits) {
    session.answer(fmt::format("{:.2f}  {:<28}  {}\n      because it {}", hit.score, hit.entry.name, hit.entry.summary,
                               hit.reason));
    object["hits"].push_back({{"score", hit.score}, {"reason", hit.reason}, {"entry", to_json(hit.entry, false)}});
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
  auto* command = app.add_subcommand("corpus", "The verified programs: list, show, search");
  command->require_subcommand(1);
  add_action(*command, session, options, "list", "All entries, a line each", list);
  add_action(*command, session, options, "show", "The program of one entry", show);
  add_action(*command, session, options, "search", "The entries that are most useful for a model, and why", search);
  command->get_subcommand("show")->add_option("entry", options->entry, "Id or name")->required();
  auto* find = command->get_subcommand("search");
  find->add_option("model", options->model, "Model file to find related programs for");
  find->add_option("--text", options->text, "Words to look for");
  find->add_option("-n,--count", options->count, "Most entries to show")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

}  // namespace tilepilot::cli
