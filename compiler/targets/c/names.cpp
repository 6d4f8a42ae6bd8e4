#include "compiler/targets/c/names.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace tilepilot::targets::c {
namespace {

// Sorted. Words of C23 and C++23, and macros of their standard libraries.
constexpr std::string_view kReserved[] = {"BUFSIZ",
                                          "EOF",
                                          "EXIT_FAILURE",
                                          "EXIT_SUCCESS",
                                          "HUGE_VAL",
                                          "HUGE_VALF",
                                          "I",
                                          "INFINITY",
                                          "MB_CUR_MAX",
                                          "M_1_PI",
                                          "M_2_PI",
                                          "M_2_SQRTPI",
                                          "M_E",
                                          "M_LN10",
                                          "M_LN2",
                                          "M_LOG10E",
                                          "M_LOG2E",
                                          "M_PI",
                                          "M_PI_2",
                                          "M_PI_4",
                                          "M_SQRT1_2",
                                          "M_SQRT2",
                                          "NAN",
                                          "NULL",
                                          "RAND_MAX",
                                          "alignas",
                                          "alignof",
                                          "and",
                                          "and_eq",
                                          "asm",
                                          "assert",
                                          "auto",
                                          "bitand",
                                          "bitor",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "char16_t",
                                          "char32_t",
                                          "char8_t",
                                          "class",
                                          "co_await",
                                          "co_return",
                                          "co_yield",
                                          "compl",
                                          "complex",
                                          "concept",
                                          "const",
                                          "const_cast",
                                          "consteval",
                                          "constexpr",
                                          "constinit",
                                          "continue",
                                          "decltype",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "dynamic_cast",
                                          "else",
                                          "enum",
                                          "errno",
                                          "explicit",
                                          "export",
                                          "extern",
                                          "false",
                                          "float",
                                          "for",
                                          "friend",
                                          "goto",
                                          "if",
                                          "imaginary",
                                          "inline",
                                          "int",
                                          "linux",
                                          "long",
                                          "main",
                                          "math_errhandling",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "noexcept",
                                          "noreturn",
                                          "not",
                                          "not_eq",
                                          "nullptr",
                                          "offsetof",
                                          "operator",
                                          "or",
                                          "or_eq",
                                          "private",
                                          "protected",
                                          "public",
                                          "register",
                                          "reinterpret_cast",
                                          "requires",
                                          "restrict",
                                          "return",
                                          "setjmp",
                                          "short",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "static_assert",
                                          "static_cast",
                                          "stderr",
                                          "stdin",
                                          "stdout",
                                          "struct",
                                          "switch",
                                          "template",
                                          "this",
                                          "thread_local",
                                          "throw",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typeid",
                                          "typename",
                                          "typeof",
                                          "union",
                                          "unix",
                                          "unsigned",
                                          "using",
                                          "va_arg",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "wchar_t",
                                          "while",
                                          "xor",
                                          "xor_eq"};

// Of the code around kernels.
constexpr std::string_view kOurs[] = {"block",      "blockDim",     "blockIdx", "buffers", "events",    "first_block",
                                      "gridDim",    "half",         "int16_t",  "int32_t", "int64_t",   "int8_t",
                                      "last_block", "printed_text", "scalars",  "scratch", "threadIdx", "uint16_t",
                                      "uint32_t",   "uint64_t",     "uint8_t"};

std::string identifier(const std::string& wish) {
  std::string name;
  for (const char c : wish) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
  while (name.starts_with("__")) name.erase(0, 1);
  if (name.size() > 1 && name[0] == '_' && std::isupper(static_cast<unsigned char>(name[1]))) name = "v" + name;
  return is_reserved(name) ? name + "_" : name;
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

bool is_reserved(std::string_view name) {
  // INT64_MAX, UINT32_C, FLT_EPSILON, ...
  constexpr std::string_view kLimits[] = {"INT",   "UINT",  "SIZE", "PTRDIFF", "WCHAR",  "WINT",   "CHAR",
                                          "SCHAR", "UCHAR", "SHRT", "USHRT",   "LONG",   "ULONG",  "FLT",
                                          "DBL",   "LDBL",  "BOOL", "LLONG",   "ULLONG", "INTPTR", "INTMAX"};
  const auto is_upper = [](char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
  const std::string_view first = name.substr(0, name.find('_'));
  const bool is_limit = first.size() < name.size() && std::all_of(name.begin(), name.end(), is_upper) &&
                        std::any_of(std::begin(kLimits), std::end(kLimits),
                                    [&](std::string_view limit) { return first.starts_with(limit); });
  return is_limit || std::binary_search(std::begin(kReserved), std::end(kReserved), name);
}

Names::Names(const std::string& prelude) {
  for (const std::string_view word : kOurs) taken_.emplace(word);
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
