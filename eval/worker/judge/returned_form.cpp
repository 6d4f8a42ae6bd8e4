#include "eval/worker/judge/returned_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "eval/graph/graph_uses.h"
#include "eval/process/candidate_answer.h"

namespace tilepilot::eval {

int64_t most_returned_bytes(const Graph& forward) {
  constexpr int64_t kWider = 2, kBeside = int64_t{512} << 20;
  int64_t bytes = 0;
  const auto add = [&](const GraphValue& value) {
    if (value.is_tensor) bytes += bytes_of(value);
  };
  for (const GraphValue& value : forward.values)
    if (value.kind != GraphValue::Kind::node) add(value);
  for_each_value(forward.outputs, [&](int id) { add(forward.values[static_cast<size_t>(id)]); });
  return kWider * bytes + kBeside;
}

Verdict not_received(const Diagnostic& error, const nlohmann::json& description, const ExpectedForms& expected) {
  if (error.kind != DiagnosticKind::out_of_memory) return protocol_failure(error.message);
  Verdict verdict;
  verdict.outcome = Outcome::out_of_memory;
  verdict.detail = error.message;
  const std::vector<size_t>& places = expected.match.tensors;
  for (size_t i = 0; i < std::min(places.size(), expected.outputs.size()); ++i) {
    if (places[i] >= description.size()) continue;
    const auto shape = description[places[i]].at("shape").get<std::vector<int64_t>>();
    if (shape == expected.outputs[i]) continue;
    verdict.outcome = Outcome::wrong_shape;
    verdict.detail = fmt::format("{} has shape [{}] instead of [{}]: {}",
                                 places.size() > 1 ? fmt::format("output {}", i) : std::string("the output"),
                                 fmt::join(shape, ", "), fmt::join(expected.outputs[i], ", "), error.message);
    break;
  }
  return verdict;
}

}  // namespace tilepilot::eval
