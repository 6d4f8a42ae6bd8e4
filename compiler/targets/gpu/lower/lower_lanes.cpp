// What the lanes of a parallel loop load and store as vectors, and why they have no wider ones.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/ir/effects.h"
#include "compiler/ir/search.h"
#include "compiler/targets/gpu/facts/element_copies.h"
#include "compiler/targets/gpu/facts/loop_uses.h"
#include "compiler/targets/gpu/facts/replicas.h"
#include "compiler/targets/gpu/lower/loop_lowering.h"

namespace tilepilot::targets::gpu {

using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using Stmts = Lowering::Stmts;

// The indices in the lanes, with names for what they load, added to `reads`; none if lanes may not move this together.
std::optional<std::vector<Expr>> LoopLowering::lane_indices(const Buffer& buffer, const std::vector<Expr>& given,
                                                            Placer& placer, Stmts& reads) {
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
  return with_named_loads(indices, vars_[0], span(), reads);
}

void LoopLowering::note_width(const Buffer& buffer, int64_t elements) {
  add_once(widths_, fmt::format("{} by {} bytes", buffer->name, elements * buffer->type.bytes()));
}

// What is stored or added there as a vector, if it may be one.
std::optional<Vector> LoopLowering::vector_of(const Buffer& buffer, const std::vector<Expr>& given, Placer& placer,
                                              Stmts& lets) {
  Stmts reads;
  const auto indices = lane_indices(buffer, given, placer, reads);
  if (!indices) return std::nullopt;
  VectorChoice choice = vector_access({lowering_.facts, lowering_.inference.tiles}, buffer, *indices, vars_[0], lanes_);
  if (choice.vector) {
    lets.insert(lets.end(), reads.begin(), reads.end());
    note_width(buffer, choice.vector->elements);
  }
  if (!choice.obstacle.empty()) add_once(obstacles_, std::move(choice.obstacle));
  return std::move(choice.vector);
}

// What is loaded from there as a vector, if it may be one, or around what other lanes load.
LoopLowering::LaneAccess LoopLowering::access_of(const ir::Load& load, Placer& placer, Stmts& lets) {
  const Buffer& buffer = load.buffer;
  Stmts reads;
  const auto indices = lane_indices(buffer, load.indices, placer, reads);
  if (!indices) return {};
  const Surroundings around{lowering_.facts, lowering_.inference.tiles};
  VectorChoice choice = vector_access(around, buffer, *indices, vars_[0], lanes_);
  LaneAccess access{std::move(choice.vector), lane_window(around, buffer, *indices, vars_[0], lanes_)};
  const int64_t elements =
      std::max(access.vector ? access.vector->elements : 1, access.window ? access.window->elements : 1);
  if (elements > 1) {
    lets.insert(lets.end(), reads.begin(), reads.end());
    note_width(buffer, elements);
  }
  const bool is_widest = elements * buffer->type.bytes() == kAccessBytes;
  if (!choice.obstacle.empty() && !is_widest) add_once(obstacles_, std::move(choice.obstacle));
  return access;
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

VectorMove LoopLowering::moved(const Vector& vector, int64_t elements, bool stores) {
  const int64_t rounds = loads_first_ && !stores ? rounds_ : 1;
  const Expr place = rounds > 1 ? place_of_round(elements, 1) : ir::int_imm(0);
  return {vector, lowering_.local(vector.buffer->name + "_v", vector.buffer->type, elements * rounds), place};
}

// The loads of each place, which may be named several times, that are vectors.
std::vector<LoopLowering::LaneLoads> LoopLowering::lane_loads(Placer& placer, Stmts& before) {
  std::vector<LaneLoads> all;
  std::map<std::string, size_t> known;
  const auto load_of = [&](const Expr& part) {
    const auto* load = ir::as<ir::Load>(part);
    if (load == nullptr) return;
    const std::string use = fmt::format("{} {}", static_cast<const void*>(load->buffer.get()), key(load->indices));
    const auto [found, is_new] = known.emplace(use, all.size());
    if (is_new) all.push_back({{}, access_of(*load, placer, before)});
    all[found->second].parts.push_back(part);
  };
  for (const Stmt& stmt : body_.statements())
    ir::walk(
        stmt, [](const Stmt&) {}, load_of);
  std::erase_if(all, [](const LaneLoads& loads) { return !loads.access.vector && !loads.access.window; });
  return all;
}

// Whether the elements that no lane takes are as they are: others may write them meanwhile.
bool LoopLowering::is_left_alone(const Buffer& buffer) const {
  const Stmt& where = buffer->scope == Scope::global ? lowering_.kernel.body : loop_.body;
  return !ir::memory_effects_of(where).writes.contains(ir::memory_of(buffer));
}

// Overlapping windows at once. Lanes that load their own elements need no window for that alone.
void LoopLowering::load_windows(std::vector<LaneLoads>& all, Placer& placer, Stmts& before) {
  const auto begin = [](const LaneWindow& window) { return std::pair(window.base, window.origin + window.first); };
  std::vector<LaneLoads*> sorted;
  for (LaneLoads& loads : all)
    if (loads.access.window) sorted.push_back(&loads);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const LaneLoads* a, const LaneLoads* b) {
    return begin(*a->access.window) < begin(*b->access.window);
  });
  for (size_t k = 0, next = 0; k < sorted.size(); k = next) {
    LaneWindow group = *sorted[k]->access.window;
    std::vector<const LaneWindow*> members{&*sorted[k]->access.window};
    for (next = k + 1; next < sorted.size(); ++next) {
      const auto both = joined(group, *sorted[next]->access.window);
      if (!both) break;
      group = *both;
      members.push_back(&*sorted[next]->access.window);
    }
    const auto& vector_of_one = sorted[k]->access.vector;
    if (next == k + 1 && vector_of_one && group.loads() * vector_of_one->elements >= lanes_) continue;
    if (!is_left_alone(group.buffer) && !is_all_taken(group, members)) continue;
    Vector vector{group.buffer, group.start, group.elements, nullptr};
    vector.start.back() = plus(vector.start.back(), ir::int_imm(group.first));
    const VectorMove move = moved(vector, group.count, false);
    for (int64_t first = 0; first < group.count; first += group.elements)
      load_vector(lowering_, move, first, span(), before);
    for (; k < next; ++k) {
      const LaneWindow& own = *sorted[k]->access.window;
      const Expr place = place_in_window(own.taken, group.first + group.origin - own.origin, vars_[0]);
      for (const Expr& part : sorted[k]->parts)
        placer.loads.emplace(part.get(), ir::load(move.registers, {plus(move.place, place)}, part->span));
      sorted[k]->access = {};
    }
  }
}

// Stores that together fill vectors.
void LoopLowering::store_windows(Placer& placer, Stmts& after) {
  struct Part {
    const Stmt* stmt;
    LaneWindow window;
    Stmts reads;
  };
  std::vector<Part> parts;
  for (const Stmt& stmt : body_.statements()) {
    const auto* store = ir::as<ir::Store>(stmt);
    if (store == nullptr || held_.contains(stmt.get())) continue;
    Stmts reads;
    const auto indices = lane_indices(store->buffer, store->indices, placer, reads);
    if (!indices) continue;
    const Surroundings around{lowering_.facts, lowering_.inference.tiles};
    auto window = lane_window(around, store->buffer, *indices, vars_[0], lanes_);
    if (window) parts.push_back({&stmt, std::move(*window), std::move(reads)});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::pair(a.window.base, a.window.origin + a.window.first) <
           std::pair(b.window.base, b.window.origin + b.window.first);
  });
  for (size_t k = 0, next = 0; k < parts.size(); k = next) {
    LaneWindow group = parts[k].window;
    std::vector<const LaneWindow*> members{&parts[k].window};
    for (next = k + 1; next < parts.size(); ++next) {
      const auto both = joined(group, parts[next].window);
      if (!both) break;
      group = *both;
      members.push_back(&parts[next].window);
    }
    if (members.size() < 2 || !is_covered(group, members)) continue;
    Vector vector{group.buffer, group.start, group.elements, nullptr};
    vector.start.back() = plus(vector.start.back(), ir::int_imm(group.first));
    const VectorMove move = moved(vector, group.count, true);
    note_width(group.buffer, group.elements);
    after.insert(after.end(), parts[k].reads.begin(), parts[k].reads.end());
    for (int64_t first = 0; first < group.count; first += group.elements)
      store_vector(lowering_, move, first, first_, span(), after);
    for (; k < next; ++k) {
      const LaneWindow& own = parts[k].window;
      const Expr place = place_in_window(own.taken, group.first + group.origin - own.origin, vars_[0]);
      placer.stores.insert({parts[k].stmt->get(), {move.registers, place}});
    }
  }
}

void LoopLowering::in_lanes(const Indices& at, Stmts& before, Stmts& out) {
  const bool straight = body_.is_straight();
  if (!straight) add_once(obstacles_, "it does more than compute and store");
  Placer placer(*this, at);
  const Expr lane = ir::var_ref(vars_[0]);
  Stmts after;
  std::vector<LaneLoads> loads = straight ? lane_loads(placer, before) : std::vector<LaneLoads>{};
  load_windows(loads, placer, before);
  for (const LaneLoads& own : loads) {
    if (!own.access.vector) continue;
    const VectorMove move = moved(*own.access.vector, lanes_, false);
    for (int64_t first = 0; first < lanes_; first += own.access.vector->elements)
      load_vector(lowering_, move, first, span(), before);
    for (const Expr& part : own.parts)
      placer.loads.emplace(part.get(), ir::load(move.registers, {plus(move.place, lane)}, part->span));
  }
  if (straight) store_windows(placer, after);
  for (const Stmt& stmt : straight ? body_.statements() : Stmts{}) {
    if (placer.stores.contains(stmt.get())) continue;
    const auto* store = ir::as<ir::Store>(stmt);
    const auto* sum = ir::as<ir::Atomic>(stmt);
    std::optional<Vector> vector;
    if (store && !held_.contains(stmt.get())) vector = vector_of(store->buffer, store->indices, placer, after);
    if (sum) vector = vector_of(sum->element.buffer, sum->element.start, placer, after);
    if (!vector) continue;
    const VectorMove move = moved(*vector, lanes_, true);
    placer.stores.insert({stmt.get(), {move.registers, lane}});
    const auto write_vector = sum ? add_vector : store_vector;
    for (int64_t first = 0; first < lanes_; first += vector->elements)
      write_vector(lowering_, move, first, first_, span(), after);
  }
  Stmts lanes;
  for (const Stmt& stmt : body_.statements()) lanes.push_back(placer.rewrite(stmt));
  out.push_back(unrolled(vars_[0], lanes_, std::move(lanes), span()));
  out.insert(out.end(), after.begin(), after.end());
}

}  // namespace tilepilot::targets::gpu
