// From the tree of a regular expression to its program.
#include <algorithm>

#include "compiler/stage/python/text/regex_tree.h"

namespace tilepilot::stage::regex {

namespace {

constexpr size_t kMostInstructions = 100'000;
using Kind = Node::Kind;

// How many characters a node takes, if that is always the same number.
std::optional<uint64_t> fixed_width(const Node& node) {
  switch (node.kind) {
    case Kind::single:
      return 1;
    case Kind::empty:
    case Kind::assertion:
    case Kind::look:
      return 0;
    case Kind::backreference:
      return std::nullopt;
    case Kind::repeat: {
      const auto inner = fixed_width(*node.children[0]);
      if (!inner || (node.min != node.max && *inner != 0)) return std::nullopt;
      return *inner * node.min;
    }
    case Kind::alternatives: {
      const auto first = fixed_width(*node.children[0]);
      for (const NodePtr& each : node.children)
        if (fixed_width(*each) != first) return std::nullopt;
      return first;
    }
    default:
      break;
  }
  uint64_t sum = 0;
  for (const NodePtr& each : node.children) {
    const auto width = fixed_width(*each);
    if (!width) return std::nullopt;
    sum += *width;
  }
  return sum;
}

class Generator {
 public:
  std::variant<Program, Problem> program(const Tree& tree) {
    program_.groups = tree.groups;
    program_.flags = tree.flags;
    program_.names = tree.names;
    program_.slots = 2 * (tree.groups + 1);
    add({Op::save, 0});
    node(*tree.root);
    add({Op::save, 1});
    add({Op::match, 1});
    ++program_.slots;
    if (program_.code.size() > kMostInstructions)
      problem_ = Problem{"the pattern is too large when its repetitions are written out", 0, true};
    if (problem_) return *std::move(problem_);
    return std::move(program_);
  }

 private:
  uint32_t next() const { return static_cast<uint32_t>(program_.code.size()); }
  Instruction& add(Instruction instruction) {
    program_.code.push_back(instruction);
    return program_.code.back();
  }

  void node(const Node& each) {
    if (problem_ || program_.code.size() > kMostInstructions) return;
    switch (each.kind) {
      case Kind::empty:
        return;
      case Kind::single:
        add({Op::single, single(each)});
        return;
      case Kind::assertion:
        add({each.assertion}).ascii = each.ascii;
        return;
      case Kind::backreference: {
        Instruction& made = add({Op::backreference, each.index});
        made.ignores_case = each.ignores_case;
        made.ascii = each.ascii;
        return;
      }
      case Kind::sequence:
        for (const NodePtr& child : each.children) node(*child);
        return;
      case Kind::alternatives:
        return alternatives(each);
      case Kind::repeat:
        return repeat(each);
      case Kind::group:
        if (each.index != 0) add({Op::save, 2 * each.index});
        node(*each.children[0]);
        if (each.index != 0) add({Op::close, each.index});
        return;
      case Kind::look:
      case Kind::atomic:
        return apart(each);
    }
  }

  uint32_t single(const Node& each) {
    program_.singles.push_back(each.single);
    return static_cast<uint32_t>(program_.singles.size() - 1);
  }

  void alternatives(const Node& each) {
    std::vector<uint32_t> ends;
    for (size_t i = 0; i < each.children.size(); ++i) {
      const bool is_last = i + 1 == each.children.size();
      const uint32_t fork = next();
      if (!is_last) add({Op::branch});
      node(*each.children[i]);
      if (is_last) break;
      ends.push_back(next());
      add({Op::jump});
      program_.code[fork].target = fork + 1;
      program_.code[fork].other = next();
    }
    for (const uint32_t end : ends) program_.code[end].target = next();
  }

  void repeat(const Node& each) {
    const Node& body = *each.children[0];
    if (body.kind == Kind::single) {
      Instruction& made = add({Op::repeat_single, single(body)});
      made.min = each.min;
      made.max = each.max;
      made.greedy = each.greedy;
      return;
    }
    for (uint32_t i = 0; i < each.min && program_.code.size() <= kMostInstructions; ++i) node(body);
    if (each.max == kNoLimit) return loop(each);
    std::vector<uint32_t> forks;
    for (uint32_t i = each.min; i < each.max && program_.code.size() <= kMostInstructions; ++i) {
      forks.push_back(next());
      add({Op::branch});
      node(body);
    }
    for (const uint32_t fork : forks) set_fork(fork, next(), each.greedy);
  }

  void loop(const Node& each) {
    const uint32_t fork = next(), slot = program_.slots++;
    add({Op::branch});
    add({Op::mark, slot});
    node(*each.children[0]);
    add({Op::loop, slot}).target = fork;
    set_fork(fork, next(), each.greedy);
  }

  void set_fork(uint32_t fork, uint32_t end, bool greedy) {
    Instruction& made = program_.code[fork];
    made.target = greedy ? fork + 1 : end;
    made.other = greedy ? end : fork + 1;
  }

  // A part that is matched on its own.
  void apart(const Node& each) {
    const auto width = each.behind ? fixed_width(*each.children[0]) : 0;
    if (!width) problem_ = Problem{"look-behind requires fixed-width pattern", 0, false};
    const uint32_t at = next();
    add({each.kind == Kind::look ? Op::look : Op::atomic});
    node(*each.children[0]);
    add({Op::match, 0});
    Instruction& made = program_.code[at];
    made.target = next();
    made.negated = each.negated;
    made.width = static_cast<uint32_t>(std::min<uint64_t>(width.value_or(0), kNoLimit));
  }

  Program program_;
  std::optional<Problem> problem_;
};

}  // namespace

std::variant<Program, Problem> generate(const Tree& tree) { return Generator().program(tree); }

std::variant<Program, Problem> compile(const Text& pattern, unsigned flags) {
  auto tree = parse(pattern, flags);
  if (auto* problem = std::get_if<Problem>(&tree)) return std::move(*problem);
  return generate(std::get<Tree>(tree));
}

}  // namespace tilepilot::stage::regex
