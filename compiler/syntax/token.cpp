#include "compiler/syntax/token.h"

#include <array>

namespace tilepilot::syntax {
namespace {

constexpr std::array kSpellings{
    std::string_view("end of file"), std::string_view("newline"), std::string_view("indent"),
    std::string_view("dedent"),      std::string_view("error"),   std::string_view("name"),
    std::string_view("integer"),     std::string_view("float"),   std::string_view("string"),
#define TP_KEYWORD(kind, spelling) std::string_view(spelling),
#define TP_OPERATOR(kind, spelling) std::string_view(spelling),
#include "compiler/syntax/tokens.def"
#undef TP_KEYWORD
#undef TP_OPERATOR
};

}  // namespace

std::string_view spelling(TokenKind kind) { return kSpellings[static_cast<size_t>(kind)]; }

bool is_keyword(TokenKind kind) { return kind >= TokenKind::kw_false && kind <= TokenKind::kw_yield; }

std::string_view nearest_keyword(std::string_view word) {
  constexpr size_t kTooShortToJudge = 3;
  if (word.size() <= kTooShortToJudge) return {};
  std::vector<std::string_view> keywords;
  for (auto kind = static_cast<size_t>(TokenKind::kw_false); kind <= static_cast<size_t>(TokenKind::kw_yield); ++kind) {
    keywords.push_back(kSpellings[kind]);
  }
  return nearest_name(word, keywords);
}

}  // namespace tilepilot::syntax
