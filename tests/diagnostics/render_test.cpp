// How diagnostics look, for people and as JSON.
#include "compiler/diagnostics/render.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tilepilot {
namespace {

struct Rendering {
  explicit Rendering(std::string text) { file = sources.add("a.py", std::move(text)); }
  Span span_of(std::string_view piece) const {
    auto at = static_cast<uint32_t>(sources.text(file).find(piece));
    return {file, at, at + static_cast<uint32_t>(piece.size())};
  }
  std::string error(Span span) const {
    return render(sources, Diagnostic{DiagnosticKind::type_error, span, "it is wrong"});
  }
  SourceMap sources;
  int32_t file;
};

TEST(Render, PointsAtTheSpan) {
  Rendering r("x = 1\ny = f(x) + 2\n");
  EXPECT_EQ(r.error(r.span_of("f(x)")),
            "a.py:2:5: error: it is wrong [type_error]\n"
            "  2 | y = f(x) + 2\n"
            "    |     ^~~~\n");
}

TEST(Render, ShowsNotesAndHint) {
  Rendering r("x = 1\ny = x + z\n");
  Diagnostic diagnostic{DiagnosticKind::ignored_request, r.span_of("z"), "fact"};
  diagnostic.note(r.span_of("x"), "seen here").note({}, "no place").with_hint("advice");
  EXPECT_EQ(render(r.sources, diagnostic),
            "a.py:2:9: warning: fact [ignored_request]\n"
            "  2 | y = x + z\n"
            "    |         ^\n"
            "a.py:1:1: note: seen here\n"
            "  1 | x = 1\n"
            "    | ^\n"
            "note: no place\n"
            "hint: advice\n");
}

TEST(Render, NeedsNoPosition) {
  Rendering r("");
  EXPECT_EQ(r.error({}), "error: it is wrong [type_error]\n");
  EXPECT_EQ(r.error({r.file, 0, 0}), "a.py:1:1: error: it is wrong [type_error]\n  1 |\n    | ^\n");
  EXPECT_EQ(r.error({r.file, 7, 9}), "a.py:1:1: error: it is wrong [type_error]\n  1 |\n    | ^\n") << "past the end";
}

TEST(Render, ExpandsTabs) {
  Rendering r("\tif\tx:\n");
  EXPECT_EQ(r.error(r.span_of("x")),
            "a.py:1:5: error: it is wrong [type_error]\n"
            "  1 |     if  x:\n"
            "    |         ^\n");
}

TEST(Render, CountsCharactersNotBytes) {
  Rendering r("é = '变量' + z\n");
  EXPECT_EQ(r.error(r.span_of("z")),
            "a.py:1:12: error: it is wrong [type_error]\n"
            "  1 | é = '变量' + z\n"
            "    |              ^\n")
      << "the two wide characters take two columns each";
}

TEST(Render, ShowsFirstAndLastLineOfALongSpan) {
  Rendering r("a = f(\n    b,\n    c,\n    d)\n");
  EXPECT_EQ(r.error(r.span_of("f(\n    b,\n    c,\n    d)")),
            "a.py:1:5: error: it is wrong [type_error]\n"
            "  1 | a = f(\n"
            "    |     ^~\n"
            "...\n"
            "  4 |     d)\n"
            "    |     ^~\n");
  EXPECT_EQ(r.error(r.span_of("b,\n    c")),
            "a.py:2:5: error: it is wrong [type_error]\n"
            "  2 |     b,\n"
            "    |     ^~\n"
            "  3 |     c,\n"
            "    |     ^\n");
}

TEST(Render, CropsLongLines) {
  Rendering r(std::string(500, 'a') + " + z + " + std::string(500, 'b') + "\n");
  EXPECT_EQ(r.error(r.span_of("z")),
            "a.py:1:504: error: it is wrong [type_error]\n"
            "  1 | ..." +
                std::string(57, 'a') + " + z + " + std::string(56, 'b') + "...\n    |    " + std::string(60, ' ') +
                "^\n");
}

TEST(Render, Colors) {
  Rendering r("z\n");
  Diagnostic diagnostic{DiagnosticKind::type_error, r.span_of("z"), "bad"};
  std::string text = render(r.sources, diagnostic, {true});
  EXPECT_NE(text.find("\x1b[1;31merror\x1b[0m"), std::string::npos);
  EXPECT_NE(text.find("\x1b[1;31m^\x1b[0m"), std::string::npos);
  EXPECT_EQ(render(r.sources, diagnostic).find('\x1b'), std::string::npos);
}

TEST(RenderJson, HasAllMembers) {
  Rendering r("x = 1\ny = (x +\n z)\n");
  Diagnostic diagnostic{DiagnosticKind::type_error, r.span_of("(x +\n z)"), "bad \xff"};
  diagnostic.note(r.span_of("x"), "here").with_hint("advice");
  DiagnosticList list;
  list.add(diagnostic);
  list.add({DiagnosticKind::cache_degraded, {}, "slow"});
  auto json = nlohmann::json::parse(render_json(r.sources, list));
  auto expected = nlohmann::json::parse(R"([
    {"kind": "type_error", "severity": "error", "message": "bad \ufffd", "file": "a.py", "line": 2, "column": 5,
     "end_line": 3, "end_column": 4, "hint": "advice",
     "notes": [{"message": "here", "file": "a.py", "line": 1, "column": 1, "end_line": 1, "end_column": 2}]},
    {"kind": "cache_degraded", "severity": "warning", "message": "slow", "notes": [], "hint": ""}])");
  EXPECT_EQ(json, expected);
}

TEST(NearestName, SuggestsOnlyWhatIsNear) {
  std::vector<std::string_view> names{"alloc_shared", "alloc_fragment", "copy", "clear", "Parallel", "gemm"};
  EXPECT_EQ(nearest_name("alloc_share", names), "alloc_shared");
  EXPECT_EQ(nearest_name("alloc_fragmnet", names), "alloc_fragment");
  EXPECT_EQ(nearest_name("parallel", names), "Parallel");
  EXPECT_EQ(nearest_name("cpoy", names), "copy");
  EXPECT_EQ(nearest_name("reduce_sum", names), "");
  EXPECT_EQ(nearest_name("x", {"y", "z"}), "");
  EXPECT_EQ(nearest_name("T", {"t"}), "t");
  EXPECT_EQ(nearest_name("gemm", names), "") << "the name itself is no suggestion";
  EXPECT_EQ(nearest_name("", names), "");
}

TEST(Registry, IsInOrder) {
  for (const DiagnosticKindInfo& row : diagnostic_kinds()) EXPECT_EQ(info(row.kind).name, row.name);
  EXPECT_EQ(info(DiagnosticKind::cache_degraded).severity, Severity::warning);
}

TEST(SourceMap, FindsLinesAndColumns) {
  SourceMap sources;
  int32_t file = sources.add("b.py", "one\r\ntwo\n\nfour");
  EXPECT_EQ(sources.position(file, 0).line, 1);
  EXPECT_EQ(sources.position(file, 6).line, 2);
  EXPECT_EQ(sources.position(file, 6).column, 2);
  EXPECT_EQ(sources.position(file, 100).line, 4);
  EXPECT_EQ(sources.line_text(file, 1), "one");
  EXPECT_EQ(sources.line_text(file, 9), "");
  EXPECT_EQ(sources.line_text(file, 12), "four");
  EXPECT_EQ(sources.text(Span{file, 5, 8}), "two");
  EXPECT_EQ(sources.text(Span{}), "");
  EXPECT_EQ(cover({file, 1, 2}, {file, 5, 6}), (Span{file, 1, 6}));
  EXPECT_EQ(cover({}, {file, 5, 6}), (Span{file, 5, 6}));
}

}  // namespace
}  // namespace tilepilot
