// What the emitters of one launch share: where buffers live, what is known about integers, which accesses are proven
// to be in bounds on the path being written.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"
#include "compiler/targets/c/integer_facts.h"
#include "compiler/targets/c/names.h"
#include "compiler/targets/c/operation_count.h"
#include "compiler/targets/c/writer.h"

namespace tilepilot::targets::c {

// The C++ type of stored elements, and the one their values are computed in.
std::string stored_type(ir::DType type);
std::string computed_type(ir::DType type);

// Temporary memory that operators ask for, beside the program's own buffers.
class ScratchPlan {
 public:
  // The offset of `bytes` fresh bytes, aligned to 64.
  int64_t reserve(int64_t bytes);
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// Something that a launch found to be wrong, by its number from 1 on.
struct RuntimeCheck {
  Span span;
  std::string message;
  DiagnosticKind kind;
};

// Code that handles one element at a time, and why it is no vector code.
struct ScalarCode {
  Span span;
  std::string what;  // "loop over `i`", "`pow`"
  std::string why;   // "each iteration adds to the same element of `s`"

  friend bool operator==(const ScalarCode&, const ScalarCode&) = default;
};

// While the lanes of a parallel loop are written (see lanes.h): what is kept for each lane of the chunk at hand.
struct LaneState {
  std::string chunk_lane;  // the number of a lane within the chunk
  int64_t chunk_size = 0;  // how many a chunk has
  // The array [.., lane] that stands for a buffer [.., thread], with as many axes before the thread's.
  struct Own {
    std::string name;
    size_t axes;
  };
  std::unordered_map<const ir::BufferData*, Own> own;
  std::unordered_map<const ir::VarData*, std::string> values;  // of lets: "m[lane]"
  // Quotients and remainders (see lane_runs.h) within a run; those to which the lane's own number is added.
  struct Part {
    std::string text;
    bool plus_lane;
  };
  std::unordered_map<const ir::ExprNode*, Part> parts;
  ir::Var lane;
  std::unordered_map<const ir::ExprNode*, std::string> loads;   // that were done before
  std::unordered_map<const ir::StmtNode*, std::string> stores;  // that are done later: where their values are kept
};

// A tile buffer that is kept in the form that the matrix kernels read (see cpu/plan/operand_layout.h).
struct OperandLayout {
  bool is_b = false;        // panels of B; else rows of A
  bool transposed = false;  // the buffer's axes are [N, K] for B, [K, M] for A
  ir::DType computed;       // element type of the packed form
};
using OperandLayouts = std::unordered_map<const ir::BufferData*, OperandLayout>;

struct Context {
  const ir::Program& program;
  const ir::Kernel& kernel;
  Names names;
  IntegerFacts facts = {};
  OperandLayouts layouts = {};
  ScratchPlan scratch = {};
  Writer declarations{1};  // of buffers, at the top of the block function
  Writer body{1};
  Error error = {};                    // the first thing this target cannot do
  const SourceMap* sources = nullptr;  // to name the program's lines in the code; null: they are not named
  // What indices are computed in, and loops count in.
  std::string index_type = "int64_t";

  // Whether signed integers wrap by themselves where the text is compiled, rather than by functions of the prelude.
  bool wraps_by_itself = true;

  // Whether `a and b` is a bitwise operation where b loads but needs no guard: the system's compiler makes no vector
  // code of a load that may be left out.
  bool evaluates_both_sides = false;

  // Whether functions and quotients of float32 are those of the prelude that are fast and inexact.
  bool fast_math = false;

  // Small floats whose sums and products the prelude has functions for.
  bool adds_float16 = false, adds_bfloat16 = false;
  bool is_native(ir::DType type) const {
    return (adds_float16 && type == ir::kFloat16) || (adds_bfloat16 && type == ir::kBFloat16);
  }

  // Variables of the index type in C++ whatever their type in the IR: loops, blocks, symbols, integer parameters.
  std::unordered_set<const ir::VarData*> wide = {};
  // Variables that hold an element of a small float as it was stored: under which other name, with all its bits.
  std::unordered_map<const ir::VarData*, std::string> stored = {};
  // Loads and stores (their nodes) that are in bounds, and branches (If, Select) whose condition is true, on the path
  // being written.
  std::unordered_set<const void*> proven = {};
  // Tensors whose elements the prelude's `load_if` reads where a guard stands around them.
  std::unordered_set<const ir::BufferData*> predicated = {};
  // Where stores to a streamed tensor go instead, while its loop is written.
  std::string stream_target = {};
  bool has_streams = false;
  // Of concurrent roles, while one is written: the name of their scheduler, and how many threads the role stands for.
  std::string roles = {};
  int64_t role_threads = 0;
  std::unordered_map<int64_t, std::string> thread_barriers = {};  // names by number
  // Divisions of which it is settled whether the prelude's `reciprocal_quotient` does them (see
  // cuda/reciprocal_division.h).
  std::unordered_map<const ir::ExprNode*, bool> reciprocal_divisions = {};
  LaneState lanes = {};
  int loops = 0;                                           // around what is being written
  std::unordered_set<const ir::BufferData*> sharing = {};  // views and what they view
  // Of which each iteration of a parallel loop has one of its own (see cpu/loops/private_buffers.h).
  std::unordered_set<const ir::BufferData*> iteration_private = {};
  // How often the kernel's body names each buffer.
  std::unordered_map<const ir::BufferData*, int64_t> uses = {};
  // What the launch may find.
  std::vector<RuntimeCheck> checks = {};
  bool uses_events = false;  // of the launch: see the prelude's `launch_events`
  // Whether an access outside of a tile ends the launch. Otherwise, as outside of a tensor, nothing is written and zero
  // is read, and only where indices are known to reach past an end.
  bool checks_tiles = false;
  OperationCount* operations = nullptr;      // gets what is written; null: nobody counts
  std::vector<ScalarCode> scalar_code = {};  // in the order in which it is written

  // What stands for a variable.
  const std::string& name(const ir::Var& var);
  // Declares temporary memory and returns its name.
  std::string temporary(const std::string& wish, const std::string& type, int64_t elements, int element_bytes);
  void fail(Span span, std::string message, std::string hint = {});
  // Its number.
  int64_t add_check(Span span, std::string message, DiagnosticKind kind);
  int64_t add_tile_check(const ir::Buffer& tile, Span span);
  // Once: a loop may be written several times.
  void note_scalar(ScalarCode code);
};

// True for tensors whose stores should pass by the caches.
bool is_streamed(const ir::Buffer& buffer);
// Row-major strides of a buffer as C++ expressions, in elements.
std::vector<std::string> strides(Context& context, const ir::Buffer& buffer);
// Its constant extents; only for buffers that are not global.
std::vector<int64_t> extents(const ir::Buffer& buffer);
// "A + offset": the address of an element.
std::string address(Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);
// The offset of an element from the start of its buffer.
std::string offset(Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);
// "A[offset]": the element itself.
std::string place(Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);
// The condition under which an index lies within an axis of a buffer; empty if it always does.
std::string axis_condition(Context& context, const ir::Expr& index, const ir::Expr& extent);
// Whether an access has to be checked: all that is not known to stay inside, or of tiles, without `checks_tiles`, those
// whose indices are known to reach past an end.
bool may_leave(const Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);
// The condition under which an access is in bounds; empty if it always is.
std::string bounds_condition(Context& context, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);
// Whether an access that is not in bounds ends the launch, rather than being left out.
bool fails_out_of_bounds(const Context& context, const ir::Buffer& buffer);

}  // namespace tilepilot::targets::c
