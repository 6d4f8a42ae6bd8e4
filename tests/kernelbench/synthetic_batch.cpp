#include "tests/kernelbench/synthetic_batch.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "eval/judge.h"

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;

constexpr Ending kEndings[] = {Ending::verified, Ending::verified,  Ending::verified,   Ending::given_inputs_only,
                               Ending::failed,   Ending::abstained, Ending::not_loaded, Ending::does_not_fit,
                               Ending::verified, Ending::not_judged};

eval::Verdict verdict_of(int id, bool good) {
  eval::Verdict verdict;
  verdict.outcome = good ? eval::Outcome::verified : eval::Outcome::wrong_values;
  verdict.target = "cuda:sm_90a";
  for (int trial = 0; trial < 5; ++trial)
    verdict.errors.push_back({trial, 0, 1e-6 * (id + trial) * (good ? 1 : 1e4), 1e-5, 1e-6, 1e-4, "[3, 17]",
                              good ? "" : "only the last 24 columns", good ? 0 : 0.1});
  if (!good) {
    verdict.detail =
        "output 0 differs by 0.3 in 24 of 1024 columns, more than the 0.0001 that its dtype and its size allow";
    verdict.rendered = {
        "candidate.py:31:13: error: `T.copy(x[by * 128, 0], tile)` reads 128 rows of a tensor that has 100, and "
        "nothing "
        "checks it [outside_tile]\n  31 |             T.copy(x[by * 128, 0], tile)\n     |             ^~~~~~"};
    return verdict;
  }
  const double speedup = 0.3 + 0.07 * (id % 50);
  verdict.eager = eval::Timing{120, 115, 131, 30};
  verdict.candidate = eval::Timing{120 / speedup, 115 / speedup, 131 / speedup, 30};
  verdict.compiled = {{"default", {100, 98, 104, 30}, speedup * 100 / 120, 0, 0, 20},
                      {"max-autotune", {90, 88, 94, 30}, speedup * 90 / 120, 0, 0, 90}};
  verdict.speedup_low = 0.97 * speedup;
  verdict.speedup_high = 1.04 * speedup;
  verdict.generated_share = 0.93;
  verdict.kernels = {"fused_matmul_gelu", "row_sum"};
  verdict.notes = {"the clocks fell from 1980 to 1755 MHz while it was timed, on both sides alike"};
  verdict.degenerate = id % 41 == 0;
  return verdict;
}

json record_of(int id, Ending ending) {
  json record = {{"ending", "nothing left to try"},
                 {"preflight",
                  {{"roofline_us", 20.0},
                   {"eager_modelled_us", 20.0 * (1 + id % 30)},
                   {"bound", "memory"},
                   {"eager_launches", 7},
                   {"least_bytes", 1 << 20},
                   {"shortcuts", json::array()},
                   {"degenerate", json::array()}}},
                 {"attempts", json::array()}};
  if (id % 17 == 0)
    record["preflight"]["shortcuts"].push_back(
        {{"sentence", "a sum over the rows of a product is a product with a sum"}});
  if (ending == Ending::not_loaded || ending == Ending::does_not_fit) return record;
  record["neighbour"] = {{"name", "seed_of_a_matrix_product_with_an_epilogue"},
                         {"origin", "seed"},
                         {"target", "cpu"},
                         {"fingerprint", "f"},
                         {"distance", id % 9 == 0 ? 0.0 : 0.02 * (id % 40)},
                         {"same_graph", id % 9 == 0}};
  if (ending == Ending::abstained || ending == Ending::not_judged) return record;
  const bool good = ending == Ending::verified || ending == Ending::given_inputs_only;
  record["attempts"].push_back(
      {{"summary", "a tile of 128 x 128, three stages"}, {"verdict", eval::to_json(verdict_of(id, false))}});
  record["attempts"].push_back(
      {{"summary", "the same, with guards for the last rows"}, {"verdict", eval::to_json(verdict_of(id, good))}});
  if (!good) return record;
  record["best_attempt"] = 1;
  record["finalists"] = {1};
  record["verdict"] = eval::to_json(verdict_of(id, true));
  record["speedup"] = verdict_of(id, true).speedup();
  return record;
}

std::string reason_of(Ending ending) {
  switch (ending) {
    case Ending::verified:
      return "";
    case Ending::given_inputs_only:
      return "verified for the given inputs only";
    case Ending::failed:
      return "none of 2 attempts: wrong_values: output 0 differs by 0.3 in 24 of 1024 columns";
    case Ending::abstained:
      return "the author sees nothing that a kernel could compute faster than PyTorch";
    case Ending::not_loaded:
      return "the model's `__init__` raised ModuleNotFoundError: No module named "
             "'a_package_with_a_name_that_goes_on_and_on_without_a_place_where_a_line_could_be_broken_at_all'";
    case Ending::does_not_fit:
      return "the inputs and eager's intermediates need 190 GiB, and the machine has 80";
    case Ending::not_judged:
      return "the worker failed: CUDA error: an illegal memory access was encountered";
  }
  return "";
}

std::string program(int id, int lines, bool guarded) {
  std::string text =
      fmt::format("\"\"\"Problem {}: a fused product.\"\"\"\nimport tilelang\nimport tilelang.language as T\n\n", id);
  for (int line = 0; line < lines; ++line)
    text += fmt::format("    # step {0}: tile & <fragment>\n    T.copy(x[by * 128, {0} * 32], tile){1}\n", line,
                        guarded && line % 5 == 0 ? "  # the last rows are guarded" : "");
  return text + "class ModelNew:\n    def forward(self, x):\n        return kernel(x)\n";
}

}  // namespace

Batch synthetic_batch(int problems) {
  Batch batch{3,
              {"/data/KernelBench/KernelBench", "d1f2", R"({"author":"builtin","dtype":"fp32","target":"cuda:sm_90a"})",
               R"({"host":"a-node-of-a-cluster","commit":"0123456789abcdef","processors":64})"},
              "2026-01-01T22:00:00Z",
              "",
              {}};
  for (int place = 0; place < problems; ++place) {
    const int level = 1 + place * 3 / problems, id = place + 1;
    BatchProblem each;
    each.problem = {level, id, fmt::format("{}_Matmul_with_a_large_K_dimension_and_a_GELU_epilogue", id), "", "text"};
    each.state = place % 23 == 22 ? State::waiting : State::done;
    const Ending ending = kEndings[static_cast<size_t>(place) % std::size(kEndings)];
    if (each.state == State::done) {
      each.outcome.ending = ending;
      each.outcome.reason = reason_of(ending);
      each.outcome.run = id;
      each.outcome.seconds = 20 + id % 70;
      each.outcome.dollars = 0.01 * (id % 5);
      each.outcome.record = record_of(id, ending);
    }
    batch.problems.push_back(std::move(each));
  }
  return batch;
}

std::vector<ProblemPage> synthetic_pages(const Batch& batch) {
  std::vector<ProblemPage> pages;
  for (const BatchProblem& each : batch.problems) {
    ProblemPage page;
    const json& record = each.outcome.record;
    if (record.is_object() && !record["attempts"].empty())
      page.sources = {program(each.problem.id, 60, false), program(each.problem.id, 60, true)};
    pages.push_back(std::move(page));
  }
  return pages;
}

}  // namespace tilepilot::kernelbench
