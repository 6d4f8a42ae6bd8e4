// Parallel loops: each thread runs its iterations, register by register.
#include <fmt/format.h>

#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"
#include "compiler/layout/partition.h"
#include "compiler/targets/gpu/facts/element_copies.h"
#include "compiler/targets/gpu/facts/loop_uses.h"
#include "compiler/targets/gpu/facts/register_map.h"
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/lower/loop_lowering.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {
constexpr int64_t kMostRoundsAhead = 8;   // whose vectors are loaded before the first is used
constexpr int64_t kMostUnrolled = 32;     // iterations of a loop that could be one of the machine
constexpr int64_t kMostBytesAhead = 128;  // of single elements, each in a register
}  // namespace

void LoopLowering::run(Stmts& out) {
  thread_ = lowering_.thread_digits(fragment_.threads(), stmt_->span, out);
  replicas(out);
  find_register_maps();
  hold_matrices(out);
  write(out);
  decide();
}

void LoopLowering::write(Stmts& out) {
  const bool all = writes_own(stmt_) && !needs_one_thread(stmt_);
  if (!first_ || all) return all_registers(out);
  // Nobody needs what the others would do, or may have it done twice: then an iteration keeps nothing but what is its
  // own.
  const Expr first = std::exchange(first_, nullptr);
  Stmts once;
  all_registers(once);
  out.push_back(ir::make_stmt(ir::If{first, ir::make_stmt(ir::Block{std::move(once)}, span()), nullptr}, span()));
}

void LoopLowering::all_registers(Stmts& out) {
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

void LoopLowering::replicas(Stmts& out) {
  const Expr condition = is_first_replica(fragment_, thread_, span());
  if (!condition) return;
  const ir::Var var = ir::make_var("is_first", ir::kBool);
  out.push_back(ir::make_stmt(ir::Let{var, condition}, span()));
  first_ = ir::var_ref(var);
}

void LoopLowering::find_register_maps() {
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

LoopLowering::Map LoopLowering::linear(std::vector<int64_t> registers) {
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

Expr LoopLowering::register_of(const Buffer& buffer, const std::string& use) const {
  const auto found = by_use_.find({buffer.get(), use});
  if (found == by_use_.end()) return ir::int_imm(0);
  const Map& map = found->second;
  if (!linear_) return ir::int_imm(std::max<int64_t>(0, map.registers[static_cast<size_t>(reg_)]));
  Expr sum = ir::int_imm(map.start);
  for (size_t k = 0; k < digits_.size(); ++k) sum = plus(sum, times(digits_[k], map.steps[k]));
  return sum;
}

Stmt LoopLowering::around(const ir::Var& var, int64_t count, Stmts body) const {
  const bool writes_out = names_fragments_ || count <= kMostUnrolled;
  return ir::make_stmt(ir::For{writes_out ? ir::LoopKind::unrolled : ir::LoopKind::serial,
                               {var},
                               {ir::int_imm(count)},
                               0,
                               ir::make_stmt(ir::Block{std::move(body)}, span())},
                       span());
}

void LoopLowering::iteration(Stmts& loads, Stmts& out) {
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

Expr LoopLowering::at_place(const ir::Var& var, const Indices& at) const {
  const auto found = std::find(loop_.vars.begin(), loop_.vars.end(), var);
  if (found == loop_.vars.end()) return nullptr;
  return ir::cast(at[static_cast<size_t>(found - loop_.vars.begin())], var->type);
}

std::string LoopLowering::key(const std::vector<Expr>& indices) {
  std::string text;
  for (const Expr& index : indices) text += ir::to_text(index) + ";";
  return text;
}

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

void lower_parallel(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  if (is_async_gather(stmt)) return lower_async_copy(lowering, stmt, out);
  const auto found = lowering.inference.loops.find(stmt.get());
  if (found == lowering.inference.loops.end()) return lower_strided(lowering, stmt, out);
  LoopLowering(lowering, stmt, found->second).run(out);
}

}  // namespace tilepilot::targets::gpu
