// Random damage to real programs: the front end must answer, never crash; what it accepts must print and read back.
#include <gtest/gtest.h>

#include <random>

#include "tests/golden.h"
#include "tests/rounds.h"
#include "tests/syntax/parsed.h"

namespace tilepilot::syntax {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const std::string& name : testing::stems_in("syntax/cases", ".py")) {
    texts.push_back(testing::read_text(testing::tests_path("syntax/cases/" + name + ".py")));
  }
  return texts;
}

const std::vector<std::string_view> kFragments{
    "(",       ")",     "[",   "]",   "{",     "}",    ":",   "\n",   "\n    ", "\t",     "\\\n",    "'",
    "\"",      "'''",   "f'{", "}'",  "{x!r:", "**",   "//=", ":=",   "->",     "0x",     "1e",      "_",
    "\x00",    "\xff",  "#",   "if ", "else",  "for ", "in",  "not ", "def",    "class ", "lambda ", "yield ",
    "return ", "with ", "as ", "@",   "*",     ",",    "...", "é",    "\\N"};

std::string mutate(std::string text, const std::string& other, std::mt19937& random) {
  auto below = [&](size_t bound) { return std::uniform_int_distribution<size_t>(0, bound)(random); };
  for (size_t edits = 1 + below(7); edits > 0; --edits) {
    size_t at = below(text.size());
    switch (below(4)) {
      case 0:
        text.insert(at, kFragments[below(kFragments.size() - 1)]);
        break;
      case 1:
        text.erase(at, 1 + below(20));
        break;
      case 2:
        text.insert(at, other.substr(below(other.size()), below(60)));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(60)));
        break;
      default:
        text[at == text.size() ? 0 : at] = static_cast<char>(below(255));
        break;
    }
    if (text.empty()) text = " ";
  }
  return text;
}

void check(const std::string& text) {
  Parsed parsed(text);
  EXPECT_EQ(parsed.module == nullptr, parsed.error_count() > 0);
  if (!parsed.module) {
    EXPECT_FALSE(render(parsed.sources, parsed.diagnostics).empty());
    return;
  }
  std::string source = to_source(*parsed.module);
  Parsed again(source);
  ASSERT_NE(again.module, nullptr) << text << "\n---\n" << source << again.first_error();
  ASSERT_EQ(dump_tree(*again.module), dump_tree(*parsed.module)) << text << "\n---\n" << source;
}

TEST(Mutations, NeverCrashTheFrontEnd) {
  const auto texts = seeds();
  std::mt19937 random(20240607);
  for (int run = 0; run < rounds(100'000) && !::testing::Test::HasFailure(); ++run) {
    auto pick = [&]() -> const std::string& { return texts[random() % texts.size()]; };
    check(mutate(pick(), pick(), random));
  }
}

// Within a field nothing can be escaped: the tab stays as it is.
TEST(Mutations, ThatOnceWereNotReadBack) { check("f'''{x[\"a\"]}\n{f\"{y['b']}\t\"}'''\n"); }

}  // namespace
}  // namespace tilepilot::syntax
