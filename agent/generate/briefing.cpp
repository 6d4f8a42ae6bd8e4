#include "agent/generate/briefing.h"

#include <fmt/format.h>

#include "agent/builtin/builtin_author.h"
#include "agent/eager_times.h"
#include "agent/generate/generate.h"
#include "agent/store/learning.h"
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

Result<Briefing> brief(const eval::Reference& reference, const eval::Preflight& preflight, const Memory& memory,
                       const BriefingOptions& options) {
  retrieval::Query query{structure_of(reference)};
  query.count = options.retrieved;
  query.target = options.target;
  query.exclude_near = options.exclude_near;
  query.longest_source = kLongestExample;
  // Programs that together show how to write what is in the model.
  auto chosen = TRY(retrieval::choose_covering(memory.corpus, query));
  Briefing briefing;
  for (const retrieval::Hit& hit : chosen.hits) {
    options.progress(fmt::format("retrieved {}: {}", hit.entry.name, hit.reason));
    briefing.shown.push_back(hit.entry.uid);
  }
  const auto patterns = retrieval::patterns_of(query.structure);
  const std::string excluded = options.exclude_near > 0 ? retrieval::graph_fingerprint(query.structure) : "";
  auto lessons = TRY(memory.lessons.lessons({.patterns = {patterns.begin(), patterns.end()},
                                             .target = options.target,
                                             .exclude_graph = excluded,
                                             .count = options.retrieved}));
  std::optional<eval::EagerTimes> eager;
  if (options.measure_eager)
    eager = eager_times({reference, preflight, options.target, options.judge}, options.measure_eager, options.progress);
  LlmAuthorOptions& author = briefing.author;
  // A model that it cannot follow has no such program; who asks that author alone is told why.
  const auto planned = builtin_author(reference, {.target = options.target})->next({});
  if (planned.ok() && *planned) author.start = (*planned)->source;
  author.system = system_prompt(options.target, options.variants);
  author.task = task_prompt({reference, options.target, options.judge.aten, preflight, options.judge.threads,
                             std::move(chosen.hits), author.start, std::move(lessons), std::move(eager)});
  author.bound = preflight.bound;
  author.products = eval::product_times(eval::GraphUses(reference.forward), preflight.rates);
  author.variants = options.variants;
  author.context_tokens = options.context_tokens;
  author.answer_tokens = options.answer_tokens;
  author.parallel = options.parallel;
  author.recall = [&store = memory.lessons, excluded, target = options.target](const Attempt& failed) {
    retrieval::FixQuery failure = fix_query(failed);
    failure.target = target;
    failure.exclude_graph = excluded;
    auto fixes = store.fixes(failure);
    return fixes ? *std::move(fixes) : std::vector<retrieval::Fix>();  // of a store that fails, who writes to it tells
  };
  author.progress = options.progress;
  return briefing;
}

}  // namespace tilepilot::agent
