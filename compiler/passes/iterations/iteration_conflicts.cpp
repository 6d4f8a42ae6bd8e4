#include "compiler/passes/iterations/iteration_conflicts.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/ir/bounds.h"
#include "compiler/ir/effects.h"
#include "compiler/ir/text/text.h"
#include "compiler/passes/algebra/static_index.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

constexpr int64_t kMostIterations = int64_t{1} << 15;  // that are told apart one by one
constexpr int64_t kMostNodesOfLet = 512;               // of a let's value with those of other lets in it

// Indices are taken as mathematical integers; those that are computed in few bits wrap.
bool is_wide(DType type) { return type.is_int() && type.bits >= 32; }

const Expr& without_wide_casts(const Expr& expr) {
  const auto* cast = as<Cast>(expr);
  return cast && is_wide(expr->type) && is_wide(cast->value->type) ? without_wide_casts(cast->value) : expr;
}

// `a + b - c` as a, b and, negative, c.
void collect_summands(const Expr& expr, bool negative, std::vector<std::pair<Expr, bool>>& out) {
  const Expr& plain = without_wide_casts(expr);
  const auto* sum = is_wide(plain->type) ? as<Binary>(plain) : nullptr;
  if (sum && (sum->op == BinaryOp::add || sum->op == BinaryOp::sub)) {
    collect_summands(sum->left, negative, out);
    return collect_summands(sum->right, negative != (sum->op == BinaryOp::sub), out);
  }
  out.emplace_back(plain, negative);
}

}  // namespace

IterationSpace::IterationSpace(const For& loop) : loop_(loop) {
  const auto note_loop = [&](const For& n) {
    for (size_t axis = 0; axis < n.vars.size(); ++axis)
      extents_[n.vars[axis].get()] = std::max<int64_t>(0, constant_int(n.extents[axis]).value_or(0));
  };
  note_loop(loop);
  inside_ = bound_in(loop.body);
  std::unordered_map<const VarData*, int64_t> nodes;
  const auto note_let = [&](const Let& let) {
    int64_t count = 0;
    walk(let.value, [&](const Expr& part) {
      const auto* ref = as<VarRef>(part);
      const auto known = ref ? nodes.find(ref->var.get()) : nodes.end();
      count += known == nodes.end() ? 1 : known->second;
    });
    if (has_loads(let.value) || count > kMostNodesOfLet) return;
    lets_[let.var.get()] = let.value;
    nodes[let.var.get()] = count;
  };
  walk(
      loop.body,
      [&](const Stmt& part) {
        if (const auto* let = as<Let>(part)) note_let(*let);
        if (const auto* inner = as<For>(part)) note_loop(*inner);
        each_own_effect(part, [&](const Buffer& buffer, bool writes) {
          if (writes) written_.insert(memory_of(buffer));
        });
      },
      [](const Expr&) {});
}

Expr IterationSpace::expanded(const Expr& expr) const {
  return substitute(expr, [&](const Var& var) -> Expr {
    const auto let = lets_.find(var.get());
    return let == lets_.end() ? nullptr : expanded(let->second);
  });
}

// One question. Two iterations name one element if all indices are equal; the variables that an index tells apart are
// equal then, too, and count as fixed in what follows. What is fixed is the same number in both, but unknown.
class ConflictTest {
 public:
  ConflictTest(const IterationSpace& space, const std::vector<Expr>& indices, const std::vector<Var>& vars)
      : space_(space) {
    for (const Var& var : vars)
      if (space.extents_.at(var.get()) != 1) open_.push_back(var);
    for (const Expr& index : indices) indices_.push_back(space.expanded(index));
  }

  bool run() {
    for (bool found = true; found && !open_.empty();)
      found = std::any_of(indices_.begin(), indices_.end(), [&](const Expr& index) { return tells_apart(index); });
    return !open_.empty() && conflict_when_tried();
  }

 private:
  const IterationSpace& space_;
  std::vector<Var> open_;
  std::vector<Expr> indices_;

  bool is_open(const Var& var) const { return std::find(open_.begin(), open_.end(), var) != open_.end(); }
  // The same in both iterations.
  bool is_fixed(const Expr& expr) const {
    bool fixed = true;
    walk(expr, [&](const Expr& part) {
      if (const auto* ref = as<VarRef>(part)) fixed &= !is_open(ref->var) && space_.inside_.count(ref->var.get()) == 0;
      if (const auto* load = as<Load>(part)) fixed &= space_.written_.count(memory_of(load->buffer)) == 0;
    });
    return fixed;
  }

  // 0 if it is unknown.
  int64_t extent_of(const Var& var) const {
    const auto found = space_.extents_.find(var.get());
    return found == space_.extents_.end() ? 0 : found->second;
  }

  // Whether a sum of multiples of variables gives other numbers for other values of the open ones, which then are
  // fixed: each coefficient is larger than what the terms below it amount to.
  bool tells_apart(const Expr& index) {
    std::vector<Affine::Term> terms;
    std::vector<std::pair<Expr, bool>> summands;
    collect_summands(index, false, summands);
    for (const auto& [part, negative] : summands) {
      if (is_fixed(part)) continue;
      const auto sum = affine(part);
      if (!sum) return false;
      for (const Affine::Term& term : sum->terms) add(terms, term, negative);
    }
    std::erase_if(terms, [&](const Affine::Term& t) { return t.coefficient == 0 || is_fixed(var_ref(t.var)); });
    const bool names_open =
        std::any_of(terms.begin(), terms.end(), [&](const Affine::Term& t) { return is_open(t.var); });
    if (!names_open || !are_digits(terms)) return false;
    std::erase_if(open_, [&](const Var& var) {
      return std::any_of(terms.begin(), terms.end(), [&](const Affine::Term& t) { return t.var == var; });
    });
    return true;
  }

  static void add(std::vector<Affine::Term>& terms, const Affine::Term& term, bool negative) {
    const int64_t coefficient = negative ? -term.coefficient : term.coefficient;
    const auto known = std::find_if(terms.begin(), terms.end(), [&](const auto& t) { return t.var == term.var; });
    if (known == terms.end())
      terms.push_back({term.var, coefficient});
    else
      known->coefficient += coefficient;
  }

  // Products that leave 64 bits mean no.
  bool are_digits(std::vector<Affine::Term> terms) const {
    constexpr int64_t kLargest = int64_t{1} << 40;
    for (Affine::Term& term : terms) {
      term.coefficient = std::abs(term.coefficient);
      if (term.coefficient >= kLargest) return false;
    }
    std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return a.coefficient < b.coefficient; });
    int64_t below = 0;
    for (size_t k = 0; k < terms.size(); ++k) {
      if (terms[k].coefficient <= below) return false;
      const int64_t extent = extent_of(terms[k].var);
      if (k + 1 == terms.size()) break;
      if (extent == 0 || extent >= kLargest / terms[k].coefficient) return false;
      below += terms[k].coefficient * (extent - 1);
    }
    return true;
  }

  // The expression less a number that is fixed; null if that is not known. `alone`: or another one that is equal in
  // two iterations exactly where the expression is.
  Expr without_fixed(const Expr& expr, bool alone) const {
    std::vector<std::pair<Expr, bool>> summands;
    collect_summands(expr, false, summands);
    std::erase_if(summands, [&](const auto& summand) { return is_fixed(summand.first); });
    Expr result = int_imm(0, kInt64);
    for (const auto& [part, negative] : summands) {
      const Expr inner = varying_part(part, alone && summands.size() == 1);
      if (!inner) return nullptr;
      result = binary(negative ? BinaryOp::sub : BinaryOp::add, result, inner);
    }
    return result;
  }

  // a * c, a // c and a % c, where a = a' + fixed. Remainders are equal where those of a' are, but no fixed number
  // apart.
  Expr varying_part(const Expr& part, bool alone) const {
    const auto* node = as<Binary>(part);
    const auto by = node && is_wide(part->type) ? constant_int(without_wide_casts(node->right)) : std::nullopt;
    const auto of = [&](const Expr& inner) { return inner ? binary(node->op, inner, int_imm(*by, kInt64)) : nullptr; };
    if (!by || *by <= 0) return known_part(part);
    if (node->op == BinaryOp::mul) return of(without_fixed(node->left, alone));
    if (node->op == BinaryOp::floor_mod && alone) return of(without_fixed(node->left, false));
    if (node->op == BinaryOp::floor_div && divides_fixed(node->left, *by)) return of(without_fixed(node->left, false));
    return known_part(part);
  }

  // Whether what is fixed of a sum is a multiple of the number.
  bool divides_fixed(const Expr& expr, int64_t number) const {
    std::vector<std::pair<Expr, bool>> summands;
    collect_summands(expr, false, summands);
    return std::all_of(summands.begin(), summands.end(), [&](const auto& summand) {
      if (!is_fixed(summand.first)) return true;
      const auto sum = affine(summand.first);
      return sum && sum->constant % number == 0 &&
             std::all_of(sum->terms.begin(), sum->terms.end(),
                         [&](const Affine::Term& term) { return term.coefficient % number == 0; });
    });
  }

  // Itself, if it names open variables and those of loops inside alone; else null.
  Expr known_part(const Expr& part) const {
    bool known = true;
    walk(part, [&](const Expr& below) {
      known &= !as<Load>(below) && is_wide(below->type);
      if (const auto* ref = as<VarRef>(below)) known &= is_open(ref->var) || is_inner_loop(ref->var);
    });
    return known ? part : nullptr;
  }

  bool is_inner_loop(const Var& var) const { return space_.inside_.count(var.get()) > 0 && extent_of(var) > 0; }

  // Each iteration's elements, as far as indices are known. Indices that are not tell nothing apart.
  bool conflict_when_tried() const {
    std::vector<Expr> known;
    std::vector<Var> vars = open_;
    for (const Expr& index : indices_) {
      const Expr part = without_fixed(index, true);
      if (!part) continue;
      known.push_back(part);
      walk(part, [&](const Expr& below) {
        const auto* ref = as<VarRef>(below);
        if (ref && std::find(vars.begin(), vars.end(), ref->var) == vars.end()) vars.push_back(ref->var);
      });
    }
    std::vector<StaticIndex> evaluators;
    for (const Expr& index : known) {
      auto evaluator = StaticIndex::of(index, vars);
      if (evaluator) evaluators.push_back(std::move(*evaluator));
    }
    return conflict_when_tried(vars, evaluators);
  }

  bool conflict_when_tried(const std::vector<Var>& vars, const std::vector<StaticIndex>& evaluators) const {
    int64_t iterations = 1;
    std::vector<int64_t> extents;
    for (const Var& var : vars) {
      extents.push_back(extent_of(var));
      if (extents.back() == 0 || iterations > kMostIterations / extents.back()) return true;
      iterations *= extents.back();
    }
    std::map<std::vector<int64_t>, std::vector<int64_t>> owners;
    std::vector<int64_t> at(vars.size(), 0);
    do {
      std::vector<int64_t> place;
      for (const StaticIndex& evaluator : evaluators) place.push_back(evaluator(at));
      const std::vector<int64_t> iteration(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(open_.size()));
      if (owners.try_emplace(std::move(place), iteration).first->second != iteration) return true;
    } while (advance(at, extents));
    return false;
  }

  // The next values; false after the last.
  static bool advance(std::vector<int64_t>& at, const std::vector<int64_t>& extents) {
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < extents[axis]) return true;
      at[axis] = 0;
    }
    return false;
  }
};

bool IterationSpace::may_conflict(const std::vector<Expr>& indices, const std::vector<Var>& vars) const {
  return ConflictTest(*this, indices, vars).run();
}

std::vector<Update> conflicting_updates(const Stmt& stmt) {
  const For& loop = *as<For>(stmt);
  const IterationSpace space(loop);
  struct Read {
    Buffer buffer;
    std::vector<Expr> at;
  };
  std::unordered_map<const BufferData*, std::vector<Read>> reads;
  walk(
      loop.body, [](const Stmt&) {},
      [&](const Expr& part) {
        const auto* load = as<Load>(part);
        if (load == nullptr) return;
        Read read{load->buffer, {}};
        for (const Expr& index : load->indices) read.at.push_back(space.expanded(index));
        reads[memory_of(load->buffer)].push_back(std::move(read));
      });
  std::vector<Update> result;
  walk(
      loop.body,
      [&](const Stmt& part) {
        const auto* store = as<Store>(part);
        const auto found = store ? reads.find(memory_of(store->buffer)) : reads.end();
        if (found == reads.end()) return;
        Update update{store->buffer, {}, part};
        for (const Expr& index : store->indices) update.indices.push_back(space.expanded(index));
        // By another name of the memory, or of what an iteration keeps for itself, whichever element.
        const bool reads_it = std::any_of(found->second.begin(), found->second.end(), [&](const Read& read) {
          return read.buffer != store->buffer || store->buffer->scope == Scope::local ||
                 std::equal(read.at.begin(), read.at.end(), update.indices.begin(), update.indices.end(),
                            [](const Expr& a, const Expr& b) { return structurally_equal(a, b); });
        });
        if (reads_it && space.may_conflict(update.indices)) result.push_back(std::move(update));
      },
      [](const Expr&) {});
  return result;
}

}  // namespace tilepilot::passes
