// A slow, obvious interpreter of the IR: what generated kernels are compared with.
#pragma once

#include <map>

#include "compiler/ir/stmt.h"
#include "element.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {

class Interpreter {
 public:
  Interpreter(const ir::Program& program, const std::vector<runtime::Argument>& arguments);
  void run();
  // A float was cast to an integer type that cannot hold it: the result may be anything.
  bool met_undefined() const { return met_undefined_; }

 private:
  enum class Flow { normal, broken, continued };
  struct Memory {
    ir::DType type;
    std::vector<int64_t> shape, strides;
    std::byte* data;
    bool is_global;
  };
  using Indices = std::vector<int64_t>;

  const ir::Program& program_;
  bool met_undefined_ = false;
  std::map<const ir::VarData*, Element> vars_;
  std::map<const ir::BufferData*, Memory> memory_;
  std::map<const ir::BufferData*, std::vector<std::byte>> tiles_;

  void bind(const ir::Buffer& buffer, const runtime::TensorView& tensor);
  void run_block(const ir::Kernel& kernel);
  Element evaluate(const ir::Expr& expr);
  Element converted(const Element& value, ir::DType to);
  int64_t integer(const ir::Expr& expr) { return evaluate(expr).whole; }
  Indices integers(const std::vector<ir::Expr>& exprs);
  Element read(const ir::Buffer& buffer, const Indices& at);
  void write(const ir::Buffer& buffer, const Indices& at, const Element& value);
  static bool inside(const Memory& memory, const Indices& at);
  static int64_t place(const Memory& memory, const Indices& at);

  Flow run(const ir::Stmt& stmt);
  Flow run(const ir::Block& block);
  Flow run(const ir::For& loop, size_t axis);
  Flow run(const ir::While& loop);
  void run(const ir::Copy& copy);
  void run(const ir::Fill& fill);
  void run(const ir::Gemm& gemm);
  void run(const ir::Reduce& reduce);
  void run(const ir::Scan& scan);
  void run(const ir::Atomic& atomic);
  void run(const ir::AllReduce& reduce);

  // Calls body(offsets) for all points of the box, last axis fastest.
  static void each(const std::vector<int64_t>& extent, const std::function<void(const Indices&)>& body);
  Indices start(const ir::Region& region) { return integers(region.start); }
};

}  // namespace tilepilot::testing
