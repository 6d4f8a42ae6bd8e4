// A regular expression as a tree, between its text and the program that matches it.
#pragma once

#include <memory>
#include <optional>

#include "compiler/stage/python/text/regex.h"

namespace tilepilot::stage::regex {

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  enum class Kind : uint8_t {
    empty,
    single,
    assertion,
    backreference,
    sequence,
    alternatives,
    repeat,
    group,
    look,
    atomic
  };
  Kind kind = Kind::empty;
  Single single;                  // of a single
  Op assertion = Op::text_begin;  // of an assertion
  uint32_t index = 0;             // group, backreference; 0: a group that is not counted
  std::vector<NodePtr> children;
  uint32_t min = 0, max = 0;  // repeat
  bool greedy = true;
  bool negated = false, behind = false;  // look
  bool ignores_case = false, ascii = false;
};

struct Tree {
  NodePtr root;
  uint32_t groups = 0;
  unsigned flags = 0;
  std::vector<std::pair<std::string, uint32_t>> names;
};
std::variant<Tree, Problem> parse(const Text& pattern, unsigned flags);
std::variant<Program, Problem> generate(const Tree& tree);

}  // namespace tilepilot::stage::regex
