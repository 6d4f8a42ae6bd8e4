// Lexer and parser: any text gives a tree or errors that can be shown; a tree prints as source that reads back the
// same.
#include "compiler/diagnostics/render.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/print.h"
#include "tests/fuzz/target.h"

namespace tilepilot::fuzz {

const std::vector<std::string> kWords = {
    "(",       ")",     "[",   "]",     "{",    "}",        ":",    ",",      "\n",     "\n    ",  "\t", "\\\n",
    "'",       "\"",    "'''", "f'{",   "}'",   "{x!r:",    "**",   "//=",    ":=",     "->",      "0x", "1e",
    "_",       "#",     "if ", "else:", "for ", "in ",      "not ", "def f(", "class ", "lambda ", "@",  "yield ",
    "return ", "with ", "as ", "*",     "...",  "\xc3\xa9", "\\N{", "rb'",    "async "};

}  // namespace tilepilot::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilepilot;
  SourceMap sources;
  DiagnosticList diagnostics;
  auto tree = syntax::parse(sources, sources.add("input.py", {reinterpret_cast<const char*>(data), size}), diagnostics);
  fuzz::require((tree == nullptr) == diagnostics.has_errors(), "a tree, or errors");
  if (!tree) {
    fuzz::require(!render(sources, diagnostics).empty(), "errors can be shown");
    return 0;
  }
  const std::string printed = syntax::to_source(*tree);
  DiagnosticList again;
  auto twin = syntax::parse(sources, sources.add("printed.py", printed), again);
  fuzz::require(twin != nullptr, "what was printed can be read", printed + render(sources, again));
  fuzz::require(syntax::dump_tree(*twin) == syntax::dump_tree(*tree), "what was printed reads back the same", printed);
  return 0;
}
