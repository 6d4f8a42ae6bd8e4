// A run of `generate` with a language model, kept to be played again without network: the replies, and which program
// each change was made to, so that the same programs come of them whatever the times are this time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/store/run_store.h"

namespace tilepilot::agent {

struct Recording {
  std::string model, model_source;  // the model's file and its text
  std::string language_model;       // its name
  std::string form = "openai";      // that the endpoint spoke
  int parallel = 1;                 // answers that were asked for at once
  std::vector<Exchange> exchanges;
  std::vector<Candidate> candidates;
  std::vector<eval::Outcome> outcomes;  // of the candidates; shorter if the run was killed

  // The program that the reply of an exchange changes; nullopt: none, or not known.
  std::optional<std::string> changed_by(int exchange) const;
};

// nullopt: there is no such run.
Result<std::optional<Recording>> load_recording(RunStore& store, int64_t run);

// Without the requests, which are written anew.
nlohmann::json to_json(const Recording& recording);
// Errors: of kind `bad_usage`; `name` says where the text comes from.
Result<Recording> recording_in(const std::string& text, const std::string& name);

}  // namespace tilepilot::agent
