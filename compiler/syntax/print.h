// Text forms of tokens and trees: dumps for people who look at the front end, and Python source from a tree.
#pragma once

#include <string>

#include "compiler/syntax/tree.h"

namespace tilepilot::syntax {

// One token a line: position, kind, text.
std::string dump_tokens(const SourceMap& sources, int32_t file);

struct DumpOptions {
  const SourceMap* sources = nullptr;  // given: each node shows its span as line:column-line:column
};

// One node a line, children indented. Two trees are equal exactly if their dumps without spans are.
std::string dump_tree(const Module& module, const DumpOptions& options = {});
std::string dump_tree(const Expr& expr, const DumpOptions& options = {});

// Canonical Python: four spaces, double quotes, no parentheses beyond those that precedence asks for. Parsing it gives
// the same tree. Comments are not part of the tree and are lost.
std::string to_source(const Module& module);
std::string to_source(const Stmt& stmt);  // ends with a newline
std::string to_source(const Expr& expr);

}  // namespace tilepilot::syntax
