#include "compiler/targets/cpu/names.h"

#include <cctype>

#include "compiler/targets/cpu/codegen.h"

namespace tilepilot::targets::cpu {
namespace {

constexpr const char* kKeywords[] = {
    "alignas",    "alignof", "and",      "asm",      "auto",     "bool",     "break",   "case",     "catch",
    "char",       "class",   "const",    "continue", "default",  "delete",   "do",      "double",   "else",
    "enum",       "extern",  "false",    "float",    "for",      "friend",   "goto",    "if",       "inline",
    "int",        "long",    "mutable",  "new",      "not",      "operator", "or",      "private",  "public",
    "register",   "return",  "short",    "signed",   "sizeof",   "static",   "struct",  "switch",   "template",
    "this",       "throw",   "true",     "try",      "typedef",  "typename", "union",   "unsigned", "using",
    "virtual",    "void",    "volatile", "while",    "xor",      "int8_t",   "int16_t", "int32_t",  "int64_t",
    "namespace",  "uint8_t", "uint16_t", "uint32_t", "uint64_t", "linux",    "unix",    "scratch",  "first_block",
    "last_block", "scalars", "buffers",  "main"};

std::string identifier(const std::string& wish) {
  std::string name;
  for (const char c : wish) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
  while (name.starts_with("__")) name.erase(0, 1);
  return name;
}

// Every word of the prelude: none of its names may be hidden.
void take_words(const std::string& text, std::unordered_set<std::string>& taken) {
  std::string word;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    if (word.size() > 1) taken.insert(word);
    word.clear();
  }
}

}  // namespace

Names::Names() {
  for (const char* word : kKeywords) taken_.insert(word);
  take_words(prelude(), taken_);
}

std::string Names::fresh(const std::string& wish) {
  const std::string base = identifier(wish);
  std::string name = base;
  for (int n = 2; !taken_.insert(name).second; ++n) name = base + "_" + std::to_string(n);
  return name;
}

const std::string& Names::of(const void* thing, const std::string& wish) {
  const auto found = given_.find(thing);
  if (found != given_.end()) return found->second;
  return given_.emplace(thing, fresh(wish)).first->second;
}

}  // namespace tilepilot::targets::cpu
