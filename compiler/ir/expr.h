// Tile IR expressions: immutable, shared, typed, each with its span. A closed sum type: a new kind fails to compile
// until it is printed, read, verified, visited and emitted.
//
// Meaning. Integers wrap at their width; `floor_div` and `floor_mod` round towards minus infinity as Python does. Loads
// outside a *global* buffer give 0. `Select` evaluates only the chosen side.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/ir/dtype.h"
#include "compiler/source/source.h"

namespace tilepilot::ir {

struct ExprNode;
using Expr = std::shared_ptr<const ExprNode>;

// A scalar variable, compared by identity: a loop or block variable, a let, a scalar parameter, a symbolic extent.
struct VarData {
  std::string name;
  DType type;
};
using Var = std::shared_ptr<const VarData>;
inline Var make_var(std::string name, DType type) { return std::make_shared<VarData>(VarData{std::move(name), type}); }

enum class Scope : uint8_t {
  global,
  shared,
  fragment,
  local,
  barrier,  // hardware barriers (mbarrier, PTX ISA 9.7.13): uint64, only barrier operations name them
};

struct BufferData;
using Buffer = std::shared_ptr<const BufferData>;

constexpr int64_t kTensorAlignment = 16;  // bytes, of what tensor libraries allocate

// A buffer, compared by identity. Global buffers are kernel parameters: row-major, contiguous unless `strides` is set;
// their extents may be symbolic. All other scopes have constant extents.
struct BufferData {
  std::string name;
  DType type;
  Scope scope = Scope::global;
  std::vector<Expr> shape;
  std::vector<Expr> strides;  // empty: contiguous; else one an axis, in elements
  Span span;                  // where it was declared
  Buffer base = nullptr;      // a view: the memory of this buffer, which has as many bits and is no view; else null
  std::vector<int64_t> arrivals = {};    // of barriers: for each, how many arrivals complete a phase
  Buffer address = nullptr;              // global memory that begins where the one int64 in this buffer says; else null
  int64_t alignment = kTensorAlignment;  // of a parameter: its address is a multiple of so many bytes, a power of two
  // Of a parameter whose shape mentions symbols: lengths of its rows, and how far axes are apart, are multiples of so
  // many bytes, a power of two; and whether its elements, from the first to the last, are fewer than 2^31.
  int64_t row_alignment = 1;
  bool few_elements = false;
  bool reducer = false;  // a fragment that all threads of the block contribute to by atomic updates

  size_t rank() const { return shape.size(); }
};

enum class UnaryOp : uint8_t { neg, logical_not, bit_not };
enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,  // div: floating point only
  floor_div,
  floor_mod,  // integers
  min,
  max,  // C semantics on NaN: the second operand if either is NaN
  pow,  // this and the next: floating point
  atan2,
  hypot,
  ldexp,      // left * 2^right, where right is a whole number
  nextafter,  // not of small floats
  fmod,       // the exact remainder, with the sign of the left operand
  shl,
  shr,
  bit_and,
  bit_or,
  bit_xor,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,  // result: bool
  logical_and,
  logical_or,  // bool; the right side only if needed
};
// Element-wise functions of one floating-point argument, computed in its type (half types: in float32, rounded once),
// except `abs` (any number), what counts bits, and the `is*` tests (result: bool).
enum class MathFn : uint8_t {
  exp,
  exp2,
  exp10,
  log,
  log2,
  log10,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tan,
  sinh,
  cosh,
  tanh,
  asin,
  acos,
  atan,
  asinh,
  acosh,
  atanh,
  erf,
  sigmoid,
  abs,
  floor,
  ceil,
  round /* ties to even */,
  trunc,
  leading_zeros,  // this and the next: of an integer of 32 or 64 bits, in its type
  popcount,
  isnan,
  isinf,
  isfinite,
};

struct IntImm {
  int64_t value;
};  // any integer type, and bool (0 or 1)
struct FloatImm {
  double value;
};
struct VarRef {
  Var var;
};
struct Load {
  Buffer buffer;
  std::vector<Expr> indices;
};  // as many indices as the buffer has axes
struct Unary {
  UnaryOp op;
  Expr operand;
};
struct Binary {
  BinaryOp op;
  Expr left, right;
};  // operands have one type
struct Math {
  MathFn function;
  Expr argument;
};
struct Select {
  Expr condition, then, otherwise;
};
struct Cast {
  Expr value;
};  // to the node's type; float to int truncates
struct Reinterpret {
  Expr value;
};  // same bits, the node's type

struct ExprNode {
  using Node = std::variant<IntImm, FloatImm, VarRef, Load, Unary, Binary, Math, Select, Cast, Reinterpret>;
  Node node;
  DType type;
  Span span;
};

// Builders. They check nothing: the stage gives users' errors, the verifier ours. Binary comparisons and logic give
// kBool.
Expr int_imm(int64_t value, DType type = kInt32, Span span = {});
Expr float_imm(double value, DType type = kFloat32, Span span = {});
Expr bool_imm(bool value, Span span = {});
Expr var_ref(Var var, Span span = {});
Expr load(Buffer buffer, std::vector<Expr> indices, Span span = {});
Expr unary(UnaryOp op, Expr operand, Span span = {});
Expr binary(BinaryOp op, Expr left, Expr right, Span span = {});
Expr math(MathFn function, Expr argument, Span span = {});
Expr select(Expr condition, Expr then, Expr otherwise, Span span = {});
Expr cast(Expr value, DType type, Span span = {});  // the value itself if it has that type
Expr reinterpret(Expr value, DType type, Span span = {});

std::optional<int64_t> constant_int(const Expr& expr);  // IntImm only
std::string_view to_string(UnaryOp op);
std::string_view to_string(BinaryOp op);  // "+", "//", "min", "and", ... as the text form has them
std::string_view to_string(MathFn function);
std::string_view to_string(Scope scope);

}  // namespace tilepilot::ir
