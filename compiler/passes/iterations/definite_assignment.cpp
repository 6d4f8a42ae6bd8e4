#include "compiler/passes/iterations/definite_assignment.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/passes/algebra/static_index.h"
#include "compiler/passes/iterations/iteration_conflicts.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

constexpr int64_t kMostElements = 4096;
constexpr int kMostFollowed = 20000;  // statements that are followed one by one; beyond that loops count as unknown

bool jumps(const Stmt& body) { return contains<Break, Continue>(body); }

class Assignment {
 public:
  Assignment(const For& loop, const Buffer& memory) : space_(loop), memory_(memory.get()) {}

  bool run(const Stmt& body) {
    State state;
    visit(body, state);
    return sound_;
  }

 private:
  // What has been written: elements by their number, for each name of the memory, and places as they are written.
  struct State {
    std::map<const BufferData*, std::vector<bool>> elements;
    std::set<std::string> places;
    bool all = false;
  };

  const IterationSpace space_;
  const BufferData* memory_;
  std::vector<Var> vars_;  // of loops that are followed step by step
  std::vector<int64_t> values_;
  bool sound_ = true;
  int steps_ = 0;

  bool is_ours(const Buffer& buffer) const { return memory_of(buffer) == memory_; }

  // The element's number where the indices are known.
  std::optional<int64_t> number_of(const Buffer& buffer, const std::vector<Expr>& indices) const {
    int64_t number = 0;
    for (size_t axis = 0; axis < indices.size(); ++axis) {
      const auto extent = constant_int(buffer->shape[axis]);
      const auto index = StaticIndex::of(space_.expanded(indices[axis]), vars_);
      if (!extent || !index) return std::nullopt;
      const int64_t at = (*index)(values_);
      if (at < 0 || at >= *extent) return std::nullopt;
      number = number * *extent + at;
    }
    return number;
  }

  static int64_t size_of(const Buffer& buffer) {
    int64_t size = 1;
    for (const Expr& extent : buffer->shape)
      size = std::min(size * constant_int(extent).value_or(0), kMostElements + 1);
    return size;
  }

  // Empty if the place depends on memory.
  std::string place_of(const Buffer& buffer, const std::vector<Expr>& indices) const {
    std::string text = std::to_string(reinterpret_cast<uintptr_t>(buffer.get()));
    for (const Expr& given : indices) {
      const Expr index = space_.expanded(given);
      if (has_loads(index)) return "";
      // Variables by identity: names may be equal.
      text += "," + to_text(index);
      walk(index, [&](const Expr& part) {
        if (const auto* ref = as<VarRef>(part))
          text += ":" + std::to_string(reinterpret_cast<uintptr_t>(ref->var.get()));
      });
    }
    return text;
  }

  void read(const Buffer& buffer, const std::vector<Expr>& indices, const State& state) {
    if (!is_ours(buffer) || state.all) return;
    const auto elements = state.elements.find(buffer.get());
    const auto number = number_of(buffer, indices);
    if (number && elements != state.elements.end() && elements->second[static_cast<size_t>(*number)]) return;
    const std::string place = place_of(buffer, indices);
    if (place.empty() || state.places.count(place) == 0) sound_ = false;
  }

  void write(const Buffer& buffer, const std::vector<Expr>& indices, State& state) const {
    if (!is_ours(buffer) || state.all) return;
    if (const std::string place = place_of(buffer, indices); !place.empty()) state.places.insert(place);
    const int64_t size = size_of(buffer);
    const auto number = number_of(buffer, indices);
    if (!number || size > kMostElements) return;
    std::vector<bool>& elements = state.elements.try_emplace(buffer.get(), size, false).first->second;
    elements[static_cast<size_t>(*number)] = true;
    state.all = std::all_of(elements.begin(), elements.end(), [](bool written) { return written; });
  }

  void visit(const Expr& expr, const State& state) {
    walk(expr, [&](const Expr& part) {
      if (const auto* load = as<Load>(part)) read(load->buffer, load->indices, state);
    });
  }

  void visit(const Stmt& stmt, State& state) {
    ++steps_;
    if (!sound_) return;
    if (const auto* n = as<Block>(stmt)) {
      for (const Stmt& part : n->body) visit(part, state);
    } else if (const auto* store = as<Store>(stmt)) {
      for (const Expr& index : store->indices) visit(index, state);
      visit(store->value, state);
      write(store->buffer, store->indices, state);
    } else if (const auto* branch = as<If>(stmt)) {
      visit_branch(*branch, state);
    } else if (const auto* loop = as<For>(stmt)) {
      visit_loop(*loop, state);
    } else if (const auto* loop_while = as<While>(stmt)) {
      visit(loop_while->condition, state);
      visit_unknown(loop_while->body, state);
    } else {
      visit_other(stmt, state);
    }
  }

  // What foreign functions do to an array is not known; they are taken to write it.
  void visit_other(const Stmt& stmt, State& state) {
    if (const auto* atomic = as<Atomic>(stmt)) {
      if (atomic->op != AtomicOp::store || atomic->previous) read(atomic->element.buffer, atomic->element.start, state);
      write(atomic->element.buffer, atomic->element.start, state);
    } else if (as<ExternCall>(stmt)) {
      each_own_effect(stmt, [&](const Buffer& buffer, bool) { state.all |= is_ours(buffer); });
    } else {
      each_own_effect(stmt, [&](const Buffer& buffer, bool) { sound_ &= !is_ours(buffer); });
    }
    // Operands.
    walk(
        stmt, [](const Stmt&) {},
        [&](const Expr& part) {
          if (const auto* load = as<Load>(part)) read(load->buffer, load->indices, state);
        });
  }

  void visit_branch(const If& branch, State& state) {
    visit(branch.condition, state);
    State then = state, otherwise = state;
    visit(branch.then, then);
    if (branch.otherwise) visit(branch.otherwise, otherwise);
    state = both(then, otherwise);
  }

  static State both(const State& a, const State& b) {
    if (a.all) return b;
    if (b.all) return a;
    State result;
    for (const auto& [buffer, elements] : a.elements) {
      const auto other = b.elements.find(buffer);
      if (other == b.elements.end()) continue;
      std::vector<bool> common = elements;
      for (size_t k = 0; k < common.size(); ++k) common[k] = common[k] && other->second[k];
      result.elements.emplace(buffer, std::move(common));
    }
    std::set_intersection(a.places.begin(), a.places.end(), b.places.begin(), b.places.end(),
                          std::inserter(result.places, result.places.end()));
    return result;
  }

  void visit_loop(const For& loop, State& state) {
    for (const Expr& extent : loop.extents) visit(extent, state);
    std::vector<int64_t> extents;
    int64_t iterations = 1;
    for (const Expr& extent : loop.extents) {
      const auto count = constant_int(extent);
      extents.push_back(count.value_or(0));
      iterations = count ? std::min<int64_t>(iterations * std::max<int64_t>(0, *count), kMostFollowed) : kMostFollowed;
    }
    if (iterations >= kMostFollowed - steps_ || jumps(loop.body)) return visit_unknown(loop.body, state);
    const size_t outside = vars_.size();
    for (const Var& var : loop.vars) vars_.push_back(var);
    for (int64_t number = 0; number < iterations && sound_; ++number) {
      std::vector<int64_t> at(extents.size());
      int64_t rest = number;
      for (size_t axis = extents.size(); axis-- > 0; rest /= extents[axis]) at[axis] = rest % extents[axis];
      values_.resize(outside);
      values_.insert(values_.end(), at.begin(), at.end());
      std::set<std::string> places = state.places;
      visit(loop.body, state);
      state.places = std::move(places);  // they name the loop's variables
    }
    vars_.resize(outside);
    values_.resize(outside);
  }

  // A body that runs any number of times, or not to its end.
  void visit_unknown(const Stmt& body, const State& state) {
    State inside = state;
    visit(body, inside);
  }
};

}  // namespace

bool writes_before_reading(const For& loop, const Buffer& memory) { return Assignment(loop, memory).run(loop.body); }

}  // namespace tilepilot::passes
