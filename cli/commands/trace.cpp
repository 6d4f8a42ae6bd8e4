// tilepilot trace RUN: what was said, tried and paid in a run of `generate`.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "agent/store/line_diff.h"
#include "agent/store/recording.h"
#include "agent/store/transcript.h"
#include "cli/command.h"
#include "cli/verdict_text.h"
#include "compiler/untrusted/printable.h"

namespace tilepilot::cli {
namespace {

using nlohmann::json;

struct TraceFlags {
  int64_t run = 0;
  bool full = false;
  std::string html, save, output, format = "jsonl";
  int count = 1000;
};

Result<agent::Transcript> find_transcript(const Session& session, int64_t run) {
  auto store = TRY(agent::RunStore::open(session.store_file(), /*read_only*/ true));
  auto transcript = TRY(agent::load_transcript(*store, run));
  if (!transcript) return make_error(session.no_run(run));
  return *std::move(transcript);
}

std::string exchange_line(const agent::Transcript& transcript, size_t number) {
  const agent::Exchange& exchange = transcript.exchanges[number];
  std::string text = fmt::format("    request {}: {:.1f} s, {} tokens read, {} written{}, ${:.4f}", number + 1,
                                 exchange.seconds, exchange.input_tokens, exchange.output_tokens,
                                 exchange.estimated ? " (estimated)" : "", exchange.dollars);
  if (!exchange.failure.empty()) text += "; " + printable(exchange.failure, 200);
  return text;
}

void tell_exchanges(const Session& session, const agent::Transcript& transcript, int attempt, bool beyond, bool full) {
  for (size_t i = 0; i < transcript.exchanges.size(); ++i) {
    const agent::Exchange& exchange = transcript.exchanges[i];
    if (beyond ? exchange.attempt < attempt : exchange.attempt != attempt) continue;
    session.answer(exchange_line(transcript, i));
    if (!full) continue;
    const auto messages = agent::messages_in(exchange.request);
    if (!messages.empty()) session.answer("--- asked ---\n" + printable(messages.back().content));
    if (const std::string reply = agent::reply_text(transcript, exchange); !reply.empty())
      session.answer("--- answered ---\n" + printable(reply) + "\n---");
  }
}

void tell_diff(const Session& session, const std::string& before, const std::string& after) {
  constexpr size_t kAround = 1;
  for (const agent::DiffLine& line : agent::shorten_diff(agent::diff_lines(before, after), kAround)) {
    const bool added = line.kind == agent::DiffLine::Kind::added, removed = line.kind == agent::DiffLine::Kind::removed;
    session.answer(fmt::format("      {} {}", added ? '+' : removed ? '-' : ' ', printable(line.text)));
  }
}

void tell(const Session& session, const agent::Transcript& transcript, bool full) {
  const agent::StoredRun& run = transcript.run;
  const agent::TranscriptTotals totals = agent::totals_of(transcript.exchanges);
  session.answer(fmt::format("run {}: {}, author {}, {} ({})", run.summary.id, run.summary.model, run.summary.author,
                             run.summary.started, run.summary.finished.empty() ? "did not end" : run.summary.ending));
  session.answer(fmt::format("  {} requests, {} failed; {} tokens read, {} written, ${:.4f}, {:.1f} s of waiting",
                             totals.requests, totals.failed, totals.input_tokens, totals.output_tokens, totals.dollars,
                             totals.seconds));
  const int count = static_cast<int>(run.attempts.size());
  for (int number = 0; number < count; ++number) {
    const agent::Attempt& attempt = run.attempts[static_cast<size_t>(number)];
    session.answer(fmt::format("{} attempt {}: {}", run.best == static_cast<size_t>(number) ? "*" : " ", number + 1,
                               attempt.candidate.summary));
    tell_exchanges(session, transcript, number, /*beyond*/ false, full);
    if (const auto before = agent::compared_with(run, static_cast<size_t>(number)))
      tell_diff(session, run.attempts[*before].candidate.source, attempt.candidate.source);
    session.answer("    " + one_line(attempt.told()));
  }
  tell_exchanges(session, transcript, count, /*beyond*/ true, full);
}

int save_recording(Session& session, const TraceFlags& flags) {
  auto store = agent::RunStore::open(session.store_file(), /*read_only*/ true);
  if (!store) return session.fail(store.error());
  auto recording = agent::load_recording(**store, flags.run);
  if (!recording) return session.fail(recording.error());
  if (!*recording) return session.fail(session.no_run(flags.run));
  const std::string text = agent::to_json(**recording).dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (const Status written = session.write_output(flags.save, text); !written) return session.fail(written.error());
  session.answer(fmt::format("{}: run {}, for `generate --replay`", flags.save, flags.run));
  session.finish({{"ok", true}, {"run", flags.run}, {"saved", flags.save}});
  return kDone;
}

int show_trace(Session& session, const TraceFlags& flags) {
  if (!flags.save.empty()) return save_recording(session, flags);
  auto transcript = find_transcript(session, flags.run);
  if (!transcript) return session.fail(transcript.error());
  json object = {{"ok", true}, {"run", flags.run}};
  if (!flags.html.empty()) {
    if (const Status written = session.write_output(flags.html, agent::transcript_page(*transcript)); !written)
      return session.fail(written.error());
    session.answer(fmt::format("{}: run {}", flags.html, flags.run));
    object["html"] = flags.html;
  } else {
    tell(session, *transcript, flags.full);
  }
  const agent::TranscriptTotals totals = agent::totals_of(transcript->exchanges);
  object.update({{"requests", totals.requests},
                 {"failed_requests", totals.failed},
                 {"input_tokens", totals.input_tokens},
                 {"output_tokens", totals.output_tokens},
                 {"cached_tokens", totals.cached_tokens},
                 {"dollars", totals.dollars},
                 {"attempts", transcript->run.attempts.size()}});
  session.finish(object);
  return kDone;
}

Result<std::string> records_of(const Session& session, const TraceFlags& flags, size_t& count) {
  auto store = TRY(agent::RunStore::open(session.store_file(), /*read_only*/ true));
  std::vector<int64_t> runs;
  if (flags.run > 0) {
    runs.push_back(flags.run);
  } else {
    for (const auto& run : TRY(store->list(flags.count))) runs.insert(runs.begin(), run.id);
  }
  std::string text;
  for (int64_t run : runs) {
    auto transcript = TRY(find_transcript(session, run));
    for (const json& record : agent::training_records(transcript)) {
      text += record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
      ++count;
    }
  }
  return text;
}

int export_traces(Session& session, const TraceFlags& flags) {
  size_t count = 0;
  auto text = records_of(session, flags, count);
  if (!text) return session.fail(text.error());
  if (const Status written = session.write_output(flags.output, *text); !written) return session.fail(written.error());
  session.answer(fmt::format("{}: {} records", flags.output, count));
  session.finish({{"ok", true}, {"output", flags.output}, {"records", count}});
  return kDone;
}

}  // namespace

void add_trace(CLI::App& app, Session& session) {
  auto flags = std::make_shared<TraceFlags>();
  auto* command = app.add_subcommand("trace", "What was said, tried and paid in a run of generate");
  command->add_option("run", flags->run, "Number of the run")->check(CLI::PositiveNumber);
  command->add_flag("--full", flags->full, "With what was asked and answered");
  command->add_option("--html", flags->html, "Write one HTML page instead, with everything")->type_name("FILE");
  command
      ->add_option("--save", flags->save, "Write a recording instead, which `generate --replay` plays again anywhere")
      ->type_name("FILE");
  command->callback([&session, flags, command] {
    if (!command->get_subcommands().empty()) return;
    if (flags->run == 0) throw CLI::RequiredError("run");
    session.run = [&session, flags] { return show_trace(session, *flags); };
  });
  auto* records = command->add_subcommand("export", "Training records of runs with a verified program");
  records->add_option("-o,--output", flags->output, "Where they go, a JSON object a line")
      ->type_name("FILE")
      ->required();
  records->add_option("--run", flags->run, "Of this run alone (default: all)")->check(CLI::PositiveNumber);
  records->add_option("-n,--count", flags->count, "Most runs, newest first")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  records->add_option("--format", flags->format, "What is written")
      ->check(CLI::IsMember({"jsonl"}))
      ->capture_default_str();
  records->callback([&session, flags] { session.run = [&session, flags] { return export_traces(session, *flags); }; });
  command->footer("Example:\n  tilepilot trace 12 --html run.html");
}

}  // namespace tilepilot::cli
