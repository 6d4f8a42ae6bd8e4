#include "agent/briefing.h"

#include <fmt/format.h>

#include "agent/builtin/builtin_author.h"
#include "agent/generate.h"
#include "compiler/runtime/target.h"
#include "retrieval/patterns.h"

namespace tilepilot::agent {

eval::Preflight preflight_for(const eval::Reference& reference, const std::string& target,
                              const eval::JudgeOptions& judge) {
  const auto parsed = runtime::parse_target(target);
  const bool on_gpu = parsed.ok() && parsed->place == runtime::Place::gpu;
  return eval::preflight(reference,
                         on_gpu ? eval::rates_of_gpu(parsed->architecture, judge.dtype)
                                : eval::rates_of_processor(judge.threads, judge.cache),
                         on_gpu);
}

Result<Briefing> brief(const eval::Reference& reference, const eval::Preflight& preflight, retrieval::Corpus& corpus,
                       const BriefingOptions& options) {
  retrieval::Query query{structure_of(reference)};
  query.count = options.retrieved;
  query.target = options.target;
  query.exclude_near = options.exclude_near;
  // Programs that together show how to write what is in the model.
  auto chosen = TRY(retrieval::choose_covering(corpus, query));
  Briefing briefing;
  for (const retrieval::Hit& hit : chosen.hits) {
    options.progress(fmt::format("retrieved {}: {}", hit.entry.name, hit.reason));
    briefing.shown.push_back(hit.entry.uid);
  }
  LlmAuthorOptions& author = briefing.author;
  // A model that it cannot follow has no such program; who asks that author alone is told why.
  const auto planned = builtin_author(reference, {.target = options.target})->next({});
  if (planned.ok() && *planned) author.start = (*planned)->source;
  author.system = system_prompt(options.target);
  author.task = task_prompt({reference, options.target, options.judge.aten, preflight, options.judge.threads,
                             std::move(chosen.hits), author.start});
  author.least_s = preflight.least.least_s();
  author.context_tokens = options.context_tokens;
  author.answer_tokens = options.answer_tokens;
  author.progress = options.progress;
  return briefing;
}

}  // namespace tilepilot::agent
