// Which elements of the inputs a kind of stress may change so that the model still gives numbers: of one tensor that
// holds a probability beside a logit, or of ten of which one goes into a logarithm, the rest.
#pragma once

#include <functional>
#include <vector>

#include "eval/worker/truth/trial.h"

namespace tilepilot::eval {

class StressSearch {
 public:
  // What the model gives in the first trial, and how long one may look, for all kinds together.
  struct Given {
    std::vector<at::Tensor> inputs;
    NumberPlaces places;
  };
  StressSearch(const TrialMaker& maker, const std::vector<InputFacts>& facts, Given given, double seconds)
      : maker_(maker), facts_(facts), given_(std::move(given)), seconds_left_(seconds) {}

  const Given& given() const { return given_; }
  // What of `open`, inputs by number, must stay as given under the recipe so that the model gives numbers, with all
  // inputs that are not in `open` whole; nullopt: all of it, or nothing, or there was no time to find out.
  std::optional<std::vector<KeptPart>> kept_under(TrialRecipe recipe, const std::vector<int>& open);

 private:
  bool fits(TrialRecipe recipe, std::vector<KeptPart> kept);
  std::vector<KeptPart> kept_of(const TrialRecipe& recipe, int input, const std::vector<KeptPart>& others, int& runs);

  const TrialMaker& maker_;
  const std::vector<InputFacts>& facts_;
  Given given_;
  double seconds_left_;
  std::vector<std::vector<KeptPart>> known_;  // what had to stay under other kinds
};

}  // namespace tilepilot::eval
