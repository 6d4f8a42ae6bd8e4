// The main job from end to end: export the reference, retrieve, let an author and the judge go round, keep the best
// verified program.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "agent/certificate.h"
#include "agent/generate/improve.h"
#include "agent/llm/endpoint/chat.h"
#include "eval/graph/preflight.h"
#include "retrieval/neighbour.h"

namespace tilepilot::agent {

struct GenerateOptions {
  std::filesystem::path model;
  std::filesystem::path output;    // where the best verified program goes
  std::string author = "builtin";  // or "llm", "mixed"
  Budget budget;
  ExporterOptions exporter;
  eval::JudgeOptions judge;
  std::filesystem::path store;      // database of corpus and runs
  std::filesystem::path work;       // folder for the exported reference (a fresh one is made inside and removed)
  std::filesystem::path seeds;      // seeds/ of this installation
  ChatOptions chat;                 // author llm
  std::optional<Recording> replay;  // author llm: answer from this run instead of the network
  int retrieved = 3;                // kernels shown to the language model
  int64_t context_tokens = 0;       // of the language model; 0: unknown
  int parallel = 1;                 // answers of the language model that are asked for at once
  bool force = false;               // author mixed: ask the language model whatever there is to gain
  std::filesystem::path program;    // `tilepilot`, which compiles what the language model asks about
  int64_t batch = 0;  // that this run belongs to: its run that was interrupted goes on, if there is one; 0: none
  bool add_to_corpus = true;
  // Entries of the corpus that are nearer to the model than that are not shown to an author (retrieval/corpus.h); 0:
  // all may be.
  double exclude_near = 0;
  std::string version;  // of TilePilot, for the certificate that the corpus keeps
};

struct GenerateResult {
  RunOutcome outcome;
  int64_t run = 0;
  bool written = false;                // a verified program is at `output`
  bool added_to_corpus = false;        // false: not verified, degenerate, or there already
  std::optional<Certified> certified;  // all that a certificate of the written program wants
  eval::Preflight preflight;           // what the graph alone tells: costs, the roofline, shortcuts
  // What of the corpus was nearest to the model before the run, whether its author looks there or not.
  std::optional<retrieval::Neighbour> neighbour;
  bool neighbour_known = false;  // a run that an earlier version began does not say it
  const Attempt* best() const { return outcome.best ? &outcome.attempts[*outcome.best] : nullptr; }
};

struct GenerateEvents {
  std::function<void(const std::string&)> progress;
  std::function<void(int64_t run)> on_run = [](int64_t) {};  // the run is in the database under this number
  LoopEvents loop;
};

// Errors: the model cannot be exported, the store or the worker cannot be opened, the output cannot be written. That no
// candidate was verified is a result.
Result<GenerateResult> generate(SourceMap& sources, const GenerateOptions& options, const GenerateEvents& events);

// What the corpus search needs to know of a model.
retrieval::Structure structure_of(const eval::Reference& reference);

}  // namespace tilepilot::agent
