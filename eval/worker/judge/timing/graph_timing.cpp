#include "eval/worker/judge/timing/graph_timing.h"

#include <algorithm>

#include "eval/samples.h"

namespace tilepilot::eval {
namespace {

constexpr double kLaunchBoundUs = 20;
constexpr int kGraphRounds = 7;
const std::string kNoGraph = "not timed as a CUDA graph: ";

struct GraphContestant {
  Contestant* contestant;
  std::vector<double> seconds = {};
  std::string obstacle = {};  // empty: none yet
};

// Why the candidate has no time in this round; empty: it has.
std::string run_graph_of(const GraphSides& sides, const PlannedBatch& planned, GraphContestant& graph) {
  CallChannel& channel = graph.contestant->channel;
  channel.link().set_limit(sides.time_limit_s);
  const std::vector<CallChannel::Base> bases = fresh_bases(planned, sides.source);
  if (!channel.prepare(planned.batch, bases)) return channel.link().failure().detail;
  const auto ran = channel.go();
  if (ran) graph.seconds.push_back(ran->claimed);
  return ran ? "" : channel.link().failure().detail;
}

// What is wrong with what its last replay returned.
std::string fault_of_replay(const GraphSides& sides, const PlannedBatch& planned, const EagerBatch& eager,
                            GraphContestant& graph) {
  CallChannel& channel = graph.contestant->channel;
  const auto answer = channel.fetch(0);
  if (!answer) return channel.link().failure().detail;
  const auto failure = sides.check.check({planned, eager, 0, sides.eager.weights()}, channel.link(), *answer);
  return failure ? "its replay gives something else: " + failure->detail : "";
}

Result<PlannedBatch> plan_graph(const GraphSides& sides) {
  PlannedBatch planned = TRY(sides.source.next(1, 0));
  planned.batch.graph = true;
  planned.batch.waits = false;  // for a kernel, which would end the capture
  return planned;
}

// The order of the sides is drawn. Errors: eager's.
Status run_graph_round(const GraphSides& sides, std::vector<GraphContestant>& graphs,
                       std::vector<double>& eager_seconds) {
  const PlannedBatch planned = TRY(plan_graph(sides));
  const size_t eager_turn = sides.source.random() % (graphs.size() + 1);
  std::optional<EagerBatch> eager;
  for (size_t turn = 0; turn <= graphs.size(); ++turn) {
    if (turn == eager_turn) eager = TRY(sides.eager.run_as_graph(planned.batch, sides.source));
    if (turn < graphs.size() && graphs[turn].obstacle.empty())
      graphs[turn].obstacle = run_graph_of(sides, planned, graphs[turn]);
  }
  eager_seconds.push_back(eager->seconds);
  for (GraphContestant& graph : graphs) {
    if (graph.obstacle.empty()) graph.obstacle = fault_of_replay(sides, planned, *eager, graph);
    CandidateLink& link = graph.contestant->channel.link();
    if (link.is_open()) graph.contestant->channel.rest();
  }
  sides.eager.drop(*std::move(eager));
  return {};
}

}  // namespace

bool is_launch_bound(const Verdict& verdict) {
  return verdict.candidate && verdict.eager &&
         std::min(verdict.candidate->median_us, verdict.eager->median_us) < kLaunchBoundUs;
}

void time_as_graphs(const GraphSides& sides, std::vector<Contestant>& contestants) {
  std::vector<GraphContestant> graphs;
  for (Contestant& contestant : contestants) {
    contestant.verdict.graph.reset();
    if (!contestant.failure && contestant.verdict.launch_bound) graphs.push_back({&contestant});
  }
  if (graphs.empty()) return;
  std::vector<double> eager;
  std::string why;
  if (sides.single || !sides.source.mutated().empty())
    why = "the model draws random numbers, or changes its inputs or its state";
  for (int round = 0; round < kGraphRounds && why.empty(); ++round) {
    auto ran = run_graph_round(sides, graphs, eager);
    if (!ran.ok()) why = "eager: " + ran.error().message;
  }
  for (GraphContestant& graph : graphs) {
    Verdict& verdict = graph.contestant->verdict;
    const std::string& obstacle = why.empty() ? graph.obstacle : why;
    if (obstacle.empty())
      verdict.graph = graph_timing(eager, graph.seconds);
    else
      verdict.notes.push_back(kNoGraph + obstacle);
  }
}

GraphTiming graph_timing(const std::vector<double>& eager, const std::vector<double>& candidate) {
  const auto [low, high] = ratio_interval(eager, candidate);
  return {timing_of(candidate), timing_of(eager), low, high};
}

}  // namespace tilepilot::eval
