#include "agent/store/corpus_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/store/corpus_entry.h"
#include "agent/work_folder.h"
#include "compiler/source/file.h"
#include "retrieval/seeds.h"

namespace tilepilot::agent {
namespace {

using nlohmann::json;

// Whose fault it is that an entry could not be judged.
enum class Fault { entry, machine, neither };
Fault fault_of(const Diagnostic& error) {
  switch (error.kind) {
    case DiagnosticKind::model_invalid:
    case DiagnosticKind::syntax_error:
      // This Python may lack what another one had.
      return error.message.find("ModuleNotFoundError") == std::string::npos ? Fault::entry : Fault::neither;
    case DiagnosticKind::compiler_missing:
    case DiagnosticKind::nvrtc_missing:
    case DiagnosticKind::driver_missing:
    case DiagnosticKind::worker_unavailable:
    case DiagnosticKind::not_installed:
    case DiagnosticKind::load_failed:
    case DiagnosticKind::cache_unwritable:
      return Fault::machine;
    default:
      return Fault::neither;
  }
}

class CorpusVerifier {
 public:
  CorpusVerifier(SourceMap& sources, retrieval::Corpus& corpus, const CorpusVerifyOptions& options)
      : sources_(sources), corpus_(corpus), options_(options) {
    Certified here;
    here.version = options.version;
    here.verdict.target = options.judge.target;
    here_ = describe_environment(here);
  }

  Result<CorpusVerification> run() {
    const auto entries = TRY(corpus_.list());
    for (const std::string& name : options_.names)
      if (std::none_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; }))
        return make_error(DiagnosticKind::bad_usage, {}, fmt::format("the corpus has no entry `{}`", name),
                          "`tilepilot corpus list` shows them");
    for (const retrieval::Entry& entry : entries)
      if (options_.names.empty() ||
          std::find(options_.names.begin(), options_.names.end(), entry.name) != options_.names.end())
        TRY(prove(entry));
    return std::move(result_);
  }

 private:
  void skip(const retrieval::Entry& entry, std::string why) { result_.skipped.push_back({entry.name, std::move(why)}); }

  // Of what a proof depends on, PyTorch is known when a model was exported; the rest is known before.
  bool is_proven_here(const retrieval::Entry& entry) const {
    if (!entry.quarantined.empty() || entry.verified.empty()) return false;
    const json then = json::parse(entry.toolchain, nullptr, /*allow_exceptions*/ false);
    for (const char* part : {"tilepilot", "compiler", "gpu", "driver"})
      if (!then.is_object() || then.value(part, json()) != here_.value(part, json())) return false;
    return true;
  }

  Status prove(const retrieval::Entry& entry) {
    if (entry.target != options_.judge.target) {
      skip(entry, fmt::format("it is for `{}`, and `{}` is judged here", entry.target, options_.judge.target));
      return {};
    }
    const std::string model = retrieval::model_of(entry);
    if (model.empty()) {
      skip(entry, "the model that it is a program for is not known");
      return {};
    }
    if (!options_.all && is_proven_here(entry)) {
      ++result_.unchanged;
      return {};
    }
    options_.progress(fmt::format("proving {} ({})", entry.name, entry.id));
    const WorkFolder work = TRY(WorkFolder::make(options_.work));
    const CheckOptions check = check_options(entry, work.path());
    std::string why;
    if (!write_file(check.model, model, &why) || !write_file(check.candidate, entry.source, &why))
      return make_error(DiagnosticKind::output_unwritable, {},
                        fmt::format("cannot write to `{}`: {}", work.path().string(), why));
    auto checked = options_.check(sources_, check);
    if (checked.ok()) return record(entry, *checked);
    switch (fault_of(checked.error())) {
      case Fault::entry:
        return quarantine(entry, checked.error().message, toolchain_of(here_));
      case Fault::machine:
        return std::move(checked).take_error();
      case Fault::neither:
        skip(entry, checked.error().message);
    }
    return {};
  }

  CheckOptions check_options(const retrieval::Entry& entry, const std::filesystem::path& folder) const {
    CheckOptions check;
    check.model = folder / "model.py";
    check.candidate = folder / "program.py";
    check.work = folder;
    check.exporter = options_.exporter;
    check.exporter.scale.clear();  // the model's text has the sizes that it was judged with
    check.judge = options_.judge;
    check.judge.seed.reset();
    check.time = false;
    const json task = json::parse(entry.task, nullptr, /*allow_exceptions*/ false);
    if (!task.is_object()) return check;
    try {
      check.exporter.seed = task.value("seed", check.exporter.seed);
      check.judge.dtype = check.exporter.dtype = task.value("dtype", check.judge.dtype);
      check.judge.precision = task.value("precision", check.judge.precision);
      check.judge.aten = task.value("aten", check.judge.aten);
    } catch (const json::exception&) {}  // what others wrote: the usual task
    return check;
  }

  Status record(const retrieval::Entry& entry, const Certified& checked) {
    const eval::Verdict& verdict = checked.verdict;
    if (verdict.outcome == eval::Outcome::worker_failed) {
      skip(entry, fmt::format("the worker failed: {}", verdict.detail));
      return {};
    }
    Certified here = checked;
    here.version = options_.version;
    const std::string toolchain = toolchain_of(describe_environment(here));
    if (verdict.outcome != eval::Outcome::verified)
      return quarantine(entry, fmt::format("{}: {}", eval::to_string(verdict.outcome), verdict.detail), toolchain);
    ++result_.held;
    return corpus_.record_proof(entry.id, {true, {}, toolchain});
  }

  Status quarantine(const retrieval::Entry& entry, const std::string& why, const std::string& toolchain) {
    ++result_.failed;
    result_.failures.push_back({entry.name, why});
    options_.progress(fmt::format("{} goes into quarantine: {}", entry.name, why));
    return corpus_.record_proof(entry.id, {false, why, toolchain});
  }

  SourceMap& sources_;
  retrieval::Corpus& corpus_;
  const CorpusVerifyOptions& options_;
  json here_;  // environment
  CorpusVerification result_;
};

}  // namespace

Result<CorpusVerification> verify_corpus(SourceMap& sources, retrieval::Corpus& corpus,
                                         const CorpusVerifyOptions& options) {
  return CorpusVerifier(sources, corpus, options).run();
}

}  // namespace tilepilot::agent
