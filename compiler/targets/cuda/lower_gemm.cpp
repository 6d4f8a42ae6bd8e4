// GEMMs: operands from shared memory by ldmatrix where it can, else element by element, into the registers
// that the instruction wants; one instruction an atom. Without a tensor-core instruction, multiply-adds.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "compiler/ir/visit.h"
#include "compiler/targets/cuda/split_precision_gemm.h"
#include "compiler/targets/cuda/target_lowering.h"
#include "compiler/targets/gpu/lower/vectors.h"
#include "compiler/targets/gpu/machine/machine.h"

namespace tilepilot::targets::cuda {

using namespace gpu;
using ir::BinaryOp;
using ir::Buffer;
using ir::Expr;
using ir::Scope;
using ir::Stmt;
using Stmts = Lowering::Stmts;

namespace {

Expr sum(const Expr& a, const Expr& b) { return plus(ir::cast(a, ir::kInt32), b); }

// One of the two matrices that are multiplied. `outer`: the axis that C has too; rows of A, columns of B.
struct Operand {
  const ir::Region& region;
  bool is_a;
  bool outer_first;           // as stored: [outer, k] rather than [k, outer]
  layout::Fragment fragment;  // of one atom, [m, k] or [k, n]
  int64_t outer, k;           // extents of one atom
  int64_t tiles;              // atoms of a warp along the outer axis
  Buffer registers;           // [step that is held, tile] of an atom's, or of the whole fragment
};

class GemmLowering {
 public:
  GemmLowering(Lowering& lowering, const Stmt& stmt)
      : lowering_(lowering),
        stmt_(stmt),
        gemm_(*ir::as<ir::Gemm>(stmt)),
        plan_(lowering.inference.gemms.at(stmt.get())) {}

  void run(Stmts& out) {
    if (gemm_.clear_accumulator) out.push_back(cleared(lowering_, accumulator(), span()));
    if (plan_.atom == nullptr) decide("multiply-adds", "no tensor cores: " + plan_.reason);
    plan_.atom == nullptr ? by_threads(out) : plan_.splits ? by_parts(out) : by_atoms(out);
  }

 private:
  Lowering& lowering_;
  const Stmt& stmt_;
  const ir::Gemm& gemm_;
  const GemmPlan& plan_;
  Expr lane_, warp_m_, warp_n_;

  Span span() const { return stmt_->span; }
  void decide(std::string chosen, std::string obstacle) {
    lowering_.decisions.push_back({span(), "gemm into " + gemm_.c.buffer->name, std::move(chosen), {}});
    if (!obstacle.empty()) lowering_.decisions.back().obstacles.push_back(std::move(obstacle));
    if (!plan_.wgmma_obstacle.empty())
      lowering_.decisions.back().obstacles.push_back("not wgmma: " + plan_.wgmma_obstacle);
  }
  const Buffer& accumulator() const { return lowering_.places.at(gemm_.c.buffer.get()); }

  // `steps`: how many are held at a time.
  Operand operand(bool is_a, int64_t steps = 1) {
    const layout::Atom& atom = *plan_.atom;
    const ir::Region& region = is_a ? gemm_.a : gemm_.b;
    Operand result{region,
                   is_a,
                   is_a ? !gemm_.transpose_a : gemm_.transpose_b,
                   is_a ? layout::a_fragment(atom) : layout::b_fragment(atom),
                   is_a ? atom.m : atom.n,
                   atom.k,
                   is_a ? plan_.tiles_m() : plan_.tiles_n(),
                   nullptr};
    if (region.buffer->scope == Scope::fragment)
      result.registers = lowering_.places.at(region.buffer.get());
    else
      result.registers =
          lowering_.local(region.buffer->name + (is_a ? "_a" : "_b"), region.buffer->type, steps * held(result));
    return result;
  }
  // Registers of a step.
  static int64_t held(const Operand& operand) { return operand.tiles * operand.fragment.register_count(); }

  void find_warp(Stmts& out) {
    const Expr thread = lowering_.thread_number();
    const int64_t warps = plan_.warps_m * plan_.warps_n;
    lane_ = lowering_.let("lane", remainder(thread, 32), 32, span(), out);
    const Expr warp = lowering_.let("warp", quotient(thread, 32), warps, span(), out);
    warp_m_ = lowering_.let("warp_m", remainder(warp, plan_.warps_m), plan_.warps_m, span(), out);
    warp_n_ = lowering_.let("warp_n", quotient(warp, plan_.warps_m), plan_.warps_n, span(), out);
  }

  void by_atoms(Stmts& out) {
    const layout::Atom& atom = *plan_.atom;
    decide(fmt::format("mma m{}n{}k{}, warps {} x {}", atom.m, atom.n, atom.k, plan_.warps_m, plan_.warps_n), "");
    find_warp(out);
    const Operand a = operand(true), b = operand(false);
    const ir::Var step = lowering_.variable("step", plan_.steps());
    Stmts body;
    fetch(a, ir::var_ref(step), ir::int_imm(0), body);
    fetch(b, ir::var_ref(step), ir::int_imm(0), body);
    const ir::Var m = lowering_.variable("m", a.tiles), n = lowering_.variable("n", b.tiles);
    const int64_t held = layout::c_fragment(atom).register_count();
    const Expr c = plus(times(ir::var_ref(m), b.tiles * held), times(ir::var_ref(n), held));
    const Stmt product = call(fmt::format("mma_m{}n{}k{}", atom.m, atom.n, atom.k),
                              {element(accumulator(), {c}, span()), of_tile(a, ir::var_ref(m), ir::var_ref(step)),
                               of_tile(b, ir::var_ref(n), ir::var_ref(step))},
                              span());
    body.push_back(unrolled(m, a.tiles, {unrolled(n, b.tiles, {product}, span())}, span()));
    out.push_back(unrolled(step, plan_.steps(), std::move(body), span()));
  }

  // Steps whose operands are held at a time, as they are and their low parts: what registers there are for.
  int64_t steps_together(int64_t of_step) const {
    const int64_t limit = registers_of_thread(lowering_.threads) - kOverheadOfWarpParts;
    int64_t together = plan_.steps_together();
    while (together > 1 && plan_.c.register_count() + 2 * together * of_step > limit) together /= 2;
    return together;
  }

  // An operand's parts: [step that is held, tile] of an atom's registers.
  struct Parts {
    Buffer high, low;
  };

  // 3xTF32. Some steps are summed on their own, then added to C: tensor cores round sums towards
  // zero, which must not happen at every step of a long sum.
  void by_parts(Stmts& out) {
    decide(fmt::format("mma m{}n{}k{} of parts of float32, warps {} x {}", plan_.atom->m, plan_.atom->n, plan_.atom->k,
                       plan_.warps_m, plan_.warps_n),
           "");
    find_warp(out);
    const int64_t per_step = 4 * plan_.tiles_m() + 2 * plan_.tiles_n(), together = steps_together(per_step);
    const Operand a = operand(true, together), b = operand(false, together);
    const ir::Var round = lowering_.variable("round", plan_.steps() / together);
    const Expr first = times(ir::var_ref(round), together);
    Stmts body;
    const Parts of_a = split(a, first, together, body), of_b = split(b, first, together, body);
    const ir::Var m = lowering_.variable("m", a.tiles), n = lowering_.variable("n", b.tiles);
    const int64_t sums = layout::c_fragment(*plan_.atom).register_count();
    const Expr at_a = times(ir::var_ref(m), a.fragment.register_count()),
               at_b = times(ir::var_ref(n), b.fragment.register_count());
    const Expr c = plus(times(ir::var_ref(m), b.tiles * sums), times(ir::var_ref(n), sums));
    const Stmt product =
        call(fmt::format("split_product<{}, {}, {}>", together, held(a), held(b)),
             {element(accumulator(), {c}, span()), element(of_a.high, {at_a}, span()),
              element(of_a.low, {at_a}, span()), element(of_b.high, {at_b}, span()), element(of_b.low, {at_b}, span())},
             span());
    body.push_back(unrolled(n, b.tiles, {unrolled(m, a.tiles, {product}, span())}, span()));
    out.push_back(unrolled(round, plan_.steps() / together, std::move(body), span()));
  }

  bool is_held(const Operand& operand) const { return operand.region.buffer->scope == Scope::fragment; }

  Parts split(const Operand& operand, const Expr& first, int64_t together, Stmts& out) {
    const int64_t count = operand.fragment.register_count();
    const std::string& name = operand.region.buffer->name;
    // A fragment of the program keeps what it holds.
    const Buffer high =
        is_held(operand) ? lowering_.local(name + "_high", ir::kFloat32, together * held(operand)) : operand.registers;
    const Buffer low = lowering_.local(name + "_low", ir::kFloat32, together * held(operand));
    const ir::Var step = lowering_.variable("step", together), tile = lowering_.variable("tile", operand.tiles);
    const Expr at_step = ir::var_ref(step), at_tile = ir::var_ref(tile);
    const Expr to = plus(times(at_step, held(operand)), times(at_tile, count));
    const Expr from =
        is_held(operand) ? plus(times(at_tile, plan_.steps() * count), times(plus(first, at_step), count)) : to;
    Stmts body;
    fetch(operand, plus(first, at_step), times(at_step, held(operand)), body);
    const Stmt parts = call(
        fmt::format("split_floats<{}>", count),
        {element(high, {to}, span()), element(low, {to}, span()), element(operand.registers, {from}, span())}, span());
    body.push_back(unrolled(tile, operand.tiles, {parts}, span()));
    out.push_back(unrolled(step, together, std::move(body), span()));
    return {high, low};
  }

  // The registers of one atom's operand.
  ir::Region of_tile(const Operand& operand, const Expr& tile, const Expr& step) const {
    const int64_t count = operand.fragment.register_count();
    const Expr at =
        is_held(operand) ? plus(times(tile, plan_.steps() * count), times(step, count)) : times(tile, count);
    return element(operand.registers, {at}, span());
  }

  // Indices of an element of the operand's matrix, in the memory that it lies in.
  std::vector<Expr> indices(const Operand& operand, const Expr& outer, const Expr& k) const {
    std::vector<Expr> at = operand.region.start;
    const size_t rank = at.size();
    at[rank - 2] = sum(at[rank - 2], operand.outer_first ? outer : k);
    at[rank - 1] = sum(at[rank - 1], operand.outer_first ? k : outer);
    for (Expr& index : at) index = ir::cast(index, ir::kInt32);
    return at;
  }

  // The place of this warp's atoms along the outer axis.
  Expr first_of_warp(const Operand& operand) const {
    return times(operand.is_a ? warp_m_ : warp_n_, operand.tiles * operand.outer);
  }

  // `to`: the first register.
  void fetch(const Operand& operand, const Expr& step, const Expr& to, Stmts& out) {
    Decision decision{span(), fmt::format("operand {} of the GEMM", operand.region.buffer->name), "from registers"};
    if (!is_held(operand)) {
      const std::string why = not_by_matrices(operand);
      decision.chosen = why.empty() ? "ldmatrix" : "element by element";
      if (!why.empty()) decision.obstacles.push_back("not ldmatrix: " + why);
      why.empty() ? load_matrices(operand, step, to, out) : load_elements(operand, step, to, out);
    }
    lowering_.decisions.push_back(std::move(decision));
  }

  // ldmatrix reads rows of 16 bytes that start at multiples of 16 bytes; across rows only elements of 16 bits. Why it
  // cannot read an operand, "" if it can.
  std::string not_by_matrices(const Operand& operand) const {
    const int64_t bits = plan_.atom->operand_bits, piece = 128 / bits;
    if (bits > 32 || operand.k != 2 * piece) return fmt::format("elements have {} bits", bits);
    if (!operand.outer_first && bits != 16) return fmt::format("elements of {} bits are not stored along k", bits);
    const layout::SharedLayout& memory = lowering_.inference.tiles.at(operand.region.buffer.get());
    const layout::Shape& shape = memory.shape();
    if (memory.span() == layout::SwizzleSpan::none && layout::volume(shape) > shape.back() &&
        memory.offset(shape.back()) % piece != 0)
      return fmt::format("rows of {} elements are no multiple of {}", shape.back(), piece);
    const std::string moved = fmt::format("the part may start at no multiple of {} elements", piece);
    const auto start = lowering_.facts.affine(operand.region.start.back());
    if (!start || start->constant % piece != 0) return moved;
    for (const auto& term : start->terms)
      if (term.coefficient % piece != 0) return moved;
    return "";
  }

  // Four matrices at a time: of A, rows 0 to 7 and 8 to 15, then the same further along k; of B, both halves of k of 8
  // columns, then of the next 8. Lane l gives the address of row l % 8 of matrix l / 8.
  void load_matrices(const Operand& operand, const Expr& step, const Expr& first, Stmts& out) {
    const int64_t piece = 128 / plan_.atom->operand_bits, count = operand.fragment.register_count();
    const bool pairs = !operand.is_a && operand.tiles % 2 == 0;
    const int64_t together = operand.is_a ? 1 : pairs ? 2 : 1, matrices = operand.is_a || pairs ? 4 : 2;
    const ir::Var tile = lowering_.variable(operand.is_a ? "m" : "n", operand.tiles / together);
    const Expr row = remainder(lane_, 8), second = remainder(quotient(lane_, 8), 2), third = quotient(lane_, 16);
    Expr outer = plus(row, times(operand.is_a ? second : matrices == 4 ? third : ir::int_imm(0), 8));
    Expr k = times(operand.is_a ? third : second, piece);
    if (!operand.outer_first) {  // matrices are stored with k along their rows
      outer = times(operand.is_a ? second : matrices == 4 ? third : ir::int_imm(0), 8);
      k = plus(row, times(operand.is_a ? third : second, 8));
    }
    outer = plus(plus(first_of_warp(operand), times(ir::var_ref(tile), together * operand.outer)), outer);
    k = plus(times(step, operand.k), k);
    const ir::Region to = element(operand.registers, {plus(first, times(ir::var_ref(tile), together * count))}, span());
    const std::string name = fmt::format("{}<{}>", operand.outer_first ? "ldmatrix" : "ldmatrix_transposed", matrices);
    const Stmt load =
        call(name, {to, lowering_.address(operand.region.buffer, indices(operand, outer, k), span())}, span());
    out.push_back(unrolled(tile, operand.tiles / together, {load}, span()));
  }

  void load_elements(const Operand& operand, const Expr& step, const Expr& first, Stmts& out) {
    const layout::Fragment& fragment = operand.fragment;
    const int64_t count = fragment.register_count();
    const ir::Var tile = lowering_.variable(operand.is_a ? "m" : "n", operand.tiles),
                  reg = lowering_.variable("r", count);
    const Indices at = coordinates_of(fragment, digits_of(fragment.threads(), lane_),
                                      digits_of(fragment.registers(), ir::var_ref(reg)));
    const Expr outer =
        plus(plus(first_of_warp(operand), times(ir::var_ref(tile), operand.outer)), at[operand.is_a ? 0 : 1]);
    const Expr k = plus(times(step, operand.k), at[operand.is_a ? 1 : 0]);
    const ir::Region from = lowering_.address(operand.region.buffer, indices(operand, outer, k), span());
    const Expr place = plus(first, plus(times(ir::var_ref(tile), count), ir::var_ref(reg)));
    const Stmt move =
        ir::make_stmt(ir::Store{operand.registers, {place}, ir::load(from.buffer, from.start, span())}, span());
    out.push_back(unrolled(tile, operand.tiles, {unrolled(reg, count, {move}, span())}, span()));
  }

  // All elements of C that a thread holds, in another type.
  void move_registers(const Buffer& from, const Buffer& to, Stmts& out) {
    const int64_t count = plan_.c.register_count();
    const ir::Var r = lowering_.variable("r", count);
    const Expr value = ir::cast(ir::load(from, {ir::var_ref(r)}, span()), to->type, span());
    const Stmt move = ir::make_stmt(ir::Store{to, {ir::var_ref(r)}, value}, span());
    Stmts body{move};
    if (plan_.c.needs_guard()) {  // places without an element have no value
      const Indices at = coordinates_of(plan_.c, lowering_.thread_digits(plan_.c.threads(), span(), out),
                                        digits_of(plan_.c.registers(), ir::var_ref(r)));
      const Expr inside = is_in_tile(plan_.c, at, span());
      body = {ir::make_stmt(ir::If{inside, move, nullptr}, span())};
    }
    out.push_back(unrolled(r, count, std::move(body), span()));
  }

  // An operand as a thread reads it: element by element, or several steps of k at once, which lie side by side.
  struct Read {
    Operand operand;
    Expr outer;
    std::optional<VectorMove> steps;
  };
  static constexpr int64_t kStepsAtOnce = GemmPlan::kStepsAtOnce;

  Read read_of(bool is_a, const Expr& outer, const ir::Var& step, const ir::Var& part) const {
    Read read{
        {is_a ? gemm_.a : gemm_.b, is_a, is_a ? !gemm_.transpose_a : gemm_.transpose_b, plan_.c, 1, 1, 1, nullptr},
        outer,
        std::nullopt};
    const Buffer& tile = read.operand.region.buffer;
    const bool is_last = read.operand.outer_first && tile->scope == Scope::shared && !tile->base;
    if (!is_last || !plan_.loads_steps_at_once()) return read;
    const Expr k = plus(times(ir::var_ref(step), kStepsAtOnce), ir::var_ref(part));
    VectorChoice choice = vector_access({lowering_.facts, lowering_.inference.tiles}, tile,
                                        indices(read.operand, outer, k), part, kStepsAtOnce);
    if (choice.vector && choice.vector->elements == kStepsAtOnce) read.steps = {*std::move(choice.vector), nullptr, {}};
    return read;
  }

  // Each thread its elements of C, one step of k after the other. Elements of A and B that lie side by side along k are
  // loaded together: those of B for all columns of the thread, those of A row by row.
  void by_threads(Stmts& out) {
    const layout::Fragment& c = plan_.c;
    const Indices thread = lowering_.thread_digits(c.threads(), span(), out);
    const ir::Var step = lowering_.variable("step", plan_.k), part = lowering_.variable("part", kStepsAtOnce);
    std::vector<ir::Var> vars;
    const Indices digits = lowering_.register_digits(c.registers(), vars);
    const auto& modes = c.registers().modes();
    Expr reg = ir::int_imm(0);
    int64_t weight = 1;
    for (size_t k = 0; k < digits.size(); weight *= modes[k].extent, ++k) reg = plus(reg, times(digits[k], weight));
    const Indices at = coordinates_of(c, thread, digits);
    // Sums of small floats are rounded once.
    const ir::DType stored = gemm_.c.buffer->type, type = stored.is_small_float() ? ir::kFloat32 : stored;
    const Buffer sums =
        type == stored ? accumulator() : lowering_.local(accumulator()->name + "_sum", type, c.register_count());
    if (type != stored) move_registers(accumulator(), sums, out);
    Read a = read_of(true, at[0], step, part), b = read_of(false, at[1], step, part);
    const bool together = a.steps || b.steps;
    const Expr k = together ? plus(times(ir::var_ref(step), kStepsAtOnce), ir::var_ref(part)) : Expr(ir::var_ref(step));
    // In the order of `thread_tiles`: columns in two digits, then rows.
    const int64_t columns = modes[0].extent * modes[1].extent;
    hold_steps(a, 1, ir::int_imm(0));
    hold_steps(b, columns, plus(digits[0], times(digits[1], modes[0].extent)));
    const auto value = [&](const Read& read) {
      if (read.steps)
        return ir::cast(ir::load(read.steps->registers, {plus(read.steps->place, ir::var_ref(part))}, span()), type);
      const ir::Region from =
          lowering_.address(read.operand.region.buffer, indices(read.operand, read.outer, k), span());
      return ir::cast(ir::load(from.buffer, from.start, span()), type, span());
    };
    const Expr product = ir::binary(BinaryOp::mul, value(a), value(b), span());
    const Expr total = ir::binary(BinaryOp::add, ir::load(sums, {reg}, span()), product, span());
    Stmts body{ir::make_stmt(ir::Store{sums, {reg}, total}, span())};
    if (const Expr inside = is_in_tile(c, at, span())) body = {ir::make_stmt(ir::If{inside, body[0], nullptr}, span())};
    if (together) body = {unrolled(part, kStepsAtOnce, std::move(body), span())};
    Stmts all;
    body = over_digits(vars, {0, 2}, std::move(body));
    if (a.steps) {
      load_vector(lowering_, *a.steps, 0, span(), all);
      body.insert(body.begin(), all.begin(), all.end());
    }
    all.clear();
    if (b.steps) {
      load_vector(lowering_, *b.steps, 0, span(), all);
      all = over_digits(vars, {0, 2}, std::move(all));
    }
    body = over_digits(vars, {2, vars.size()}, std::move(body));
    all.insert(all.end(), body.begin(), body.end());
    const int64_t steps = together ? plan_.k / kStepsAtOnce : plan_.k;
    out.push_back(ir::make_stmt(
        ir::For{ir::LoopKind::serial, {step}, {ir::int_imm(steps)}, 0, block(std::move(all), span())}, span()));
    if (type != stored) move_registers(sums, accumulator(), out);
  }

  // Registers for `count` vectors, and where the vector stands of the elements of C that digits name.
  void hold_steps(Read& read, int64_t count, const Expr& number) {
    if (!read.steps) return;
    const Buffer& tile = read.operand.region.buffer;
    read.steps->registers = lowering_.local(tile->name + "_v", tile->type, count * kStepsAtOnce);
    read.steps->place = times(number, kStepsAtOnce);
  }

  // Around the statements, loops over these digits of a register, the first innermost.
  Stmts over_digits(const std::vector<ir::Var>& vars, std::pair<size_t, size_t> which, Stmts body) const {
    const auto& modes = plan_.c.registers().modes();
    for (size_t k = which.first; k < which.second; ++k)
      if (modes[k].extent > 1) body = {unrolled(vars[k], modes[k].extent, std::move(body), span())};
    return body;
  }
};

// As PTX spells the types of operands.
constexpr std::pair<ir::DType, std::string_view> kOperands[] = {
    {ir::kFloat16, "f16"}, {ir::kBFloat16, "bf16"}, {ir::kFloat32, "tf32"},    {ir::kTensorFloat32, "tf32"},
    {ir::kInt8, "s8"},     {ir::kUInt8, "u8"},      {ir::kFloat8E4M3, "e4m3"}, {ir::kFloat8E5M2, "e5m2"},
};

// Whether a warp of this machine has an instruction for it. Integers and 8-bit floats of two types may be mixed.
bool multiplies(ir::DType a, ir::DType b, ir::DType c, int64_t k, const Machine& machine) {
  const auto name = [](ir::DType type) {
    const auto* row =
        std::find_if(std::begin(kOperands), std::end(kOperands), [&](const auto& r) { return r.first == type; });
    return row == std::end(kOperands) ? std::string_view("none") : row->second;
  };
  const bool sums = c == (a.is_float() ? ir::kFloat32 : ir::kInt32) || (a == ir::kFloat16 && c == ir::kFloat16);
  const bool pair = a == b || a.bits == 8;
  const std::span<const layout::Atom> all = layout::atoms();
  return sums && pair && std::any_of(all.begin(), all.end(), [&](const layout::Atom& atom) {
           const auto takes = [&](ir::DType type) { return atom.operands.find(name(type)) != std::string_view::npos; };
           return atom.threads == layout::kWarpSize && atom.m == 16 && atom.k == k && atom.operand_bits == a.bits &&
                  atom.sm <= machine.compute_capability && takes(a) && takes(b);
         });
}

}  // namespace

void lower_matrix(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  if (const auto* load = ir::as<ir::LoadMatrix>(stmt)) {
    const std::string name = fmt::format("ldmatrix{}<{}>", load->transposed ? "_transposed" : "", load->count);
    return out.push_back(call(name, {load->registers, load->row}, stmt->span));
  }
  const ir::Mma& mma = *ir::as<ir::Mma>(stmt);
  const ir::DType a = mma.a.buffer->type, b = mma.b.buffer->type, c = mma.c.buffer->type;
  // Of a row of `a` each of four lanes holds as much, and of the row eight below.
  const int64_t k = 2 * mma.a.extent.back();
  if (!multiplies(a, b, c, k, lowering.inference.machine))
    return lowering.fail(stmt->span, fmt::format("{} has no mma.sync of {} and {} into {} with rows of {}",
                                                 lowering.inference.machine.target, ir::to_string(a), ir::to_string(b),
                                                 ir::to_string(c), k));
  out.push_back(call(fmt::format("mma_m16n8k{}", k), {mma.c, mma.a, mma.b}, stmt->span));
}

void lower_gemm(Lowering& lowering, const Stmt& stmt, Stmts& out) {
  const GemmPlan& plan = lowering.inference.gemms.at(stmt.get());
  if (plan.is_wgmma()) return (plan.splits ? lower_split_precision_gemm : lower_wgmma)(lowering, stmt, out);
  GemmLowering(lowering, stmt).run(out);
}

}  // namespace tilepilot::targets::cuda
