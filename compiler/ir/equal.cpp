#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "compiler/ir/text/text.h"

namespace tilepilot::ir {
namespace {

bool same_float(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)); }

// A block of one statement stands for the statement wherever a body may be either: the text form shows no difference.
const Stmt& unwrapped(const Stmt& body) {
  const auto* block = body ? std::get_if<Block>(&body->node) : nullptr;
  return block && block->body.size() == 1 ? block->body.front() : body;
}

// Compares two programs while matching their variables and buffers in the order of declaration.
class Comparison {
 public:
  bool same(const Program& a, const Program& b) {
    return a.name == b.name && bind(a.symbols, b.symbols) && all(a.parameters, b.parameters) &&
           bind(a.workspaces, b.workspaces) && a.sources == b.sources && all(a.kernels, b.kernels);
  }
  bool same(const Expr& a, const Expr& b) { return a->type == b->type && same_node(a->node, b->node); }

 private:
  std::unordered_map<const void*, const void*> partner_;

  bool bind(const void* a, const void* b) {
    partner_[a] = b;
    return true;
  }
  bool bind(const Var& a, const Var& b) { return a->type == b->type && bind(a.get(), b.get()); }
  bool bind(const std::vector<Var>& a, const std::vector<Var>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [&](const Var& x, const Var& y) { return bind(x, y); });
  }
  bool bind(const Buffer& a, const Buffer& b) {
    return a->type == b->type && a->scope == b->scope && all(a->shape, b->shape) && all(a->strides, b->strides) &&
           matches(a->base.get(), b->base.get()) && matches(a->address.get(), b->address.get()) &&
           a->arrivals == b->arrivals && a->alignment == b->alignment && a->row_alignment == b->row_alignment &&
           a->few_elements == b->few_elements && a->reducer == b->reducer && bind(a.get(), b.get());
  }
  bool bind(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [&](const Buffer& x, const Buffer& y) { return bind(x, y); });
  }

  // A variable or buffer that neither side declares must be the same object.
  bool matches(const void* a, const void* b) const {
    const auto found = partner_.find(a);
    return found == partner_.end() ? a == b : found->second == b;
  }

  template <class T>
  bool all(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [&](const T& x, const T& y) { return same(x, y); });
  }

  template <class Node>
  bool same_node(const Node& a, const Node& b) {
    if (a.index() != b.index()) return false;
    return std::visit([&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
  }

  bool same(const std::variant<Buffer, Var>& a, const std::variant<Buffer, Var>& b) {
    if (a.index() != b.index()) return false;
    return std::visit([&](const auto& x) { return bind(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
  }
  bool same(const Kernel& a, const Kernel& b) {
    return all(a.grid, b.grid) && bind(a.block_vars, b.block_vars) && a.threads == b.threads &&
           a.cluster == b.cluster && a.order == b.order && a.fast_math == b.fast_math &&
           bind(a.thread_vars, b.thread_vars) && bind(a.allocations, b.allocations) && all(a.layouts, b.layouts) &&
           body(a.body, b.body);
  }
  bool same(const RequestedLayout& a, const RequestedLayout& b) {
    const auto equal = [&](const Expr& x, const Expr& y) { return x && y ? same(x, y) : x == y; };
    return matches(a.buffer.get(), b.buffer.get()) && bind(a.vars, b.vars) && a.replicas == b.replicas &&
           equal(a.thread, b.thread) && equal(a.position, b.position);
  }

  bool same(const IntImm& a, const IntImm& b) { return a.value == b.value; }
  bool same(const FloatImm& a, const FloatImm& b) { return same_float(a.value, b.value); }
  bool same(const VarRef& a, const VarRef& b) { return matches(a.var.get(), b.var.get()); }
  bool same(const Load& a, const Load& b) {
    return matches(a.buffer.get(), b.buffer.get()) && all(a.indices, b.indices);
  }
  bool same(const Unary& a, const Unary& b) { return a.op == b.op && same(a.operand, b.operand); }
  bool same(const Binary& a, const Binary& b) { return a.op == b.op && same(a.left, b.left) && same(a.right, b.right); }
  bool same(const Math& a, const Math& b) { return a.function == b.function && same(a.argument, b.argument); }
  bool same(const Select& a, const Select& b) {
    return same(a.condition, b.condition) && same(a.then, b.then) && same(a.otherwise, b.otherwise);
  }
  bool same(const Cast& a, const Cast& b) { return same(a.value, b.value); }
  bool same(const Reinterpret& a, const Reinterpret& b) { return same(a.value, b.value); }

  bool same(const Region& a, const Region& b) {
    return matches(a.buffer.get(), b.buffer.get()) && all(a.start, b.start) && a.extent == b.extent;
  }

  bool same(const Stmt& a, const Stmt& b) {
    if (!a || !b) return a == b;
    return same_node(a->node, b->node);
  }
  bool body(const Stmt& a, const Stmt& b) { return same(unwrapped(a), unwrapped(b)); }
  bool same(const For& a, const For& b) {
    return a.kind == b.kind && all(a.extents, b.extents) && bind(a.vars, b.vars) && a.num_stages == b.num_stages &&
           body(a.body, b.body);
  }
  bool same(const While& a, const While& b) { return same(a.condition, b.condition) && body(a.body, b.body); }
  bool same(const If& a, const If& b) {
    return same(a.condition, b.condition) && body(a.then, b.then) && body(a.otherwise, b.otherwise);
  }
  bool same(const Let& a, const Let& b) { return same(a.value, b.value) && bind(a.var, b.var); }
  bool same(const Store& a, const Store& b) {
    return matches(a.buffer.get(), b.buffer.get()) && all(a.indices, b.indices) && same(a.value, b.value);
  }
  bool same(const Break&, const Break&) { return true; }
  bool same(const Continue&, const Continue&) { return true; }
  bool same(const Sync& a, const Sync& b) {
    return a.scope == b.scope && a.barrier == b.barrier && a.threads == b.threads;
  }
  bool same(const Block& a, const Block& b) { return all(a.body, b.body); }
  bool same(const Copy& a, const Copy& b) {
    const bool peers = a.peer && b.peer ? same(a.peer, b.peer) : a.peer == b.peer;
    return same(a.source, b.source) && same(a.destination, b.destination) && a.options == b.options &&
           a.mode == b.mode && same(a.barrier, b.barrier) && a.multicast == b.multicast && peers &&
           a.in_line == b.in_line;
  }
  bool same(const Fill& a, const Fill& b) { return same(a.destination, b.destination) && same(a.value, b.value); }
  bool same(const Gemm& a, const Gemm& b) {
    return same(a.a, b.a) && same(a.b, b.b) && same(a.c, b.c) && a.transpose_a == b.transpose_a &&
           a.transpose_b == b.transpose_b && a.clear_accumulator == b.clear_accumulator && a.policy == b.policy &&
           a.asynchronous == b.asynchronous && a.precision == b.precision;
  }
  bool same(const Reduce& a, const Reduce& b) {
    return a.op == b.op && same(a.source, b.source) && same(a.destination, b.destination) && a.axis == b.axis &&
           a.clear == b.clear && a.nan_propagate == b.nan_propagate;
  }
  bool same(const Scan& a, const Scan& b) {
    return a.op == b.op && same(a.source, b.source) && same(a.destination, b.destination) && a.axis == b.axis &&
           a.reverse == b.reverse;
  }
  bool same(const Atomic& a, const Atomic& b) {
    const bool values = a.value && b.value ? same(a.value, b.value) : a.value == b.value;
    const bool results = a.previous && b.previous ? bind(a.previous, b.previous) : a.previous == b.previous;
    return a.op == b.op && same(a.element, b.element) && values && a.order == b.order && results;
  }
  bool same(const std::optional<Region>& a, const std::optional<Region>& b) {
    return a && b ? same(*a, *b) : a.has_value() == b.has_value();
  }
  bool same(const Barrier& a, const Barrier& b) {
    const bool operands = a.operand && b.operand ? same(a.operand, b.operand) : a.operand == b.operand;
    const bool peers = a.peer && b.peer ? same(a.peer, b.peer) : a.peer == b.peer;
    return a.op == b.op && same(a.barrier, b.barrier) && operands && peers && a.threads == b.threads &&
           a.after_reads == b.after_reads;
  }
  bool same(const Async& a, const Async& b) { return a.op == b.op && a.count == b.count; }
  bool same(const Roles& a, const Roles& b) { return a.groups == b.groups && body(a.body, b.body); }
  bool same(const std::variant<Expr, Region>& a, const std::variant<Expr, Region>& b) {
    if (a.index() != b.index()) return false;
    return std::visit([&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
  }
  bool same(const ExternCall& a, const ExternCall& b) {
    const bool results = a.result && b.result ? bind(a.result, b.result) : a.result == b.result;
    return a.function == b.function && all(a.arguments, b.arguments) && results;
  }
  bool same(const AllReduce& a, const AllReduce& b) {
    return a.op == b.op && same(a.value, b.value) && same(a.condition, b.condition) && same(a.identity, b.identity) &&
           same(a.result, b.result) && a.axes == b.axes && a.lanes == b.lanes;
  }
  bool same(const Shuffle& a, const Shuffle& b) {
    return a.op == b.op && same(a.value, b.value) && same(a.lane, b.lane) && a.width == b.width &&
           bind(a.result, b.result);
  }
  bool same(const LoadMatrix& a, const LoadMatrix& b) {
    return a.count == b.count && a.transposed == b.transposed && same(a.row, b.row) && same(a.registers, b.registers);
  }
  bool same(const Mma& a, const Mma& b) { return same(a.a, b.a) && same(a.b, b.b) && same(a.c, b.c); }
  bool same(const Concurrent::Role& a, const Concurrent::Role& b) {
    return a.threads == b.threads && body(a.body, b.body);
  }
  bool same(const Concurrent& a, const Concurrent& b) { return all(a.roles, b.roles); }
  bool same(const Check& a, const Check& b) {
    return same(a.condition, b.condition) && a.message == b.message && a.assumed == b.assumed;
  }
  bool same_or_null(const Expr& a, const Expr& b) { return a && b ? same(a, b) : a == b; }
  bool same(const Print& a, const Print& b) {
    return a.message == b.message && a.buffer == b.buffer && same_or_null(a.index, b.index) &&
           same_or_null(a.value, b.value) && all(a.thread, b.thread);
  }
};

}  // namespace

bool structurally_equal(const Program& a, const Program& b) { return Comparison().same(a, b); }
bool structurally_equal(const Expr& a, const Expr& b) { return a == b || Comparison().same(a, b); }

}  // namespace tilepilot::ir
