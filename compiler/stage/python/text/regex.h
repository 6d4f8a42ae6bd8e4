// Regular expressions as Python's `re` has them, over code points: a parser to a small program and a backtracking
// matcher with a stack of its own, bounded in steps and memory. Left out: conditional groups and locale.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tilepilot::stage::regex {

using Text = std::u32string;

enum Flags : unsigned { kIgnoreCase = 2, kMultiline = 8, kDotAll = 16, kUnicode = 32, kVerbose = 64, kAscii = 256 };

enum class Category : uint8_t { digit, space, word, not_digit, not_space, not_word };

// A character, a class of them, or any: what takes exactly one position.
struct Single {
  std::vector<std::pair<char32_t, char32_t>> ranges;
  std::vector<Category> categories;
  bool negated = false;
  bool ignores_case = false;
  bool ascii = false;
  bool matches(char32_t c) const;
};

enum class Op : uint8_t {
  single,         // index: of `singles`
  repeat_single,  // index, min, max, greedy
  branch,         // first `target`, then `other`
  jump,           // target
  save,           // slot := position
  close,          // the same at the end of group `index`, the last one closed
  mark,           // slot := position, where a round of a loop begins
  loop,           // back to `target` unless the round took nothing
  backreference,  // group `index`
  line_begin,
  line_end,
  text_begin,
  text_end,
  text_end_or_newline,
  word_boundary,
  no_word_boundary,
  look,    // the program up to `target` matches here, or `width` characters back; `negated`
  atomic,  // the program up to `target`, once and for all
  match,
};

struct Instruction {
  Op op = Op::match;
  uint32_t index = 0;  // of a single, a group or a slot
  uint32_t target = 0, other = 0;
  uint32_t min = 0, max = 0, width = 0;
  bool greedy = true, negated = false, ignores_case = false, ascii = false;
};

inline constexpr uint32_t kNoLimit = UINT32_MAX;

struct Program {
  std::vector<Instruction> code;
  std::vector<Single> singles;
  uint32_t groups = 0;  // without the whole match
  uint32_t slots = 0;   // two a group, then those of loops; the last holds the group closed last
  unsigned flags = 0;
  std::vector<std::pair<std::string, uint32_t>> names;
};

struct Problem {
  std::string message;
  size_t position = 0;
  bool unsupported = false;  // valid in Python, but not here
};
std::variant<Program, Problem> compile(const Text& pattern, unsigned flags);

enum class Anchor : uint8_t { search, start, both };
enum class Outcome : uint8_t { no_match, matched, out_of_steps };

// One match: for each group, the whole match first, where it begins and ends; -1 if it took no part.
struct Found {
  std::vector<int64_t> slots;
  int64_t last_group = 0;  // 0: none
};

struct Subject {
  const Text& text;   // ends where `$` may match
  size_t start;       // where the search begins
  bool must_advance;  // a match at `start` has to take something
  Anchor anchor;
};
Outcome find(const Program& program, const Subject& subject, int64_t& steps_left, Found& found);

bool is_word(char32_t c, bool ascii);
bool is_space(char32_t c, bool ascii);
char32_t folded(char32_t c, bool ascii);

}  // namespace tilepilot::stage::regex
