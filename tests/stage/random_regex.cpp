#include "tests/stage/random_regex.h"

#include <fmt/format.h>

namespace tilepilot::stage {

std::string RandomRegex::program() {
  groups_ = 0;
  static const char* const kFlags[] = {"0", "0", "0", "re.I", "re.M", "re.S", "re.I | re.A"};
  const std::string pattern = alternatives(0);
  std::string program = fmt::format("import re\np = r'''{}'''\n", pattern);
  program += fmt::format("try:\n    c = re.compile(p, {})\nexcept re.error:\n    c = None\nprint(c is None)\n",
                         kFlags[below(std::size(kFlags))]);
  for (int i = 0; i < 3; ++i) {
    program += fmt::format("if c:\n    t = '{}'\n", text());
    program +=
        "    for m in (c.search(t), c.match(t), c.fullmatch(t), c.search(t, 1, 4)):\n"
        "        print(m and (m.span(), m.groups(), m.lastindex))\n"
        "    print(c.findall(t), c.split(t), c.subn('<\\\\g<0>>', t))\n";
  }
  return program;
}

std::string RandomRegex::alternatives(int depth) {
  std::string result = sequence(depth);
  while (below(4) == 0) result += "|" + sequence(depth);
  return result;
}

std::string RandomRegex::sequence(int depth) {
  std::string result;
  for (size_t count = below(4); count > 0; --count) result += item(depth);
  return result;
}

std::string RandomRegex::item(int depth) {
  static const char* const kRepeats[] = {"",   "",   "",    "",      "",     "*",     "+",  "?",
                                         "*?", "+?", "{2}", "{1,2}", "{,2}", "{1,}?", "{0}"};
  return atom(depth) + kRepeats[below(std::size(kRepeats))];
}

std::string RandomRegex::atom(int depth) {
  static const char* const kSimple[] = {"a",   "b",   "B", "c", ".",   "[ab]", "[^a]", "[a-c]", "\\w", "\\d",   "\\s",
                                        "\\b", "\\B", "^", "$", "\\Z", "1",    " ",    "é",     "\\n", "[\\d_]"};
  const size_t kind = below(depth > 3 ? 10 : 18);
  if (kind < 10) return kSimple[below(std::size(kSimple))];
  if (kind == 10 && groups_ > 0) return fmt::format("\\{}", 1 + below(static_cast<size_t>(groups_)));
  if (kind == 11) return "(?=" + alternatives(depth + 1) + ")";
  if (kind == 12) return "(?!" + alternatives(depth + 1) + ")";
  if (kind == 13) return below(2) == 0 ? "(?<=a)" : "(?<![bc])";
  if (kind == 14) return "(?:" + alternatives(depth + 1) + ")";
  ++groups_;
  return "(" + alternatives(depth + 1) + ")";
}

std::string RandomRegex::text() {
  static const char* const kPieces[] = {"a", "a", "b", "B", "c", "1", " ", "é", "\\n", "_", "ab", "aa"};
  std::string result;
  for (size_t count = 1 + below(8); count > 0; --count) result += kPieces[below(std::size(kPieces))];
  return result;
}

}  // namespace tilepilot::stage
