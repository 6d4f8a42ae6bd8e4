#include "compiler/passes/iterations/unwritten_reads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/passes/algebra/static_index.h"

namespace tilepilot::passes {

using namespace ir;

namespace {

constexpr int64_t kMostTracked = int64_t{1} << 16;    // elements of a buffer; of larger ones only whole writes count
constexpr int kMostVisited = 20000;                   // statements; beyond that loops are not followed step by step
constexpr int64_t kMostNumbers = int64_t{1} << 22;    // elements that are looked at one by one, over the whole kernel
constexpr int64_t kMostLoopSteps = int64_t{1} << 10;  // of a loop that is followed step by step

// What is sure to be written: elements by their number, for each name of a memory.
struct Written {
  std::map<const BufferData*, std::vector<bool>> elements;
  std::set<const BufferData*> whole;  // memories
};

Written common(const Written& a, const Written& b) {
  Written result;
  std::set_intersection(a.whole.begin(), a.whole.end(), b.whole.begin(), b.whole.end(),
                        std::inserter(result.whole, result.whole.end()));
  // Of a memory that one side has written as a whole, what the other one has.
  const auto take = [&](const Written& from, const Written& other) {
    for (const auto& [buffer, elements] : from.elements)
      if (other.whole.count(memory_of(*buffer)) != 0) result.elements.emplace(buffer, elements);
  };
  take(a, b);
  take(b, a);
  for (const auto& [buffer, elements] : a.elements) {
    const auto found = b.elements.find(buffer);
    if (found == b.elements.end() || result.elements.count(buffer) != 0) continue;
    std::vector<bool> both = elements;
    for (size_t k = 0; k < both.size(); ++k) both[k] = both[k] && found->second[k];
    result.elements.emplace(buffer, std::move(both));
  }
  return result;
}

class UnwrittenReads {
 public:
  explicit UnwrittenReads(const Kernel& kernel) {
    for (const Buffer& buffer : kernel.allocations) {
      const bool own = buffer->scope == Scope::fragment || buffer->scope == Scope::local;
      if (own && !buffer->base && !buffer->address) memories_.emplace(buffer.get(), buffer);
    }
    for (size_t axis = 0; axis < kernel.thread_vars.size(); ++axis)
      threads_.emplace(kernel.thread_vars[axis].get(), kernel.threads[axis]);
  }

  std::vector<UnwrittenRead> run(const Stmt& body) {
    if (memories_.empty()) return {};
    Written written;
    visit(body, written);
    return std::move(found_);
  }

 private:
  // Along an axis, what a statement accesses.
  struct Range {
    int64_t begin, end;
  };

  std::map<const BufferData*, Buffer> memories_;
  std::map<const VarData*, int64_t> threads_;   // extents
  std::map<const VarData*, int64_t> parallel_;  // of parallel loops around, extents
  std::vector<Var> known_;                      // of loops that are followed step by step, and their values
  std::vector<int64_t> values_;
  std::set<const BufferData*> touched_;  // memories that something has been written to
  std::set<const BufferData*> told_;
  std::vector<UnwrittenRead> found_;
  int visited_ = 0;
  int64_t places_ = 0;

  bool is_ours(const Buffer& buffer) const { return memories_.count(memory_of(buffer)) != 0; }

  static std::optional<std::vector<int64_t>> extents_of(const Buffer& buffer) {
    std::vector<int64_t> extents;
    for (const Expr& extent : buffer->shape) {
      const auto number = constant_int(extent);
      if (!number) return std::nullopt;
      extents.push_back(*number);
    }
    return extents;
  }

  // The variable's extent, if it runs over all of its values while the statement runs. Threads have arrays of their
  // own, each of which sees one value.
  std::optional<int64_t> extent_of(const Var& var, const Buffer& buffer) const {
    if (const auto found = parallel_.find(var.get()); found != parallel_.end()) return found->second;
    if (buffer->scope != Scope::fragment) return std::nullopt;
    const auto found = threads_.find(var.get());
    return found == threads_.end() ? std::nullopt : std::optional(found->second);
  }

  // Of an index, in `length` elements from there on; `used`: variables of other axes.
  std::optional<Range> range_of(const Buffer& buffer, const Expr& given, int64_t length,
                                std::set<const VarData*>& used) const {
    if (const auto index = StaticIndex::of(given, known_)) {
      const int64_t at = (*index)(values_);
      return Range{at, at + length};
    }
    const Expr& index = without_casts(given);
    if (length == 1) {
      if (const auto* ref = as<VarRef>(index)) {
        const auto extent = extent_of(ref->var, buffer);
        if (!extent || !used.insert(ref->var.get()).second) return std::nullopt;
        return Range{0, *extent};
      }
    }
    const auto* sum = as<Binary>(index);
    if (sum == nullptr || sum->op != BinaryOp::add) return std::nullopt;
    for (const auto& [part, offset] : {std::pair(sum->left, sum->right), std::pair(sum->right, sum->left)}) {
      const auto start = StaticIndex::of(offset, known_);
      if (!start) continue;
      auto range = range_of(buffer, part, length, used);
      if (!range) return std::nullopt;
      const int64_t at = (*start)(values_);
      return Range{range->begin + at, range->end + at};
    }
    return std::nullopt;
  }

  // The numbers of the elements at these places, one index or region start an axis; none: not known.
  std::optional<std::vector<int64_t>> numbers_of(const Buffer& buffer, const std::vector<Expr>& start,
                                                 const std::vector<int64_t>& length) {
    const auto extents = extents_of(buffer);
    if (!extents) return std::nullopt;
    int64_t size = 1;
    for (const int64_t extent : *extents) size = std::min(size * extent, kMostTracked + 1);
    if (size > kMostTracked) return std::nullopt;
    std::vector<Range> box;
    std::set<const VarData*> used;
    for (size_t axis = 0; axis < start.size(); ++axis) {
      auto range = range_of(buffer, start[axis], length[axis], used);
      if (!range) return one_by_one(buffer, *extents, start, length);
      box.push_back({std::max<int64_t>(0, range->begin), std::min((*extents)[axis], range->end)});
    }
    int64_t count = 1;
    for (const Range& range : box) count *= std::max<int64_t>(0, range.end - range.begin);
    if (places_ + count > kMostNumbers) return std::nullopt;
    places_ += count;
    std::vector<int64_t> numbers{0};
    for (size_t axis = 0; axis < box.size(); ++axis) {
      std::vector<int64_t> next;
      for (const int64_t number : numbers)
        for (int64_t at = box[axis].begin; at < box[axis].end; ++at) next.push_back(number * (*extents)[axis] + at);
      numbers = std::move(next);
    }
    return numbers;
  }

  // Of single elements whose indices are computed from variables of parallel loops.
  std::optional<std::vector<int64_t>> one_by_one(const Buffer& buffer, const std::vector<int64_t>& extents,
                                                 const std::vector<Expr>& start, const std::vector<int64_t>& length) {
    if (std::any_of(length.begin(), length.end(), [](int64_t count) { return count != 1; })) return std::nullopt;
    std::vector<Var> vars = known_;
    std::vector<int64_t> counts;
    for (const Expr& index : start)
      walk(index, [&](const Expr& part) {
        const auto* ref = as<VarRef>(part);
        if (ref == nullptr || std::find(vars.begin(), vars.end(), ref->var) != vars.end()) return;
        const auto extent = extent_of(ref->var, buffer);
        if (!extent) return;
        vars.push_back(ref->var);
        counts.push_back(*extent);
      });
    int64_t iterations = 1;
    for (const int64_t count : counts) iterations = std::min(iterations * count, kMostNumbers);
    if (places_ + iterations > kMostNumbers) return std::nullopt;
    places_ += iterations;
    std::vector<StaticIndex> indices;
    for (const Expr& index : start) {
      auto computed = StaticIndex::of(index, vars);
      if (!computed) return std::nullopt;
      indices.push_back(std::move(*computed));
    }
    std::vector<int64_t> numbers, at = values_;
    at.resize(vars.size());
    for (int64_t iteration = 0; iteration < iterations; ++iteration) {
      int64_t rest = iteration, number = 0;
      for (size_t k = counts.size(); k-- > 0; rest /= counts[k]) at[values_.size() + k] = rest % counts[k];
      bool inside = true;
      for (size_t axis = 0; axis < indices.size(); ++axis) {
        const int64_t index = indices[axis](at);
        inside = inside && index >= 0 && index < extents[axis];
        number = number * extents[axis] + index;
      }
      if (inside) numbers.push_back(number);
    }
    return numbers;
  }

  void read(const Buffer& buffer, const std::vector<Expr>& start, const std::vector<int64_t>& length,
            const Written& written, Span span) {
    const BufferData* memory = memory_of(buffer);
    if (!is_ours(buffer) || told_.count(memory) != 0 || written.whole.count(memory) != 0) return;
    const auto elements = written.elements.find(buffer.get());
    if (elements != written.elements.end()) {
      const auto numbers = numbers_of(buffer, start, length);
      const auto is_written = [&](int64_t number) { return elements->second[static_cast<size_t>(number)]; };
      if (numbers && std::all_of(numbers->begin(), numbers->end(), is_written)) return;
    }
    told_.insert(memory);
    found_.push_back({memories_.at(memory), span, touched_.count(memory) == 0});
  }

  void write(const Buffer& buffer, const std::vector<Expr>& start, const std::vector<int64_t>& length,
             Written& written) {
    if (!is_ours(buffer)) return;
    const BufferData* memory = memory_of(buffer);
    touched_.insert(memory);
    if (written.whole.count(memory) != 0) return;
    const auto extents = extents_of(buffer);
    const bool from_zero =
        std::all_of(start.begin(), start.end(), [](const Expr& index) { return constant_int(index) == 0; });
    if (extents && from_zero && length == *extents) {
      written.whole.insert(memory);
      return;
    }
    const auto numbers = numbers_of(buffer, start, length);
    if (!numbers) return;
    int64_t size = 1;
    for (const int64_t extent : *extents) size *= extent;
    std::vector<bool>& elements = written.elements.try_emplace(buffer.get(), size, false).first->second;
    for (const int64_t number : *numbers) elements[static_cast<size_t>(number)] = true;
    if (std::all_of(elements.begin(), elements.end(), [](bool is) { return is; })) written.whole.insert(memory);
  }

  void read_all(const Expr& expr, const Written& written, Span span) {
    walk(expr, [&](const Expr& part) {
      const auto* load = as<Load>(part);
      if (load != nullptr)
        read(load->buffer, load->indices, std::vector<int64_t>(load->indices.size(), 1), written,
             part->span.valid() ? part->span : span);
    });
  }

  void visit(const Stmt& stmt, Written& written) {
    ++visited_;
    if (const auto* list = as<Block>(stmt)) {
      const size_t outside = known_.size();
      for (const Stmt& part : list->body) visit(part, written);
      known_.resize(outside);
      values_.resize(outside);
    } else if (const auto* let = as<Let>(stmt)) {
      read_all(let->value, written, stmt->span);
      if (const auto value = StaticIndex::of(let->value, known_)) {
        const int64_t number = (*value)(values_);
        known_.push_back(let->var);
        values_.push_back(number);
      }
    } else if (const auto* store = as<Store>(stmt)) {
      for (const Expr& index : store->indices) read_all(index, written, stmt->span);
      read_all(store->value, written, stmt->span);
      write(store->buffer, store->indices, std::vector<int64_t>(store->indices.size(), 1), written);
    } else if (const auto* branch = as<If>(stmt)) {
      read_all(branch->condition, written, stmt->span);
      Written otherwise = written;
      visit(branch->then, written);
      if (branch->otherwise) visit(branch->otherwise, otherwise);
      written = common(written, otherwise);
    } else if (const auto* loop = as<For>(stmt)) {
      visit_loop(*loop, stmt->span, written);
    } else if (const auto* loop_while = as<While>(stmt)) {
      read_all(loop_while->condition, written, stmt->span);
      Written inside = written;
      visit(loop_while->body, inside);
    } else if (const auto* roles = as<Roles>(stmt)) {
      visit(roles->body, written);  // their tiles are mostly their own
    } else if (const auto* concurrent = as<Concurrent>(stmt)) {
      for (const Concurrent::Role& role : concurrent->roles) visit(role.body, written);
    } else {
      visit_operator(stmt, written);
    }
  }

  void visit_operator(const Stmt& stmt, Written& written) {
    walk(
        stmt, [](const Stmt&) {},
        [&](const Expr& part) {
          if (const auto* load = as<Load>(part))
            read(load->buffer, load->indices, std::vector<int64_t>(load->indices.size(), 1), written, stmt->span);
        });
    const Accesses accesses = region_accesses(stmt);
    const bool foreign = as<ExternCall>(stmt) != nullptr;
    for (const Region* region : accesses.reads)
      if (!foreign) read(region->buffer, region->start, region->extent, written, stmt->span);
    for (const Region* region : accesses.writes) {
      if (!is_ours(region->buffer)) continue;
      if (!foreign) write(region->buffer, region->start, region->extent, written);
      if (foreign) written.whole.insert(memory_of(region->buffer));
    }
  }

  // Whether its steps access different elements of ours, so that one alone does not tell what all of them do.
  bool differs_by_step(const For& loop) const {
    bool differs = false;
    Variables vars;
    for (const Var& var : loop.vars) vars.insert(var.get());
    const auto look = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      if (!is_ours(buffer)) return;
      for (const Expr& index : indices)
        walk(index, [&](const Expr& part) {
          const auto* ref = as<VarRef>(part);
          if (ref != nullptr) differs |= vars.count(ref->var.get()) != 0;
        });
    };
    walk(
        loop.body,
        [&](const Stmt& stmt) {
          // What is computed from the loop's variables is as they are.
          if (const auto* let = as<Let>(stmt); let && mentions(let->value, vars)) vars.insert(let->var.get());
          if (const auto* store = as<Store>(stmt)) look(store->buffer, store->indices);
          const Accesses accesses = region_accesses(stmt);
          for (const auto* regions : {&accesses.reads, &accesses.writes})
            for (const Region* region : *regions) look(region->buffer, region->start);
        },
        [&](const Expr& part) {
          if (const auto* load = as<Load>(part)) look(load->buffer, load->indices);
        });
    return differs;
  }

  void visit_loop(const For& loop, Span span, Written& written) {
    int64_t iterations = 1;
    for (const Expr& extent : loop.extents) {
      read_all(extent, written, span);
      const auto count = constant_int(extent);
      iterations = count ? std::min(iterations * std::max<int64_t>(0, *count), kMostNumbers) : 0;
      if (!count) break;
    }
    const bool is_parallel = loop.kind == LoopKind::parallel;
    // The first step may read what later ones write. A loop that may have no steps, or ends early, writes nothing for
    // sure.
    if (iterations == 0 || contains<Break, Continue>(loop.body)) {
      Written inside = written;
      return visit(loop.body, inside);
    }
    if (is_parallel) {
      for (size_t k = 0; k < loop.vars.size(); ++k) parallel_[loop.vars[k].get()] = *constant_int(loop.extents[k]);
      visit(loop.body, written);
      for (const Var& var : loop.vars) parallel_.erase(var.get());
      return;
    }
    if (iterations > kMostLoopSteps || visited_ > kMostVisited || !differs_by_step(loop))
      return visit(loop.body, written);
    known_.push_back(loop.vars[0]);
    values_.push_back(0);
    for (int64_t step = 0; step < iterations; ++step) {
      values_.back() = step;
      visit(loop.body, written);
      if (visited_ > kMostVisited) break;
    }
    known_.pop_back();
    values_.pop_back();
  }
};

}  // namespace

std::vector<UnwrittenRead> unwritten_reads(const Kernel& kernel) { return UnwrittenReads(kernel).run(kernel.body); }

}  // namespace tilepilot::passes
