// Corpus entries for measuring and testing: random op graphs whose operators follow one another as often as in
// KernelBench, in its sizes, so that a few graphs are common and most are rare, as in a corpus that has grown.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

class SyntheticPrograms {
 public:
  explicit SyntheticPrograms(uint32_t seed);
  Structure structure();
  // The `number` makes its program unlike all others.
  Entry entry(int64_t number);

 private:
  struct Follower {
    std::string op;
    int count;
  };
  struct Followers {
    std::string op;
    std::vector<Follower> list;
    int total = 0;
  };
  const std::string& draw(const Followers& followers);
  const Followers* followers_of(const std::string& op) const;
  double uniform() { return std::uniform_real_distribution<>()(random_); }

  std::mt19937 random_;
  std::vector<Followers> table_;  // by op; "-" begins a graph
};

}  // namespace tilepilot::retrieval
