// Random regular expressions over a few letters, for comparison with the real Python.
#pragma once

#include <random>
#include <string>

namespace tilepilot::stage {

class RandomRegex {
 public:
  explicit RandomRegex(uint32_t seed) : random_(seed) {}
  // A program that prints what one pattern finds in some texts, or that it is no pattern.
  std::string program();

 private:
  size_t below(size_t bound) { return random_() % bound; }
  std::string alternatives(int depth);
  std::string sequence(int depth);
  std::string item(int depth);
  std::string atom(int depth);
  std::string text();

  std::mt19937 random_;
  int groups_ = 0;
};

}  // namespace tilepilot::stage
