#include "cli/commands/corpus_upkeep.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/store/corpus_verify.h"
#include "cli/flags/chosen_target.h"
#include "cli/manual/help.h"
#include "retrieval/corpus_file.h"
#include "retrieval/seeds.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct UpkeepFlags {
  std::string file;
  std::vector<std::string> names;
  bool all = false;
  bool anew = false;
};

Result<std::unique_ptr<retrieval::Corpus>> open_to_write(const Session& session) {
  auto corpus = TRY(retrieval::open_corpus(session.store_file()));
  TRY(retrieval::sync_seeds(*corpus, session.environment.root / "seeds"));
  return corpus;
}

json named(const std::vector<agent::CorpusVerification::NotProven>& entries) {
  json list = json::array();
  for (const auto& entry : entries) list.push_back({{"name", entry.name}, {"why", entry.why}});
  return list;
}

Result<agent::CorpusVerification> prove(Session& session, const UpkeepFlags& flags) {
  agent::CorpusVerifyOptions options;
  options.work = session.work_folder();
  options.exporter = session.exporter_options();
  options.judge = TRY(session.judge_options());
  options.judge.target = runtime::to_string(chosen_target(TRY(runtime::parse_target(session.common.target))));
  options.all = flags.all;
  options.names = flags.names;
  options.version = version_text(session.environment);
  options.progress = [&session](const std::string& line) { session.progress(line); };
  auto corpus = TRY(open_to_write(session));
  return agent::verify_corpus(session.sources, *corpus, options);
}

int run_verify_corpus(Session& session, const UpkeepFlags& flags) {
  const auto result = prove(session, flags);
  if (!result) return session.fail(result.error());
  for (const auto& failure : result->failures)
    session.answer(fmt::format("in quarantine: {}, {}", failure.name, failure.why));
  for (const auto& skipped : result->skipped)
    session.progress(fmt::format("skipped: {}, {}", skipped.name, skipped.why));
  session.answer(fmt::format("{} hold, {} failed, {} skipped, {} were proven with what is here", result->held,
                             result->failed, result->skipped.size(), result->unchanged));
  session.finish({{"ok", result->failed == 0},
                  {"held", result->held},
                  {"failed", result->failed},
                  {"unchanged", result->unchanged},
                  {"failures", named(result->failures)},
                  {"skipped", named(result->skipped)}});
  return result->failed == 0 ? kDone : kNotVerified;
}

int run_export_corpus(Session& session, const UpkeepFlags& flags) {
  auto corpus = open_corpus_with_seeds(session);
  if (!corpus) return session.fail(corpus.error());
  const auto file = session.output_file(flags.file);
  if (!file) return session.fail(file.error());
  const auto written = retrieval::export_corpus(**corpus, *file);
  if (!written) return session.fail(written.error());
  session.answer(fmt::format("{}: {} entries", flags.file, *written));
  session.finish({{"ok", true}, {"file", flags.file}, {"entries", *written}});
  return kDone;
}

Result<retrieval::Imported> take_file(Session& session, const std::string& file) {
  auto corpus = TRY(open_to_write(session));
  return retrieval::import_corpus(*corpus, file);
}

int run_import_corpus(Session& session, const UpkeepFlags& flags) {
  const auto imported = take_file(session, flags.file);
  if (!imported) return session.fail(imported.error());
  session.answer(fmt::format("{} entries added, {} were there; `tilepilot corpus verify` proves them here",
                             imported->added, imported->known));
  session.finish({{"ok", true}, {"added", imported->added}, {"known", imported->known}});
  return kDone;
}

Result<retrieval::IndexState> make_index(Session& session, bool anew) {
  auto corpus = TRY(open_to_write(session));
  return corpus->update_index(anew);
}

int run_index_corpus(Session& session, const UpkeepFlags& flags) {
  const auto state = make_index(session, flags.anew);
  if (!state) return session.fail(state.error());
  std::string line =
      fmt::format("{} index of {} entries with {} structures", state->kind, state->entries, state->structures);
  if (state->kind == "ivf")
    line += fmt::format(", {} of them newer than its file; {} of {} clusters are looked at; {:.1f} MiB", state->tail,
                        state->probes, state->clusters, static_cast<double>(state->bytes) / (1 << 20));
  session.answer(line);
  session.finish({{"ok", true},
                  {"kind", state->kind},
                  {"entries", state->entries},
                  {"structures", state->structures},
                  {"tail", state->tail},
                  {"bytes", state->bytes},
                  {"clusters", state->clusters},
                  {"probes", state->probes}});
  return kDone;
}

CLI::App* add_upkeep(CLI::App& corpus, Session& session, const std::shared_ptr<UpkeepFlags>& flags, const char* name,
                     const char* help, int (*action)(Session&, const UpkeepFlags&)) {
  CLI::App* command = corpus.add_subcommand(name, help);
  command->callback(
      [&session, flags, action] { session.run = [&session, flags, action] { return action(session, *flags); }; });
  return command;
}

}  // namespace

Result<std::unique_ptr<retrieval::Corpus>> open_corpus_with_seeds(const Session& session) {
  auto corpus = open_to_write(session);
  if (corpus || corpus.error().kind != DiagnosticKind::store_unusable) return corpus;
  auto as_it_is = retrieval::open_corpus(session.store_file(), /*read_only*/ true);
  return as_it_is ? std::move(as_it_is) : std::move(corpus);
}

void add_corpus_upkeep(CLI::App& corpus, Session& session) {
  auto flags = std::make_shared<UpkeepFlags>();
  auto* verify = add_upkeep(
      corpus, session, flags, "verify",
      "Prove entries again that were proven with another compiler, driver or TilePilot; what fails goes into "
      "quarantine",
      run_verify_corpus);
  verify->add_option("names", flags->names, "Entries to prove (default: all)");
  verify->add_flag("--all", flags->all, "Prove also those that were proven with what is here");
  add_upkeep(corpus, session, flags, "export", "Write all entries to a file", run_export_corpus)
      ->add_option("file", flags->file, "Where they go (JSON Lines)")
      ->type_name("FILE")
      ->required();
  add_upkeep(corpus, session, flags, "import", "Add the entries of such a file that are not there yet",
             run_import_corpus)
      ->add_option("file", flags->file, "What `corpus export` wrote")
      ->type_name("FILE")
      ->required();
  add_upkeep(corpus, session, flags, "index", "Make the index now that searches of a large corpus use",
             run_index_corpus)
      ->add_flag("--anew", flags->anew, "Also where there is one");
}

}  // namespace tilepilot::cli
