// Random Python text for the property tests: expressions that mostly make sense, and small programs.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::stage {

class RandomPython {
 public:
  explicit RandomPython(uint32_t seed) : engine_(seed) {}

  // Arithmetic and comparison over numbers, sometimes strings where they do not belong.
  std::string expression();
  // f-strings, format(), str.format and % with random specifications.
  std::string formatting();
  // Slices, methods and operators of strings, lists, tuples, dicts and sets.
  std::string sequence_expression();
  // Statements that print as they go.
  std::string program();

 private:
  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine_); }
  bool chance(int percent) { return below(100) < static_cast<size_t>(percent); }
  template <size_t count>
  std::string pick(const std::string_view (&choices)[count]) {
    return std::string(choices[below(count)]);
  }

  std::string number(int depth);
  std::string integer();
  std::string real();
  std::string truth(int depth);
  std::string text(int depth);
  std::string list(int depth);
  std::string slice();
  std::string float_spec();
  std::string integer_spec();
  std::string statement(int depth, int indent);
  std::string block(int depth, int indent);
  std::string variable();

  std::mt19937 engine_;
  bool use_variables_ = false;
};

}  // namespace tilepilot::stage
