#include "tests/ir/random_program.h"

#include <algorithm>
#include <array>

namespace tilepilot::ir::testing {
namespace {

constexpr std::array kNames{"x", "i", "acc", "max", "tile", "x", "copy", "value_1", "i"};
constexpr const char* kBlockNames[] = {"bx", "by", "bz"};
constexpr const char* kThreadNames[] = {"tx", "ty", "tz"};
const std::vector<int64_t> kTwoRoles{256};

int64_t size_of(const Buffer& buffer) {
  int64_t result = 1;
  for (const Expr& extent : buffer->shape) result *= *constant_int(extent);
  return result;
}

}  // namespace

Span RandomProgram::span() { return {0, uint32_t(pick(100)), uint32_t(100 + pick(100))}; }

Buffer RandomProgram::buffer(std::string name, DType type, Scope scope, std::vector<Expr> shape) {
  if (type.is_nibble() && scope == Scope::global) {
    const int64_t last = *constant_int(shape.back());
    shape.back() = int_imm(last + last % 2);
  }
  return std::make_shared<BufferData>(BufferData{std::move(name), type, scope, std::move(shape), {}, span(), nullptr});
}

Buffer RandomProgram::tile(std::string name, std::vector<int64_t> shape) {
  std::vector<Expr> extents;
  for (const int64_t n : shape) extents.push_back(int_imm(n));
  return buffer(std::move(name), dtype(), tile_scope(), std::move(extents));
}

// Kernels -------------------------------------------------------------------------------------------------------------

void RandomProgram::choose_grid(Kernel& kernel) {
  static const std::vector<std::vector<int64_t>> kThreads{{1}, {33}, {96}, {100}, {8, 4}, {32}, {7, 3}, {4, 2, 2}};
  const bool one_block = one_in(3);
  for (int k = 0, count = 1 + pick(3); k < count; ++k) {
    kernel.block_vars.push_back(make_var(kBlockNames[k], kInt32));
    Expr extent = int_imm(one_block ? 1 : 1 + pick(3));
    const Expr symbolic = binary(BinaryOp::floor_div, binary(BinaryOp::add, var_ref(ints_[0]), int_imm(3)), int_imm(4));
    if (k == 0 && !one_block && one_in(2)) extent = symbolic;
    kernel.grid.push_back(extent);
  }
  kernel.threads = one_in(10) ? kTwoRoles : any(kThreads);
  if (!options_.threads || kernel.threads == kTwoRoles || one_in(3)) return;
  for (size_t axis = 0; axis < kernel.threads.size(); ++axis)
    kernel.thread_vars.push_back(make_var(kThreadNames[axis], kInt32));
}

void RandomProgram::choose_buffers(const Kernel& kernel) {
  const bool one_block =
      std::all_of(kernel.grid.begin(), kernel.grid.end(), [](const Expr& extent) { return constant_int(extent) == 1; });
  readable_.clear();
  writable_ = {parts_[0]};
  for (const Buffer& b : globals_) {
    if (b == parts_[0]) continue;
    const bool may_write = one_block || is_part(b);
    (may_write && !one_in(3) ? writable_ : readable_).push_back(b);
  }
  for (auto* list : {&tiles_, &lanes_, &own_, &bins_, &operands_, &views_, &joint_, &held_}) list->clear();
  joint_ops_.clear();
  for (int k = 0; k < 4; ++k) {
    std::vector<int64_t> shape;
    for (int axis = 0, rank = 1 + pick(3); axis < rank; ++axis) shape.push_back(1 + pick(8));
    tiles_.push_back(tile(kNames[size_t(pick(kNames.size()))], shape));
  }
  for (const DType type : {kInt32, kFloat64, kUInt16})
    bins_.push_back(buffer("bins", type, Scope::shared, {int_imm(1 + pick(9))}));
  for (const DType type : {kFloat32, kInt32, kInt16}) {
    if (!options_.iterations) break;
    std::vector<Expr> shape{int_imm(1 + pick(9))};
    if (one_in(2)) shape.push_back(int_imm(1 + pick(5)));
    joint_.push_back(buffer("joint", type, one_in(2) ? Scope::shared : Scope::fragment, shape));
  }
  if (!has_threads()) return;
  int64_t all = 1;
  for (const int64_t n : kernel.threads) all *= n;
  for (int k = 0; k < 3; ++k) {
    lanes_.push_back(buffer("lane", dtype(), Scope::shared, {int_imm(all), int_imm(1 + pick(2))}));
    own_.push_back(buffer("own", dtype(), Scope::local, {int_imm(1 + pick(5))}));
  }
  own_.push_back(buffer("apart", dtype(), Scope::fragment, {int_imm(1 + pick(3)), int_imm(2)}));
  if (options_.held) add_held();
  tiles_.insert(tiles_.end(), lanes_.begin(), lanes_.end());
}

// The same memory by one axis, of integers sometimes by other integers.
Buffer RandomProgram::view_of(const Buffer& base) {
  constexpr std::array kIntegers{kInt8, kUInt16, kInt32, kUInt64, kUInt8, kInt4, kUInt4};
  const int64_t bits = size_of(base) * base->type.bits;
  const DType other = kIntegers[size_t(pick(kIntegers.size()))];
  const bool by_others = base->type.is_int() && bits % other.bits == 0;
  const DType type = by_others ? other : base->type;
  const std::vector<Expr> shape =
      options_.held && !type.is_nibble() ? shape_of(bits / type.bits) : std::vector<Expr>{int_imm(bits / type.bits)};
  return std::make_shared<BufferData>(BufferData{"view", type, base->scope, shape, {}, span(), base});
}

void RandomProgram::add_views() {
  for (auto* list : {&tiles_, &own_, &readable_}) {
    if (list->empty() || !one_in(2)) continue;
    const Buffer base = any(*list);
    const bool constant =
        std::all_of(base->shape.begin(), base->shape.end(), [](const Expr& e) { return constant_int(e); });
    if (!constant || !base->strides.empty() || is_part(base)) continue;
    if (base->type.is_nibble() && *constant_int(base->shape.back()) % 2 != 0) continue;
    views_.push_back(view_of(base));
    list->push_back(views_.back());
  }
}

std::vector<Buffer> RandomProgram::allocations() const {
  std::vector<Buffer> result;
  for (const auto* list : {&tiles_, &own_, &bins_, &joint_, &operands_}) {
    for (const Buffer& b : *list) {
      if (!b->base && std::find(result.begin(), result.end(), b) == result.end()) result.push_back(b);
    }
  }
  result.insert(result.end(), views_.begin(), views_.end());
  return result;
}

// What a buffer holds at first. Fragments of threads' own are written by each thread.
Stmt RandomProgram::initial(const Buffer& buffer) {
  const Expr value = buffer->type.is_float()  ? float_imm(0.5, buffer->type)
                     : buffer->type.is_bool() ? bool_imm(false)
                                              : int_imm(1, buffer->type);
  const auto is_in = [&](const std::vector<Buffer>& list) {
    return std::find(list.begin(), list.end(), buffer) != list.end();
  };
  const bool apart = buffer->scope == Scope::fragment && is_in(own_) && !is_in(held_);
  if (!apart) return make_stmt(Fill{whole(buffer), value}, span());
  std::vector<Expr> at;
  std::vector<Var> vars;
  for (size_t k = 0; k < buffer->rank(); ++k) {
    vars.push_back(make_var("f", kInt32));
    at.push_back(var_ref(vars.back()));
  }
  Stmt result = make_stmt(Store{buffer, at, value}, span());
  for (size_t k = vars.size(); k-- > 0;)
    result = make_stmt(For{LoopKind::serial, {vars[k]}, {buffer->shape[k]}, 0, result}, span());
  return result;
}

// Elements of each thread's own arrays, of the last ones, which hold what threads combined. Chosen without chance, so
// that what it takes part in does not depend on this.
void RandomProgram::show_own(std::vector<Stmt>& body) const {
  Expr thread = int_imm(0);
  for (size_t axis = thread_vars_.size(); axis-- > 0;)
    thread = binary(BinaryOp::add, binary(BinaryOp::mul, thread, int_imm(threads_[axis])), var_ref(thread_vars_[axis]));
  int64_t shown = 0;
  const int64_t most = *constant_int(seen_->shape.back());
  for (size_t k = own_.size(); k-- > 0;) {
    const Buffer& own = own_[k];
    for (int64_t e = 0; e < std::min<int64_t>(*constant_int(own->shape.back()), 2) && shown < most; ++e) {
      std::vector<Expr> from(own->rank() - 1, int_imm(0)), to;
      from.push_back(int_imm(e));
      for (size_t axis = 0; axis < 3; ++axis)
        to.push_back(axis < block_vars_.size() ? var_ref(block_vars_[axis]) : int_imm(0));
      to.insert(to.end(), {thread, int_imm(shown++)});
      body.push_back(make_stmt(Store{seen_, to, cast(load(own, from), seen_->type)}, {}));
    }
  }
}

// The block's part, an element for each iteration.
Stmt RandomProgram::outcome(const Buffer& buffer) {
  uses_.clear();
  const Var i = make_var("i", kInt32);
  std::vector<Expr> at;
  for (size_t axis = 0; axis < 3; ++axis)
    at.push_back(axis < block_vars_.size() ? var_ref(block_vars_[axis]) : int_imm(0));
  at.push_back(var_ref(i));
  ints_.push_back(i);
  const Expr value = as_who(Who::block, [&] { return approximate_expr(buffer->type, 3); });
  ints_.pop_back();
  const Stmt body = make_stmt(Block{{make_stmt(Store{buffer, at, value}, span())}}, span());
  return make_stmt(For{LoopKind::parallel, {i}, {buffer->shape.back()}, 0, body}, span());
}

Kernel RandomProgram::kernel() {
  const auto ints = ints_;
  Kernel result;
  result.span = span();
  choose_grid(result);
  threads_ = result.threads;
  block_vars_ = result.block_vars;
  thread_vars_ = result.thread_vars;
  choose_buffers(result);
  add_views();
  uses_.clear();
  updates_.clear();
  ints_.insert(ints_.end(), block_vars_.begin(), block_vars_.end());
  ints_.insert(ints_.end(), thread_vars_.begin(), thread_vars_.end());
  for (const Var& var : thread_vars_) apart_.insert(var.get());
  std::vector<Stmt> body;
  const bool has_roles = threads_ == kTwoRoles;
  if (has_roles) body.push_back(ring());
  for (int k = 0; k < options_.statements && !has_roles; ++k)
    body.push_back(has_threads() ? thread_statement(options_.depth) : statement(options_.depth));
  if (has_threads()) {
    body.push_back(sync());
    show_own(body);
  }
  // Part of what tiles hold comes to light.
  for (const Buffer& b : allocations()) {
    const bool is_tile = b->scope == Scope::shared || b->scope == Scope::fragment;
    if (!is_tile || (b->base && has_threads()) || std::find(own_.begin(), own_.end(), b) != own_.end()) continue;
    const auto out = region_with(parts_[0], whole(b).extent);
    if (out && !(b->type.is_float() && parts_[0]->type.is_int()))
      body.push_back(make_stmt(Copy{whole(b), *out, {}}, span()));
  }
  for (const Buffer& b : outcomes_) body.push_back(outcome(b));
  result.allocations = allocations();
  Block all;
  for (const Buffer& b : result.allocations) {
    if (!b->base && b->scope != Scope::barrier) all.body.push_back(initial(b));
  }
  if (has_threads()) all.body.push_back(sync());
  all.body.insert(all.body.end(), body.begin(), body.end());
  result.body = make_stmt(std::move(all), span());
  ints_ = ints;
  scalars_ = parameters_;
  return result;
}

// Gives workspaces contents.
Kernel RandomProgram::first_kernel(const Program& program) {
  Kernel result;
  result.span = span();
  result.block_vars = {make_var("b", kInt32)};
  result.grid = {int_imm(1)};
  Block body;
  for (const Buffer& b : program.workspaces) body.body.push_back(initial(b));
  result.body = make_stmt(std::move(body), span());
  return result;
}

// Programs ------------------------------------------------------------------------------------------------------------

void RandomProgram::make_globals(Program& program) {
  const Var m = make_var("m", kInt32);
  program.symbols.push_back(m);
  globals_ = {buffer("x", kFloat32, Scope::global, {var_ref(m), int_imm(16)})};
  for (int k = 0, count = 1 + pick(3); k < count; ++k) {
    std::vector<Expr> shape;
    for (int axis = 0, rank = 1 + pick(3); axis < rank; ++axis) shape.push_back(int_imm(1 + pick(20)));
    globals_.push_back(buffer(kNames[size_t(pick(kNames.size()))], dtype(), Scope::global, shape));
  }
  const std::vector<Expr> strides{int_imm(40), int_imm(2)};
  globals_.push_back(std::make_shared<BufferData>(
      BufferData{"strided", kFloat16, Scope::global, {int_imm(8), int_imm(20)}, strides, span(), nullptr}));
  for (int k = 0; k < 2; ++k) {
    const int64_t length = one_in(2) ? 40 : 7 + pick(100);
    parts_.push_back(buffer("part", k == 0 ? kFloat32 : dtype(), Scope::global,
                            {int_imm(4), int_imm(3), int_imm(3), int_imm(length), int_imm(3)}));
  }
  for (const DType type : {kInt32, kFloat64, kUInt16, kInt64})
    totals_.push_back(buffer("total", type, Scope::global, {int_imm(1 + pick(4)), int_imm(3)}));
  globals_.insert(globals_.end(), parts_.begin(), parts_.end());
  program.parameters.assign(globals_.begin(), globals_.end());
  program.parameters.insert(program.parameters.end(), totals_.begin(), totals_.end());
  if (options_.approximate_last) {
    constexpr std::array kTypes{kFloat32, kFloat32, kFloat64, kFloat16, kBFloat16};
    for (int k = 0; k < 2; ++k) {
      const DType type = kTypes[size_t(pick(kTypes.size()))];
      const std::vector<Expr> shape{int_imm(4), int_imm(3), int_imm(3), int_imm(1 + pick(40))};
      outcomes_.push_back(buffer(kOutcome, type, Scope::global, shape));
    }
    program.parameters.insert(program.parameters.end(), outcomes_.begin(), outcomes_.end());
  }
  if (options_.iterations) {
    joint_part_ = buffer("joint", kFloat32, Scope::global, {int_imm(4), int_imm(3), int_imm(3), int_imm(1 + pick(12))});
    program.parameters.emplace_back(joint_part_);
  }
  if (options_.held) {
    where_ = buffer("where", kInt32, Scope::global, {int_imm(8)});
    program.parameters.emplace_back(where_);
  }
  if (!one_in(3)) return;
  // Packed elements are written by reading their neighbours first, which nobody has written in a workspace.
  DType type = dtype();
  while (type.bits < 8) type = dtype();
  program.workspaces.push_back(
      buffer("work", type, Scope::global, {int_imm(4), int_imm(3), int_imm(3), int_imm(5), int_imm(4)}));
  globals_.push_back(program.workspaces.back());
  parts_.push_back(program.workspaces.back());
}

Program RandomProgram::program() {
  Program p;
  p.name = "random";
  p.span = span();
  make_globals(p);
  const Var scale = make_var("scale", kFloat32), count = make_var("count", kInt64);
  p.parameters.emplace_back(scale);
  p.parameters.emplace_back(count);
  std::vector<Expr> seen;
  for (const int extent : {4, 3, 3, 100, 8}) seen.push_back(int_imm(extent));
  seen_ = std::make_shared<BufferData>(BufferData{"seen", kFloat64, Scope::global, seen, {}, {}, nullptr});
  p.parameters.emplace_back(seen_);
  parameters_ = {scale};
  scalars_ = parameters_;
  ints_ = {p.symbols[0], count};
  if (!p.workspaces.empty()) p.kernels.push_back(first_kernel(p));
  for (int k = 1 + pick(2); k > 0; --k) p.kernels.push_back(kernel());
  return p;
}

}  // namespace tilepilot::ir::testing
