// How near the corpus is to a model before anything is written for it: what a reader of results asks who suspects that
// they were known already.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

// An entry of the corpus beside a model. It has no number: those change when databases are merged.
struct Neighbour {
  std::string name, origin, target;  // of the entry
  std::string fingerprint;           // of its program
  double distance = 1;               // 1 less the score of `Corpus::search` by structure alone; from 0 to 1
  bool same_graph = false;  // the same operators, feeding one another alike, in the same dtype; sizes may differ
};

// Distances below it are told as near: nearly the same operators in nearly the same order.
inline constexpr double kNear = 0.1;

// Nullopt: no entry has anything in common with the model, not even the dtype. Of entries at the same distance
// (the first few) one of the same graph is taken, then the oldest.
Result<std::optional<Neighbour>> nearest_neighbour(Corpus& corpus, const Structure& structure);

nlohmann::json to_json(const Neighbour& neighbour);
// Nullopt: what is no such object.
std::optional<Neighbour> neighbour_from_json(const nlohmann::json& object);

}  // namespace tilepilot::retrieval
