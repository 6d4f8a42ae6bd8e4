#include "retrieval/neighbour.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "retrieval/index/embedding.h"

namespace tilepilot::retrieval {
namespace {

using nlohmann::json;

// Scores are sums of single-precision products: closer to each other than this they are equal.
constexpr double kEqual = 1e-5;
constexpr int kMostEqual = 16;  // entries at one distance that are looked at

// Entries of the corpus may spell operators in place, or with their overloads' namespace.
Structure plain(Structure structure) {
  for (std::string& op : structure.ops) op = plain_operator(op);
  for (auto& [from, to] : structure.edges) {
    from = plain_operator(from);
    to = plain_operator(to);
  }
  std::sort(structure.edges.begin(), structure.edges.end());
  return structure;
}

bool same_graph(const Structure& model, const Structure& entry) {
  const Structure one = plain(model), other = plain(entry);
  return !one.ops.empty() && one.ops == other.ops && one.edges == other.edges && one.dtype == other.dtype;
}

}  // namespace

Result<std::optional<Neighbour>> nearest_neighbour(Corpus& corpus, const Structure& structure) {
  const auto hits = TRY(corpus.search(structure, "", kMostEqual));
  std::optional<Neighbour> nearest;
  int64_t nearest_id = 0;
  for (const Hit& hit : hits) {
    const double distance = hit.score > 1 - kEqual ? 0 : 1 - hit.score;
    if (nearest && distance > nearest->distance + kEqual) break;  // hits come with the best score first
    const Neighbour found{hit.entry.name,        hit.entry.origin, hit.entry.target,
                          hit.entry.fingerprint, distance,         same_graph(structure, hit.entry.structure)};
    const bool better = !nearest || (found.same_graph && !nearest->same_graph) ||
                        (found.same_graph == nearest->same_graph && hit.entry.id < nearest_id);
    if (!better) continue;
    nearest = found;
    nearest_id = hit.entry.id;
  }
  return nearest;
}

json to_json(const Neighbour& neighbour) {
  return {{"name", neighbour.name},         {"origin", neighbour.origin},
          {"target", neighbour.target},     {"fingerprint", neighbour.fingerprint},
          {"distance", neighbour.distance}, {"same_graph", neighbour.same_graph}};
}

std::optional<Neighbour> neighbour_from_json(const json& object) {
  try {
    return Neighbour{object.at("name"),        object.at("origin"),   object.at("target"),
                     object.at("fingerprint"), object.at("distance"), object.at("same_graph")};
  } catch (const json::exception&) { return std::nullopt; }
}

}  // namespace tilepilot::retrieval
