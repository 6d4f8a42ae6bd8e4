#include "agent/builtin/writer/equal_kernels.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace tilepilot::agent::builtin {

namespace {

bool is_word(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

// A word (a name, a number) or one other letter.
std::string_view next_token(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(0, std::max<size_t>(end, 1));
}

// What stands at the beginning of a line before `: T.` or ` = `.
std::set<std::string_view> defined_in(std::string_view body) {
  std::set<std::string_view> names;
  for (size_t at = 0; at < body.size();) {
    const size_t end = std::min(body.find('\n', at), body.size());
    const size_t begin = std::min(body.find_first_not_of(' ', at), end);
    const std::string_view name = next_token(body.substr(begin, end - begin + 1));
    const std::string_view rest = body.substr(begin, end - begin).substr(std::min(name.size(), end - begin));
    if (rest.starts_with(": T.") || rest.starts_with(" = ")) names.insert(name);
    at = end + 1;
  }
  return names;
}

}  // namespace

bool equal_but_for_names(std::string_view one, std::string_view other) {
  const auto own = defined_in(one), others = defined_in(other);
  std::map<std::string_view, std::string_view> to, from;
  while (!one.empty() && !other.empty()) {
    const std::string_view a = next_token(one), b = next_token(other);
    one.remove_prefix(a.size());
    other.remove_prefix(b.size());
    if (own.count(a) != others.count(b)) return false;
    if (own.count(a) == 0 ? a != b
                          : to.try_emplace(a, b).first->second != b || from.try_emplace(b, a).first->second != a)
      return false;
  }
  return one.empty() && other.empty();
}

}  // namespace tilepilot::agent::builtin
