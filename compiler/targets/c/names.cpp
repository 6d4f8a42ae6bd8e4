#include "compiler/targets/c/names.h"

#include <algorithm>
#include <cctype>

namespace tilepilot::targets::c {
namespace {

constexpr const char* kKeywords[] = {
    "alignas",    "alignof", "and",      "asm",      "auto",     "bool",     "break",        "case",     "catch",
    "char",       "class",   "const",    "continue", "default",  "delete",   "do",           "double",   "else",
    "enum",       "extern",  "false",    "float",    "for",      "friend",   "goto",         "if",       "inline",
    "int",        "long",    "mutable",  "new",      "not",      "operator", "or",           "private",  "public",
    "register",   "return",  "short",    "signed",   "sizeof",   "static",   "struct",       "switch",   "template",
    "this",       "throw",   "true",     "try",      "typedef",  "typename", "union",        "unsigned", "using",
    "virtual",    "void",    "volatile", "while",    "xor",      "int8_t",   "int16_t",      "int32_t",  "int64_t",
    "namespace",  "uint8_t", "uint16_t", "uint32_t", "uint64_t", "linux",    "unix",         "scratch",  "first_block",
    "last_block", "scalars", "buffers",  "main",     "events",   "block",    "printed_text", "half",     "threadIdx",
    "blockIdx",   "gridDim", "blockDim"};

std::string identifier(const std::string& wish) {
  std::string name;
  for (const char c : wish) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
  while (name.starts_with("__")) name.erase(0, 1);
  return name;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The names that the prelude declares: words of the lines that start at the margin. None of them may be hidden.
void take_declared(std::string_view text, std::unordered_set<std::string>& taken) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line[0] == ' ' || line[0] == '/') continue;
    const bool makes_functions = line.starts_with("TP_LIBRARY");
    for (size_t at = 0; at < line.size();) {
      size_t end = at;
      while (end < line.size() && is_word(line[end])) ++end;
      const std::string word(line.substr(at, end - at));
      if (word.size() > 1) taken.insert(makes_functions ? word + "_of" : word);
      at = end + 1;
    }
  }
}

}  // namespace

Names::Names(const std::string& prelude) {
  for (const char* word : kKeywords) taken_.insert(word);
  take_declared(prelude, taken_);
}

std::string Names::fresh(const std::string& wish) {
  const std::string base = identifier(wish);
  std::string name = base;
  for (int n = 2; !taken_.insert(name).second; ++n) name = base + "_" + std::to_string(n);
  return name;
}

const std::string& Names::of(const std::shared_ptr<const void>& thing, const std::string& wish) {
  const auto found = given_.find(thing.get());
  if (found != given_.end()) return found->second.name;
  return given_.emplace(thing.get(), Given{fresh(wish), thing}).first->second.name;
}

}  // namespace tilepilot::targets::c
