// Parallel loops: each thread runs its iterations, register by register. The first mode of a loop's registers, if its
// iterations are neighbours along an axis, is the lanes: what they load and store becomes vectors where vectors.h
// allows it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/layout/partition.h"
#include "compiler/targets/gpu/facts/element_copies.h"
#include "compiler/targets/gpu/facts/loop_body.h"
#include "compiler/targets/gpu/facts/loop_uses.h"
#include "compiler/targets/gpu/facts/register_map.h"
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/lower/vectors.h"

namespace tilepilot::targets::gpu {

using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {
constexpr int64_t kMostRoundsAhead = 8;   // whose vectors are loaded before the first is used
constexpr int64_t kMostUnrolled = 32;     // iterations of a loop that could be one of the machine
constexpr int64_t kMostBytesAhead = 128;  // of single elements, each in a register

class LoopLowering {
 public:
  LoopLowering(Lowering& lowering, const Stmt& stmt, const layout::Fragment& fragment)
      : lowering_(lowering),
        stmt_(stmt),
        loop_(*ir::as<ir::For>(stmt)),
        body_(loop_, lowering.inference.machine.adds_vectors),
        matrices_(matrix_stores(lowering, loop_, fragment)),
        fragment_(matrices_.matrices ? matrices_.matrices->iterations : fragment) {}

  void run(Stmts& out) {
    thread_ = lowering_.thread_digits(fragment_.threads(), stmt_->span, out);
    replicas(out);
    find_register_maps();
    hold_matrices(out);
    write(out);
    decide();
  }

 private:
  void write(Stmts& out) {
    const bool all = writes_own(stmt_) && !needs_one_thread(stmt_);
    if (!first_ || all) return all_registers(out);
    // Nobody needs what the others would do, or may have it done twice: then an iteration keeps nothing but what is its
    // own.
    const Expr first = std::exchange(first_, nullptr);
    Stmts once;
    all_registers(once);
    out.push_back(ir::make_stmt(ir::If{first, ir::make_stmt(ir::Block{std::move(once)}, span()), nullptr}, span()));
  }

  void all_registers(Stmts& out) {
    const auto& modes = fragment_.registers().modes();
    if (linear_) {
      lanes_ = lanes_of(fragment_).count;
      digits_ = lowering_.register_digits(fragment_.registers(), vars_);
      if (lanes_ > 1) take_guard();
      Stmts first, rest;
      rounds_ = fragment_.register_count() / lanes_;
      if (lanes_ == 1 && rounds_ > 1) early_ = body_.early_loads(kMostBytesAhead / rounds_);
      loads_first_ = lanes_ > 1 ? rounds_ > 1 && rounds_ <= kMostRoundsAhead : !early_.empty();
      iteration(loads_first_ ? first : rest, rest);
      for (Stmts* part : {&first, &rest}) {
        for (size_t k = 0; k < modes.size() && !part->empty(); ++k) {
          if (modes[k].extent > 1 && (lanes_ == 1 || k > 0))
            *part = {around(vars_[k], modes[k].extent, std::move(*part))};
          if (part == &rest && k == modes_of_matrices()) store_matrices(rest);
        }
        out.insert(out.end(), part->begin(), part->end());
      }
      return;
    }
    for (int64_t reg = 0; reg < fragment_.register_count(); ++reg) {
      digits_.clear();
      for (const int64_t digit : layout::digits(fragment_.registers(), reg)) digits_.push_back(ir::int_imm(digit));
      reg_ = reg;
      iteration(out, out);
    }
  }

  Lowering& lowering_;
  const Stmt& stmt_;
  const ir::For& loop_;
  LoopBody body_;  // of what is done under `guard_`
  Expr guard_;     // of all that an iteration does, the same for all lanes; null: there is none
  MatrixStores matrices_;
  const layout::Fragment fragment_;
  Indices thread_, digits_;
  Expr lane_;                                             // of a warp
  std::unordered_map<const ir::StmtNode*, Buffer> held_;  // what a thread has of the matrices that such a store writes
  std::vector<ir::Var> vars_;                             // of the digits of a register
  Expr first_;  // true for the first of several threads with the same iterations; null if there is one
  int64_t lanes_ = 1;
  int64_t rounds_ = 1;        // how often the lanes come round
  bool loads_first_ = false;  // of all rounds: no store holds back a load, and iterations do not depend on each other
  std::vector<Expr> early_;   // of single elements, these loads
  // For each way in which a fragment is named: the register that each register of the loop stands for, as multiples of
  // digits.
  struct Map {
    std::vector<int64_t> registers, steps;
    int64_t start = 0;
  };
  std::map<std::pair<const ir::BufferData*, std::string>, Map> by_use_;  // see `key`
  bool linear_ = true;
  int64_t reg_ = 0;  // where registers are written out one by one
  bool names_fragments_ = false;
  const bool is_guarded_ = fragment_.needs_guard();
  std::vector<std::string> widths_, obstacles_;  // of accesses to memory, for the decision

  static void add_once(std::vector<std::string>& all, std::string text) {
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
  }
  void take_guard();
  void note_obstacles();
  void decide();
  std::string tma_obstacle(const Buffer& from, const Buffer& to) const;

  Span span() const { return stmt_->span; }

  void replicas(Stmts& out) {
    const Expr condition = is_first_replica(fragment_, thread_, span());
    if (!condition) return;
    const ir::Var var = ir::make_var("is_first", ir::kBool);
    out.push_back(ir::make_stmt(ir::Let{var, condition}, span()));
    first_ = ir::var_ref(var);
  }

  // Indices of one fragment are told apart by how they are written over the loop's variables.
  static std::string key(const std::vector<Expr>& indices);

  void find_register_maps() {
    const auto note = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      if (buffer->scope != Scope::fragment) return;
      names_fragments_ = true;
      const auto use = std::pair{static_cast<const ir::BufferData*>(buffer.get()), key(indices)};
      if (by_use_.contains(use)) return;
      auto map = register_map(fragment_, loop_.vars, indices, lowering_.fragment(buffer));
      if (!map)
        return lowering_.fail(span(), fmt::format("`{}` is held by other threads than this loop needs", buffer->name));
      by_use_.emplace(use, linear(std::move(*map)));
    };
    for (const Use& use : uses_of(loop_.body)) note(use.buffer, use.indices);
  }

  Map linear(std::vector<int64_t> registers) {
    Map map{std::move(registers), {}, 0};
    const auto& modes = fragment_.registers().modes();
    map.start = std::max<int64_t>(0, map.registers[0]);
    int64_t weight = 1;
    for (const layout::Mode& mode : modes) {
      map.steps.push_back(mode.extent == 1 ? 0 : map.registers[static_cast<size_t>(weight)] - map.start);
      weight *= mode.extent;
    }
    for (size_t reg = 0; reg < map.registers.size(); ++reg) {
      int64_t sum = map.start;
      const auto digits = layout::digits(fragment_.registers(), static_cast<int64_t>(reg));
      for (size_t k = 0; k < digits.size(); ++k) sum += digits[k] * map.steps[k];
      if (map.registers[reg] >= 0 && sum != map.registers[reg]) linear_ = false;
      if (sum < 0) linear_ = false;
    }
    return map;
  }

  Expr register_of(const Buffer& buffer, const std::string& use) const {
    const auto found = by_use_.find({buffer.get(), use});
    if (found == by_use_.end()) return ir::int_imm(0);
    const Map& map = found->second;
    if (!linear_) return ir::int_imm(std::max<int64_t>(0, map.registers[static_cast<size_t>(reg_)]));
    Expr sum = ir::int_imm(map.start);
    for (size_t k = 0; k < digits_.size(); ++k) sum = plus(sum, times(digits_[k], map.steps[k]));
    return sum;
  }

  // The last mode of registers within the matrices that one instruction stores.
  size_t modes_of_matrices() const {
    return held_.empty() ? SIZE_MAX : static_cast<size_t>(matrices_.matrices->digits);
  }
  void hold_matrices(Stmts& out);
  Expr place_in_matrices() const;
  void store_matrices(Stmts& out) const;

  Stmt around(const ir::Var& var, int64_t count, Stmts body) const {
    const bool writes_out = names_fragments_ || count <= kMostUnrolled;
    return ir::make_stmt(ir::For{writes_out ? ir::LoopKind::unrolled : ir::LoopKind::serial,
                                 {var},
                                 {ir::int_imm(count)},
                                 0,
                                 ir::make_stmt(ir::Block{std::move(body)}, span())},
                         span());
  }

  // What is done for one register, or for all lanes; `loads` comes before `out`, and may be the same.
  void iteration(Stmts& loads, Stmts& out) {
    Indices first = digits_;
    if (lanes_ > 1) first[0] = ir::int_imm(0);
    const Indices first_at = coordinates_of(fragment_, thread_, first);
    Expr condition = is_guarded_ ? is_in_tile(fragment_, first_at, span()) : nullptr;
    if (guard_) condition = both(condition, placed(guard_, first_at));
    const size_t assumed = condition ? lowering_.facts.assume(condition) : 0;
    const Indices at = coordinates_of(fragment_, thread_, digits_);
    Stmts before, rest;
    if (lanes_ > 1)
      in_lanes(at, before, rest);
    else
      rest = element(at, before);
    if (condition) lowering_.facts.forget(assumed);
    const auto append = [&](Stmts part, Stmts& to) {
      if (condition && !part.empty())
        part = {ir::make_stmt(ir::If{condition, ir::make_stmt(ir::Block{std::move(part)}, span()), nullptr}, span())};
      to.insert(to.end(), part.begin(), part.end());
    };
    if (&loads == &out) {
      before.insert(before.end(), rest.begin(), rest.end());
      return append(std::move(before), out);
    }
    append(std::move(before), loads);
    append(std::move(rest), out);
  }

  Expr at_place(const ir::Var& var, const Indices& at) const {
    const auto found = std::find(loop_.vars.begin(), loop_.vars.end(), var);
    if (found == loop_.vars.end()) return nullptr;
    return ir::cast(at[static_cast<size_t>(found - loop_.vars.begin())], var->type);
  }

  // The expression in the iteration that is there.
  Expr placed(const Expr& expr, const Indices& at) const;

  // Registers are found by the indices as the loop has them, before its variables are replaced.
  class Placer;
  std::optional<Vector> vector_of(const Buffer& buffer, const std::vector<Expr>& given, Placer& placer, Stmts& lets);
  VectorMove moved(const Vector& vector, bool stores);
  Stmts element(const Indices& at, Stmts& before);
  Expr place_of_round(int64_t weight, size_t first) const;
  void in_lanes(const Indices& at, Stmts& loads, Stmts& out);
};

std::string LoopLowering::key(const std::vector<Expr>& indices) {
  std::string text;
  for (const Expr& index : indices) text += ir::to_text(index) + ";";
  return text;
}

// Replaces the loop's variables by coordinates, tiles and fragments by their places, and accesses that became vectors
// by the lane's element of these.
class LoopLowering::Placer : public ir::Rewriter {
 public:
  using Rewriter::rewrite;
  Placer(const LoopLowering& loop, const Indices& at) : loop_(loop), at_(at) {}

  std::map<const ir::ExprNode*, Expr> loads;     // instead of these
  std::map<const ir::StmtNode*, Buffer> stores;  // and sums
  Expr lane;

  Expr rewrite(const Expr& expr) override {
    if (const auto known = loads.find(expr.get()); known != loads.end()) return known->second;
    if (const auto* ref = ir::as<ir::VarRef>(expr)) {
      const auto own = own_.find(ref->var.get());
      if (own != own_.end()) return ir::var_ref(own->second, expr->span);
      const Expr place = loop_.at_place(ref->var, at_);
      return place ? place : expr;
    }
    const auto* load = ir::as<ir::Load>(expr);
    const auto place = load ? places().find(load->buffer.get()) : places().end();
    if (load == nullptr || place == places().end()) return rewrite_children(expr);
    return ir::load(place->second, indices(load->buffer, load->indices), expr->span);
  }

  Stmt rewrite(const Stmt& stmt) override {
    if (const auto* store = ir::as<ir::Store>(stmt)) return rewrite_store(stmt, *store);
    if (const auto* atomic = ir::as<ir::Atomic>(stmt)) return rewrite_atomic(stmt, *atomic);
    if (const auto* let = ir::as<ir::Let>(stmt)) {
      const Expr value = rewrite(let->value);
      return ir::make_stmt(ir::Let{own(let->var), value}, stmt->span);
    }
    const Stmt inner = rewrite_children(stmt);
    if (const auto* node = ir::as<ir::ExternCall>(inner); node && node->result) {
      ir::ExternCall result = *node;
      result.result = own(node->result);
      return ir::make_stmt(std::move(result), stmt->span);
    }
    return ir::as<ir::Barrier>(stmt) || ir::as<ir::Print>(stmt) ? once(inner) : inner;
  }

 private:
  const LoopLowering& loop_;
  const Indices& at_;
  std::map<const ir::VarData*, ir::Var> own_;  // of iterations that are written out one by one

  // The variable that a statement binds, in one scope with those of the iterations before if these are written out.
  ir::Var own(const ir::Var& var) {
    return loop_.linear_ || !var ? var : own_[var.get()] = ir::make_var(var->name, var->type);
  }

  const std::unordered_map<const ir::BufferData*, Buffer>& places() const { return loop_.lowering_.places; }

  std::vector<Expr> indices(const Buffer& buffer, const std::vector<Expr>& given) {
    if (buffer->scope == Scope::fragment) return {loop_.register_of(buffer, key(given))};
    Indices narrow;
    for (const Expr& index : given) narrow.push_back(ir::cast(rewrite(index), ir::kInt32));
    if (!places().contains(buffer.get())) return narrow;
    return {offset_in(loop_.lowering_.inference.tiles.at(buffer.get()), narrow)};
  }

  // What others see is written by one of the threads that do the same.
  Stmt by_first(Stmt stmt, const Buffer& buffer) const {
    const bool seen = buffer->scope == Scope::global || buffer->scope == Scope::shared;
    return loop_.first_ && seen ? ir::make_stmt(ir::If{loop_.first_, stmt, nullptr}, stmt->span) : stmt;
  }

  // Arrivals are counted, lines are read.
  Stmt once(const Stmt& stmt) const {
    return loop_.first_ ? ir::make_stmt(ir::If{loop_.first_, stmt, nullptr}, stmt->span) : stmt;
  }

  Stmt rewrite_store(const Stmt& stmt, const ir::Store& store) {
    const Expr value = rewrite(store.value);
    if (const auto held = loop_.held_.find(stmt.get()); held != loop_.held_.end())
      return ir::make_stmt(ir::Store{held->second, {loop_.place_in_matrices()}, value}, stmt->span);
    if (const auto vector = stores.find(stmt.get()); vector != stores.end())
      return ir::make_stmt(ir::Store{vector->second, {lane}, value}, stmt->span);
    const auto place = places().find(store.buffer.get());
    if (place == places().end()) {
      std::vector<Expr> at;
      for (const Expr& index : store.indices) at.push_back(rewrite(index));
      return by_first(ir::make_stmt(ir::Store{store.buffer, at, value}, stmt->span), store.buffer);
    }
    return by_first(ir::make_stmt(ir::Store{place->second, indices(store.buffer, store.indices), value}, stmt->span),
                    store.buffer);
  }

  Stmt rewrite_atomic(const Stmt& stmt, const ir::Atomic& atomic) {
    if (const auto vector = stores.find(stmt.get()); vector != stores.end())
      return ir::make_stmt(ir::Store{vector->second, {lane}, rewrite(atomic.value)}, stmt->span);
    ir::Atomic result = atomic;
    if (result.value) result.value = rewrite(atomic.value);
    const auto place = places().find(atomic.element.buffer.get());
    if (place == places().end())
      for (Expr& index : result.element.start) index = rewrite(index);
    else
      result.element = gpu::element(place->second, indices(atomic.element.buffer, atomic.element.start), stmt->span);
    if (loop_.first_ && atomic.previous && is_seen_by_others(*atomic.element.buffer))
      loop_.lowering_.fail(
          stmt->span, "the value before an atomic operation is wanted by several threads that do the same iteration");
    result.previous = own(atomic.previous);
    return by_first(ir::make_stmt(std::move(result), stmt->span), atomic.element.buffer);
  }
};

Expr LoopLowering::placed(const Expr& expr, const Indices& at) const { return Placer(*this, at).rewrite(expr); }

// Rows that are left out leave out all of their elements: what stands under the condition is as straight as it would be
// without.
void LoopLowering::take_guard() {
  if (body_.is_straight()) return;
  const bool adds_vectors = lowering_.inference.machine.adds_vectors;
  const auto guarded = guarded_loop(loop_, adds_vectors);
  if (!guarded) return;
  const Expr guard = placed(guarded->guard, coordinates_of(fragment_, thread_, digits_));
  if (!is_same_for_lanes({lowering_.facts, row_lengths_of(loop_.body), vars_[0], lanes_}, guard)) return;
  body_ = LoopBody(guarded->loop, adds_vectors);
  guard_ = guarded->guard;
}

void LoopLowering::hold_matrices(Stmts& out) {
  if (!linear_ || !matrices_.matrices) return;
  const int64_t at_once = matrices_.matrices->at_once();
  for (const Stmt& stmt : body_.statements()) {
    const auto found = matrices_.stores.find(stmt.get());
    if (found == matrices_.stores.end()) continue;
    const Buffer& tile = ir::as<ir::Store>(stmt)->buffer;
    held_.emplace(stmt.get(), lowering_.local(tile->name + "_m", tile->type, 2 * at_once));
    const char* way = found->second == layout::Transposed::yes ? "transposed " : "";
    add_once(widths_, fmt::format("{} by {}stmatrix x{}", tile->name, way, at_once));
  }
  lane_ =
      lowering_.let("lane", remainder(lowering_.thread_number(), layout::kWarpSize), layout::kWarpSize, span(), out);
}

// Two elements a matrix.
Expr LoopLowering::place_in_matrices() const {
  Expr place = ir::int_imm(0);
  for (size_t k = 0; k <= modes_of_matrices(); ++k) place = plus(place, times(digits_[k], int64_t{1} << k));
  return place;
}

// Lane l gives the address of row l % 8 of matrix l / 8.
void LoopLowering::store_matrices(Stmts& out) const {
  for (const Stmt& stmt : body_.statements()) {
    const auto held = held_.find(stmt.get());
    if (held == held_.end()) continue;
    const auto& store = *ir::as<ir::Store>(stmt);
    const bool across = matrices_.stores.at(stmt.get()) == layout::Transposed::yes;
    const Expr row = remainder(lane_, kMatrixRow);
    Indices thread = thread_, reg = digits_;
    thread[0] = across ? quotient(row, 2) : ir::int_imm(0);
    thread[1] = across ? ir::int_imm(0) : row;
    reg[0] = across ? remainder(lane_, 2) : ir::int_imm(0);
    if (modes_of_matrices() > 0) reg[1] = remainder(quotient(lane_, kMatrixRow), 2);
    if (modes_of_matrices() > 1) reg[2] = quotient(lane_, 2 * kMatrixRow);
    const Indices at = coordinates_of(fragment_, thread, reg);
    Indices place;
    for (const Expr& index : store.indices)
      place.push_back(
          ir::cast(ir::substitute(index, [&](const ir::Var& var) { return at_place(var, at); }), ir::kInt32));
    out.push_back(
        call(fmt::format("stmatrix{}<{}>", across ? "_transposed" : "", matrices_.matrices->at_once()),
             {lowering_.address(store.buffer, place, span()), gpu::element(held->second, {ir::int_imm(0)}, span())},
             span()));
  }
}

// Among the registers of all rounds, whose digits begin with this one.
Expr LoopLowering::place_of_round(int64_t weight, size_t first) const {
  Expr place = ir::int_imm(0);
  for (size_t k = first; k < digits_.size(); weight *= fragment_.registers().modes()[k].extent, ++k)
    place = plus(place, times(digits_[k], weight));
  return place;
}

Stmts LoopLowering::element(const Indices& at, Stmts& before) {
  Placer placer(*this, at);
  Stmts out;
  for (const Expr& part : early_) {
    const Buffer& tensor = ir::as<ir::Load>(part)->buffer;
    const Expr value = placer.rewrite(part);
    const bool varies = std::any_of(vars_.begin(), vars_.end(), [&](auto& var) { return ir::mentions(value, var); });
    const Buffer registers = lowering_.local(tensor->name + "_v", tensor->type, varies ? rounds_ : 1);
    const Expr place = varies ? place_of_round(1, 0) : ir::int_imm(0);
    before.push_back(ir::make_stmt(ir::Store{registers, {place}, value}, span()));
    placer.loads.emplace(part.get(), ir::load(registers, {place}, part->span));
  }
  for (const Stmt& stmt : body_.statements()) out.push_back(placer.rewrite(stmt));
  return out;
}

// The access as a vector, if it may be one.
std::optional<Vector> LoopLowering::vector_of(const Buffer& buffer, const std::vector<Expr>& given, Placer& placer,
                                              Stmts& lets) {
  if (buffer->scope != Scope::global && buffer->scope != Scope::shared) return std::nullopt;
  std::vector<Expr> indices;
  for (const Expr& index : given) {
    if (body_.mentions_values(index) || body_.is_written(index)) {
      add_once(obstacles_, fmt::format("where `{}` is accessed is computed in the loop", buffer->name));
      return std::nullopt;
    }
    indices.push_back(ir::cast(placer.rewrite(index), ir::kInt32));
  }
  if (!body_.may_move_together(buffer)) {
    add_once(obstacles_, fmt::format("iterations read what others write to `{}`", buffer->name));
    return std::nullopt;
  }
  Stmts reads;
  indices = with_named_loads(indices, vars_[0], span(), reads);
  VectorChoice choice = vector_access({lowering_.facts, lowering_.inference.tiles}, buffer, indices, vars_[0], lanes_);
  if (choice.vector) {
    lets.insert(lets.end(), reads.begin(), reads.end());
    add_once(widths_, fmt::format("{} by {} bytes", buffer->name, choice.vector->elements * buffer->type.bytes()));
  }
  if (!choice.obstacle.empty()) add_once(obstacles_, std::move(choice.obstacle));
  return std::move(choice.vector);
}

// Why threads have no neighbours that they could move at once.
void LoopLowering::note_obstacles() {
  if (!body_.is_straight()) add_once(obstacles_, "it does more than compute and store");
  for (const Use& use : uses_of(stmt_)) {
    if (!is_seen_by_others(*use.buffer) || std::any_of(use.indices.begin(), use.indices.end(), ir::has_loads)) continue;
    VectorChoice choice = vector_access({lowering_.facts, lowering_.inference.tiles}, use.buffer, use.indices,
                                        loop_.vars.back(), kAccessBytes);
    if (!choice.obstacle.empty()) add_once(obstacles_, std::move(choice.obstacle));
  }
  if (obstacles_.empty())
    obstacles_ = {"no thread has neighbours along an axis, all of them or none of them iterations"};
}

// Why threads copy what TMA might be expected to; stores of whole tiles report that themselves.
std::string LoopLowering::tma_obstacle(const Buffer& from, const Buffer& to) const {
  if (!lowering_.inference.machine.has_tma || to->scope == from->scope) return "";
  const Buffer& inside = from->scope == Scope::global ? to : from;
  if (inside == from && to->scope != Scope::global) return "";
  if (inside->scope != Scope::shared) return fmt::format("`{}` is in registers", inside->name);
  return inside == to ? "it does not run ahead in a pipelined loop: threads would wait for it at once" : "";
}

// Loops over memory alone are worth a word.
void LoopLowering::decide() {
  const Buffer* from = nullptr;
  std::vector<Buffer> memory;
  const auto note = [&](const Buffer& buffer) {
    const bool counts = buffer->scope == Scope::global || buffer->scope == Scope::shared;
    if (counts && std::find(memory.begin(), memory.end(), buffer) == memory.end()) memory.push_back(buffer);
  };
  ir::walk(
      loop_.body,
      [&](const Stmt& part) {
        if (const auto* store = ir::as<ir::Store>(part)) note(store->buffer);
      },
      [&](const Expr& part) {
        if (const auto* load = ir::as<ir::Load>(part)) note(load->buffer);
      });
  if (memory.empty()) return;
  const Stmts& body = body_.statements();
  const auto* store = body.size() == 1 ? ir::as<ir::Store>(body[0]) : nullptr;
  if (store != nullptr) {
    Expr value = store->value;
    while (const auto* cast = ir::as<ir::Cast>(value)) value = cast->value;
    if (const auto* load = ir::as<ir::Load>(value)) from = &load->buffer;
  }
  std::vector<std::string> extents;
  for (const int64_t extent : fragment_.shape()) extents.push_back(std::to_string(extent));
  Decision decision{span(),
                    from ? name_of_copy(*from, store->buffer) : fmt::format("loop over {}", fmt::join(extents, " x ")),
                    widths_.empty() ? "element by element" : fmt::format("{}", fmt::join(widths_, ", ")),
                    {}};
  if (!linear_)
    obstacles_ = {"registers of its fragments follow no regular order"};
  else if (lanes_ == 1 && memory.size() > held_.size())
    note_obstacles();
  for (std::string& obstacle : obstacles_) decision.obstacles.push_back("no wider: " + std::move(obstacle));
  if (!matrices_.obstacle.empty()) decision.obstacles.push_back("not stmatrix: " + matrices_.obstacle);
  const std::string why = from ? tma_obstacle(*from, store->buffer) : "";
  if (!why.empty()) decision.obstacles.push_back("not TMA: " + why);
  lowering_.decisions.push_back(std::move(decision));
}

VectorMove LoopLowering::moved(const Vector& vector, bool stores) {
  const int64_t rounds = loads_first_ && !stores ? rounds_ : 1;
  const Expr place = rounds > 1 ? place_of_round(lanes_, 1) : ir::int_imm(0);
  return {vector, lowering_.local(vector.buffer->name + "_v", vector.buffer->type, lanes_ * rounds), place};
}

void LoopLowering::in_lanes(const Indices& at, Stmts& before, Stmts& out) {
  const bool straight = body_.is_straight();
  if (!straight) add_once(obstacles_, "it does more than compute and store");
  Placer placer(*this, at);
  const Expr lane = ir::var_ref(vars_[0]);
  std::map<std::string, VectorMove> loads;
  Stmts after;
  const auto load_of = [&](const Expr& part) {
    const auto* load = ir::as<ir::Load>(part);
    if (load == nullptr) return;
    const std::string use = fmt::format("{} {}", static_cast<const void*>(load->buffer.get()), key(load->indices));
    auto found = loads.find(use);
    if (found == loads.end()) {
      const auto vector = vector_of(load->buffer, load->indices, placer, before);
      if (!vector) return;
      found = loads.emplace(use, moved(*vector, false)).first;
      for (int64_t first = 0; first < lanes_; first += vector->elements)
        load_vector(lowering_, found->second, first, span(), before);
    }
    const VectorMove& move = found->second;
    placer.loads.emplace(part.get(), ir::load(move.registers, {plus(move.place, lane)}, part->span));
  };
  for (const Stmt& stmt : straight ? body_.statements() : Stmts{}) {
    ir::walk(
        stmt, [](const Stmt&) {}, load_of);
    const auto* store = ir::as<ir::Store>(stmt);
    const auto* sum = ir::as<ir::Atomic>(stmt);
    std::optional<Vector> vector;
    if (store && !held_.contains(stmt.get())) vector = vector_of(store->buffer, store->indices, placer, after);
    if (sum) vector = vector_of(sum->element.buffer, sum->element.start, placer, after);
    if (!vector) continue;
    const VectorMove move = moved(*vector, true);
    placer.stores.emplace(stmt.get(), move.registers);
    const auto write_vector = sum ? add_vector : store_vector;
    for (int64_t first = 0; first < lanes_; first += vector->elements)
      write_vector(lowering_, move, first, first_, span(), after);
  }
  placer.lane = lane;
  Stmts lanes;
  for (const Stmt& stmt : body_.statements()) lanes.push_back(placer.rewrite(stmt));
  out.push_back(unrolled(vars_[0], lanes_, std::move(lanes), span()));
  out.insert(out.end(), after.begin(), after.end());
}

}  // namespace

void lower_parallel(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  if (is_async_gather(stmt)) return lower_async_copy(lowering, stmt, out);
  const auto found = lowering.inference.loops.find(stmt.get());
  if (found == lowering.inference.loops.end()) return lower_strided(lowering, stmt, out);
  LoopLowering(lowering, stmt, found->second).run(out);
}

}  // namespace tilepilot::targets::gpu
