// How many steps each place of a tile takes part in, where the last step of a loop hangs over the end: as text.
#pragma once

#include <map>
#include <string>

#include "agent/builtin/writer/loop_indices.h"

namespace tilepilot::agent::builtin {

class StepCounts {
 public:
  StepCounts(const TilePlan& tiles, const LoopIndices& indices);

  // Of a serial loop, from here on, instead of an expression.
  void name(int loop, std::string name) { counts_[loop] = std::move(name); }

  bool is_ragged(int loop) const;
  // The loop other than the outermost whose last step leaves places out; -1: none.
  int inner_ragged() const;
  // Whether a place takes part in the loop's last step.
  std::string in_last_step(int loop) const;
  // Steps until now, this one included; `without_last`: of places that the last step of the inner loop leaves out.
  std::string taken(bool without_last) const;
  std::string in_all() const;

 private:
  const TilePlan& tiles_;
  const LoopIndices& indices_;
  std::map<int, std::string> counts_;
};

}  // namespace tilepilot::agent::builtin
