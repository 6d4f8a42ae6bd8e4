// The grammar of regular expressions.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/python/text/regex_tree.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::stage::regex {

namespace {

constexpr int kMostNesting = 100;
constexpr uint32_t kMostRepeats = 1'000'000;

// The first problem ends the parse: everything sees the end of the text from then on.
class Parser {
 public:
  Parser(const Text& pattern, unsigned flags) : pattern_(pattern), flags_(flags), global_flags_(flags) {}

  std::variant<Tree, Problem> tree() {
    Tree tree;
    tree.root = alternatives();
    if (!problem_ && at_ < pattern_.size()) fail("unbalanced parenthesis", at_);
    if (problem_) return *std::move(problem_);
    tree.groups = groups_;
    tree.flags = global_flags_ | (global_flags_ & kAscii ? 0u : kUnicode);
    tree.names = std::move(names_);
    return tree;
  }

 private:
  bool done() const { return problem_ || at_ >= pattern_.size(); }
  char32_t here() const { return done() ? 0 : pattern_[at_]; }
  bool at(char32_t c) const { return !done() && pattern_[at_] == c; }
  bool accept(char32_t c) {
    if (!at(c)) return false;
    ++at_;
    return true;
  }
  bool accept(std::u32string_view text) {
    if (done() || pattern_.compare(at_, text.size(), text) != 0) return false;
    at_ += text.size();
    return true;
  }
  void fail(std::string message, size_t position, bool unsupported = false) {
    if (!problem_) problem_ = Problem{std::move(message), position, unsupported};
  }

  NodePtr make(Node::Kind kind) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->ignores_case = flags_ & kIgnoreCase;
    node->ascii = flags_ & kAscii;
    return node;
  }
  NodePtr make_assertion(Op op) const {
    NodePtr node = make(Node::Kind::assertion);
    node->assertion = op;
    return node;
  }
  NodePtr make_single(Single single) const {
    NodePtr node = make(Node::Kind::single);
    node->single = std::move(single);
    node->single.ignores_case = flags_ & kIgnoreCase;
    node->single.ascii = flags_ & kAscii;
    return node;
  }
  NodePtr make_character(char32_t c) const { return make_single({{{c, c}}, {}}); }

  NodePtr alternatives() {
    if (++nesting_ > kMostNesting) fail("the pattern nests too deeply", at_, true);
    NodePtr first = sequence();
    if (at('|')) {
      NodePtr node = make(Node::Kind::alternatives);
      node->children.push_back(std::move(first));
      while (accept('|')) node->children.push_back(sequence());
      first = std::move(node);
    }
    --nesting_;
    return first;
  }

  NodePtr sequence() {
    NodePtr node = make(Node::Kind::sequence);
    while (!done() && !at('|') && !at(')')) {
      if (flags_ & kVerbose && skip_space()) continue;
      const size_t begin = at_;
      if (NodePtr item = atom()) node->children.push_back(repeated(std::move(item), begin));
    }
    return node;
  }

  bool skip_space() {
    if (is_space(here(), true)) return ++at_, true;
    if (!at('#')) return false;
    while (!done() && !at('\n')) ++at_;
    return true;
  }

  // What stands behind an atom: `*`, `+?`, `{2,3}`, ...
  NodePtr repeated(NodePtr item, size_t begin) {
    while (flags_ & kVerbose && !done() && skip_space()) {}
    const size_t sign = at_;
    uint32_t min = 0, max = kNoLimit;
    if (!quantifier(min, max)) return item;
    if (item->kind == Node::Kind::assertion || item->kind == Node::Kind::empty) fail("nothing to repeat", begin);
    if (min > max) fail("min repeat greater than max repeat", sign);
    NodePtr node = make(Node::Kind::repeat);
    node->min = min;
    node->max = max;
    node->children.push_back(std::move(item));
    const bool possessive = !accept('?') ? accept('+') : (node->greedy = false);
    while (flags_ & kVerbose && !done() && skip_space()) {}
    uint32_t ignored_min = 0, ignored_max = 0;
    const size_t again = at_;
    if (quantifier(ignored_min, ignored_max)) fail("multiple repeat", again);
    if (!possessive) return node;
    NodePtr atomic = make(Node::Kind::atomic);
    atomic->children.push_back(std::move(node));
    return atomic;
  }

  bool quantifier(uint32_t& min, uint32_t& max) {
    if (accept('*')) return true;
    if (accept('+')) return min = 1, true;
    if (accept('?')) return max = 1, true;
    if (!at('{')) return false;
    const size_t begin = at_++;
    const std::optional<uint32_t> low = number();
    const bool comma = accept(',');
    const std::optional<uint32_t> high = comma ? number() : low;
    if ((!low && !comma) || !accept('}')) {
      at_ = begin;
      return false;
    }
    min = low.value_or(0);
    max = high.value_or(kNoLimit);
    return true;
  }

  std::optional<uint32_t> number() {
    std::optional<uint32_t> value;
    while (here() >= '0' && here() <= '9') {
      value = value.value_or(0) * 10 + static_cast<uint32_t>(pattern_[at_++] - '0');
      if (*value > kMostRepeats) fail("the repetition number is too large", at_, true);
    }
    return value;
  }

  // One item; null for what leaves nothing behind, such as a comment.
  NodePtr atom() {
    const size_t begin = at_;
    const char32_t c = pattern_[at_++];
    switch (c) {
      case '(':
        return group(begin);
      case '[':
        return character_class(begin);
      case '\\':
        return escape(begin);
      case '.': {
        Single any;
        if (!(flags_ & kDotAll)) any.ranges = {{'\n', '\n'}};
        any.negated = true;
        return make_single(std::move(any));
      }
      case '^':
        return make_assertion(flags_ & kMultiline ? Op::line_begin : Op::text_begin);
      case '$':
        return make_assertion(flags_ & kMultiline ? Op::line_end : Op::text_end_or_newline);
      case '*':
      case '+':
      case '?':
        fail("nothing to repeat", begin);
        return nullptr;
      default:
        break;
    }
    uint32_t min = 0, max = 0;
    at_ = begin;
    if (c == '{' && quantifier(min, max)) fail("nothing to repeat", begin);
    at_ = begin + 1;
    return make_character(c);
  }

  NodePtr group(size_t begin) {
    if (!accept('?')) return counted_group(begin, "");
    if (accept(U"P<")) {
      const std::string name = group_name('>');
      return problem_ ? nullptr : counted_group(begin, name);
    }
    if (accept(U"P=")) return named_reference(group_name(')'), begin);
    if (accept(':')) return closed(make(Node::Kind::group), begin);
    if (accept('>')) return closed(make(Node::Kind::atomic), begin);
    if (accept('#')) {
      while (!done() && !at(')')) ++at_;
      if (!accept(')')) fail("missing ), unterminated comment", begin);
      return nullptr;
    }
    const bool behind = at('<');
    if (behind) ++at_;
    if (at('=') || at('!')) {
      NodePtr node = make(Node::Kind::look);
      node->behind = behind;
      node->negated = accept('!') || !accept('=');
      return closed(std::move(node), begin);
    }
    if (behind) {
      fail(fmt::format("unknown extension ?<{}", to_utf8(here())), begin + 1);
    } else if (at('(')) {
      fail("conditional groups are not supported", begin, true);
    } else {
      return flag_group(begin);
    }
    return nullptr;
  }

  // The rest of a group up to its parenthesis; flags set inside end there.
  NodePtr closed(NodePtr node, size_t begin) {
    const unsigned outer = flags_;
    node->children.push_back(alternatives());
    flags_ = outer;
    if (!accept(')')) fail("missing ), unterminated subpattern", begin);
    return node;
  }

  NodePtr counted_group(size_t begin, const std::string& name) {
    NodePtr node = make(Node::Kind::group);
    node->index = ++groups_;
    for (const auto& [known, index] : names_)
      if (known == name)
        fail(fmt::format("redefinition of group name '{}' as group {}; was group {}", name, groups_, index), begin);
    if (!name.empty()) names_.emplace_back(name, groups_);
    open_.push_back(groups_);
    node = closed(std::move(node), begin);
    open_.pop_back();
    return node;
  }

  std::string group_name(char32_t closing) {
    const size_t begin = at_;
    std::string name;
    while (!done() && !at(closing)) name += to_utf8(pattern_[at_++]);
    if (!accept(closing)) fail("missing group name", begin);
    const bool good = !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
                      std::all_of(pattern_.begin() + static_cast<std::ptrdiff_t>(begin),
                                  pattern_.begin() + static_cast<std::ptrdiff_t>(at_ - (problem_ ? 0 : 1)),
                                  [](char32_t c) { return is_word(c, false); });
    if (!good) fail(name.empty() ? "missing group name" : fmt::format("bad character in group name '{}'", name), begin);
    return name;
  }

  NodePtr named_reference(const std::string& name, size_t begin) {
    for (const auto& [known, index] : names_)
      if (known == name) return reference(index, begin);
    fail(fmt::format("unknown group name '{}'", name), begin);
    return nullptr;
  }

  NodePtr reference(uint32_t index, size_t begin) {
    if (index > groups_) fail(fmt::format("invalid group reference {}", index), begin);
    if (std::find(open_.begin(), open_.end(), index) != open_.end()) fail("cannot refer to an open group", begin);
    NodePtr node = make(Node::Kind::backreference);
    node->index = index;
    return node;
  }

  static std::optional<unsigned> flag_of(char32_t c) {
    static constexpr std::pair<char32_t, unsigned> kFlags[] = {{'i', kIgnoreCase}, {'m', kMultiline}, {'s', kDotAll},
                                                               {'x', kVerbose},    {'a', kAscii},     {'u', kUnicode}};
    for (const auto& [letter, flag] : kFlags)
      if (letter == c) return flag;
    return std::nullopt;
  }

  // `(?i)` at the front of the pattern, `(?i:...)`, `(?-i:...)`.
  NodePtr flag_group(size_t begin) {
    unsigned on = 0, off = 0;
    bool minus = false;
    for (; !done() && !at(')') && !at(':'); ++at_) {
      const std::optional<unsigned> flag = flag_of(here());
      if (at('-') && !minus) {
        minus = true;
      } else if (flag) {
        (minus ? off : on) |= *flag;
      } else {
        fail(at('L') ? "bad inline flags: cannot use 'L' flag with a str pattern"
                     : fmt::format("unknown extension ?{}", to_utf8(here())),
             begin + 1);
      }
    }
    if (accept(')')) {
      if (begin != 0) fail("global flags not at the start of the expression", begin);
      if (minus) fail("missing :", at_);
      flags_ |= on;
      global_flags_ |= on;
      return nullptr;
    }
    if (!accept(':')) fail("missing -, : or )", at_);
    const unsigned outer = flags_;
    NodePtr node = make(Node::Kind::group);
    flags_ = (flags_ | on) & ~off;
    node->children.push_back(alternatives());
    flags_ = outer;
    if (!accept(')')) fail("missing ), unterminated subpattern", begin);
    return node;
  }

  static std::optional<Category> category_of(char32_t c) {
    static constexpr std::pair<char32_t, Category> kCategories[] = {
        {'d', Category::digit},     {'s', Category::space},     {'w', Category::word},
        {'D', Category::not_digit}, {'S', Category::not_space}, {'W', Category::not_word}};
    for (const auto& [letter, category] : kCategories)
      if (letter == c) return category;
    return std::nullopt;
  }

  NodePtr escape(size_t begin) {
    if (done()) {
      fail("bad escape (end of pattern)", begin);
      return nullptr;
    }
    const char32_t c = here();
    if (auto category = category_of(c)) return ++at_, make_single({{}, {*category}});
    static constexpr std::pair<char32_t, Op> kAssertions[] = {
        {'A', Op::text_begin}, {'Z', Op::text_end}, {'b', Op::word_boundary}, {'B', Op::no_word_boundary}};
    for (const auto& [letter, op] : kAssertions)
      if (letter == c) return ++at_, make_assertion(op);
    if (c >= '1' && c <= '9') {
      if (auto octal = three_octal_digits()) return make_character(*octal);
      uint32_t index = static_cast<uint32_t>(pattern_[at_++] - '0');
      if (here() >= '0' && here() <= '9') index = index * 10 + static_cast<uint32_t>(pattern_[at_++] - '0');
      return reference(index, begin);
    }
    return make_character(escaped_character(begin));
  }

  std::optional<char32_t> three_octal_digits() {
    if (at_ + 3 > pattern_.size()) return std::nullopt;
    char32_t value = 0;
    for (size_t i = 0; i < 3; ++i) {
      if (pattern_[at_ + i] < '0' || pattern_[at_ + i] > '7') return std::nullopt;
      value = value * 8 + (pattern_[at_ + i] - '0');
    }
    if (value > 0377) fail("octal escape value outside of range 0-0o377", at_);
    at_ += 3;
    return value;
  }

  // A character that a backslash names.
  char32_t escaped_character(size_t begin) {
    if (done()) return fail("bad escape (end of pattern)", begin), U' ';
    const char32_t c = pattern_[at_++];
    static constexpr std::pair<char32_t, char32_t> kNamed[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'},
                                                               {'f', '\f'}, {'v', '\v'}, {'a', '\a'}};
    for (const auto& [letter, value] : kNamed)
      if (letter == c) return value;
    if (c == 'x') return hexadecimal(2, begin);
    if (c == 'u') return hexadecimal(4, begin);
    if (c == 'U') return hexadecimal(8, begin);
    if (c == '0') {
      char32_t value = 0;
      for (int i = 0; i < 2 && here() >= '0' && here() <= '7' && !done(); ++i)
        value = value * 8 + (pattern_[at_++] - '0');
      return value;
    }
    const bool letter = c < 0x80 && is_word(c, true) && c != '_';
    if (letter) fail(fmt::format("bad escape \\{}", to_utf8(c)), begin, c == 'N');
    return c;
  }

  char32_t hexadecimal(int digits, size_t begin) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char32_t c = here();
      const bool is_digit = c >= '0' && c <= '9';
      const char32_t lower = c | 32;
      if (!is_digit && !(lower >= 'a' && lower <= 'f')) return fail("incomplete escape", begin), U' ';
      value = value * 16 + (is_digit ? c - '0' : lower - 'a' + 10);
      ++at_;
    }
    if (value > 0x10ffff) fail("bad escape", begin);
    return value;
  }

  NodePtr character_class(size_t begin) {
    Single single;
    single.negated = accept('^');
    for (bool first = true; first || !at(']'); first = false) {
      if (done()) {
        fail("unterminated character set", begin);
        return nullptr;
      }
      add_item(single, begin);
    }
    ++at_;
    return make_single(std::move(single));
  }

  // A category, a character, or a range.
  void add_item(Single& single, size_t begin) {
    const size_t item = at_;
    const std::optional<char32_t> low = class_character(single);
    const bool range = at('-') && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
    if (!range) {
      if (low) single.ranges.emplace_back(*low, *low);
      return;
    }
    ++at_;
    if (done()) return fail("unterminated character set", begin);
    const std::optional<char32_t> high = low ? class_character(single) : std::nullopt;
    if (!low || !high || *high < *low) return fail("bad character range " + text_between(item, at_), item);
    single.ranges.emplace_back(*low, *high);
  }

  // Nullopt: it was a category, which is noted.
  std::optional<char32_t> class_character(Single& single) {
    const size_t begin = at_;
    if (!accept('\\')) return pattern_[at_++];
    if (auto category = done() ? std::nullopt : category_of(here())) {
      ++at_;
      single.categories.push_back(*category);
      return std::nullopt;
    }
    if (accept('b')) return '\b';
    if (here() >= '1' && here() <= '9') {
      if (auto octal = three_octal_digits()) return octal;
      fail(fmt::format("bad escape \\{}", to_utf8(here())), begin);
    }
    return escaped_character(begin);
  }

  std::string text_between(size_t begin, size_t end) const {
    std::string text;
    for (size_t i = begin; i < end; ++i) syntax::append_utf8(text, pattern_[i]);
    return text;
  }

  static std::string to_utf8(char32_t c) {
    std::string text;
    syntax::append_utf8(text, c);
    return text;
  }

  const Text& pattern_;
  size_t at_ = 0;
  unsigned flags_, global_flags_;
  uint32_t groups_ = 0;
  int nesting_ = 0;
  std::vector<uint32_t> open_;
  std::vector<std::pair<std::string, uint32_t>> names_;
  std::optional<Problem> problem_;
};

}  // namespace

std::variant<Tree, Problem> parse(const Text& pattern, unsigned flags) { return Parser(pattern, flags).tree(); }

}  // namespace tilepilot::stage::regex
