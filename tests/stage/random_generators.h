// Random programs about generators, for comparison with the real Python.
#pragma once

#include <random>
#include <string>

namespace tilepilot::stage {

class RandomGenerators {
 public:
  explicit RandomGenerators(uint32_t seed) : random_(seed) {}
  std::string program();

 private:
  size_t below(size_t bound) { return random_() % bound; }
  bool chance(size_t of) { return below(of) == 0; }
  std::string step();
  std::string body(int depth, size_t longest);
  std::string statement(int depth);

  std::mt19937 random_;
  int function_ = 0;  // which function is being written
};

}  // namespace tilepilot::stage
