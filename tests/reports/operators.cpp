// Gemms, reductions and scans.
#include <cmath>

#include "tests/reports/reports.h"

namespace tilepilot::stage {
namespace {

struct GemmForm {
  int64_t m, n, k, threads = 128;
  std::string type = "float16", accumulator = "float32";
  std::string a_scope = "shared", b_scope = "shared";
  std::string options;
};

std::string gemm_program(const GemmForm& form) {
  auto shape = [](int64_t rows, int64_t columns) {
    return "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
  };
  const std::string a = shape(form.m, form.k), b = shape(form.k, form.n), c = shape(form.m, form.n);
  return "@tilelang.jit(out_idx=-1)\n@T.prim_func\ndef kernel(A: T.Tensor(" + a + ", '" + form.type +
         "'), B: T.Tensor(" + b + ", '" + form.type + "'), C: T.Tensor(" + c + ", '" + form.accumulator +
         "')):\n    with T.Kernel(1, threads=" + std::to_string(form.threads) + "):\n        a = T.alloc_" +
         form.a_scope + "(" + a + ", '" + form.type + "')\n        b = T.alloc_" + form.b_scope + "(" + b + ", '" +
         form.type + "')\n        c = T.alloc_fragment(" + c + ", '" + form.accumulator +
         "')\n        T.fill(c, 99)\n        T.copy(A, a)\n        T.copy(B, b)\n        T.gemm(a, b, c, " +
         "clear_accum=True" + form.options + ")\n        T.copy(c, C)\n";
}

ir::DType type_of(const std::string& name) {
  if (name == "int8") return ir::kInt8;
  return name == "bfloat16" ? ir::kBFloat16 : ir::kFloat16;
}

Report gemm_report(int thread, const std::string& name, const GemmForm& form) {
  return {
      thread,
      name,
      gemm_program(form),
      {small_integers(type_of(form.type), {form.m, form.k}), small_integers(type_of(form.type), {form.k, form.n}, 2)},
      [form](const std::vector<Array>& x, int64_t i) {
        double sum = 0;
        for (int64_t k = 0; k < form.k; ++k)
          sum += x[0]->at(i / form.n * form.k + k) * x[1]->at(k * form.n + i % form.n);
        return sum;
      }};
}

std::vector<Report> gemms() {
  std::vector<Report> reports = {
      gemm_report(2381, "InnerExtentBetweenTwoMultiplesOf16", {64, 64, 24}),
      gemm_report(2537, "ColumnsThatTheWarpsDoNotShareEvenly", {16, 104, 16, 384}),
      gemm_report(2593, "ColumnsOf8Modulo16", {64, 24, 32}),
      gemm_report(3004, "Bfloat16IntoFloat16", {16, 16, 16, 128, "bfloat16", "float16"}),
      gemm_report(3032, "AShortInnerExtentOfBytes", {16, 16, 8, 128, "int8", "int32"}),
      gemm_report(3032, "AShortInnerExtentOfBfloat16", {16, 16, 8, 128, "bfloat16"}),
      gemm_report(3035, "AnOddKPack", {16, 16, 16, 128, "float16", "float32", "shared", "shared", ", k_pack=3"}),
      gemm_report(2617, "BothOperandsInRegisters", {16, 16, 32, 32, "float16", "float32", "fragment", "fragment"}),
      gemm_report(2627, "TheRightOperandInRegisters", {16, 16, 48, 32, "float16", "float32", "shared", "fragment"}),
  };
  Report reshaped = gemm_report(3012, "AnOperandReshapedFromAVector", {32, 16, 32});
  reshaped.program = R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 16), "float16"), C: T.Tensor((32, 16), "float32")):
    with T.Kernel(1, threads=64):
        flat = T.alloc_shared((1024,), "float16")
        b = T.alloc_shared((32, 16), "float16")
        c = T.alloc_fragment((32, 16), "float32")
        a = T.reshape(flat, (32, 32))
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, clear_accum=True)
        T.copy(c, C)
)";
  reports.push_back(std::move(reshaped));
  Report sliced = gemm_report(2964, "AnOperandSlicedAlongItsRows", {32, 16, 64});
  sliced.program = R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 16), "float16"), C: T.Tensor((32, 16), "float32")):
    with T.Kernel(1, threads=64):
        a = T.alloc_shared((32, 64), "float16")
        b = T.alloc_shared((64, 16), "float16")
        upper = T.alloc_fragment((16, 16), "float32")
        lower = T.alloc_fragment((16, 16), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a[0:16, :], b, upper, clear_accum=True)
        T.gemm(a[16:32, :], b, lower, clear_accum=True)
        T.copy(upper, C[0:16, :])
        T.copy(lower, C[16:32, :])
)";
  reports.push_back(std::move(sliced));
  Report operand = gemm_report(2954, "AnOperandIsReadAgainAfterTheGemm", {16, 16, 16});
  operand.program = R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float16")):
    with T.Kernel(1, threads=32):
        a = T.alloc_fragment((16, 16), "float16")
        b = T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c, clear_accum=True)
        T.copy(a, b)
        T.copy(b, C)
)";
  operand.expected = [](const std::vector<Array>& x, int64_t i) { return x[0]->at(i); };
  reports.push_back(std::move(operand));
  return reports;
}

std::string reduce_program(const std::string& call, int64_t rows, int64_t columns, int threads,
                           const std::string& type = "float32") {
  const std::string extents = std::to_string(rows) + ", " + std::to_string(columns);
  return "@tilelang.jit(out_idx=-1)\n@T.prim_func\ndef kernel(A: T.Tensor((" + extents + "), '" + type +
         "'), B: T.Tensor((" + std::to_string(rows) + ",), '" + type +
         "')):\n    with T.Kernel(1, threads=" + std::to_string(threads) + "):\n        a = T.alloc_fragment((" +
         extents + "), '" + type + "')\n        r = T.alloc_fragment((" + std::to_string(rows) + ",), '" + type +
         "')\n        T.copy(A, a)\n        " + call + "\n        T.copy(r, B)\n";
}

double row_sum(const Array& a, int64_t row, int64_t columns) {
  double sum = 0;
  for (int64_t j = 0; j < columns; ++j) sum += a->at(row * columns + j);
  return sum;
}

double row_absmax(const Array& a, int64_t row, int64_t columns) {
  double top = 0;
  for (int64_t j = 0; j < columns; ++j) top = std::max(top, std::fabs(a->at(row * columns + j)));
  return top;
}

std::vector<Report> reductions() {
  std::vector<Report> reports;
  reports.push_back({2542,
                     "FortyEightThreads",
                     reduce_program("T.reduce_sum(a, r, dim=1)", 1, 48, 48),
                     {counting(ir::kFloat32, {1, 48})},
                     [](const auto&, int64_t) { return 48.0 * 47 / 2; }});
  reports.push_back({2399,
                     "AWidthThatDoesNotDivideTheThreads",
                     reduce_program("T.reduce_sum(a, r, dim=1)", 3, 96, 128),
                     {small_integers(ir::kFloat32, {3, 96})},
                     [](const auto& x, int64_t i) { return row_sum(x[0], i, 96); }});
  reports.push_back({2524,
                     "SeveralResultsAtOnce",
                     reduce_program("T.reduce_sum(a, r, dim=1, batch=4)", 8, 32, 256),
                     {small_integers(ir::kFloat32, {8, 32})},
                     [](const auto& x, int64_t i) { return row_sum(x[0], i, 32); }});
  reports.push_back(
      {2305,
       "TheLargestOfAnOddNumberOfRounds",
       reduce_program("T.reduce_absmax(a, r, dim=1)", 2, 640, 128, "bfloat16"),
       {testing::make_array(ir::kBFloat16, {2, 640}, [](int64_t i) { return i % 640 == 601 ? -9.0 : 1; })},
       [](const auto& x, int64_t i) { return row_absmax(x[0], i, 640); }});
  reports.push_back({2624,
                     "AbsoluteValuesOfUnsignedNumbers",
                     reduce_program("T.reduce_absmax(a, r, dim=1)", 2, 32, 32, "uint32"),
                     {counting(ir::kUInt32, {2, 32})},
                     [](const auto&, int64_t i) { return static_cast<double>(i * 32 + 31); }});
  reports.push_back({3266,
                     "ThreeColumnsByRows",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((32, 3), "float32"), B: T.Tensor((3,), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_fragment((32, 3), "float32")
        r = T.alloc_fragment((3,), "float32")
        T.copy(A, a)
        T.reduce_max(a, r, dim=0)
        T.copy(r, B)
)",
                     {counting(ir::kFloat32, {32, 3})},
                     [](const auto&, int64_t i) { return 93.0 + static_cast<double>(i); }});
  reports.push_back({3022,
                     "AReductionOfASlice",
                     R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((8, 32), "float32"), B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=64):
        a = T.alloc_shared((8, 32), "float32")
        r = T.alloc_fragment((4,), "float32")
        T.copy(A, a)
        T.reduce_sum(a[4:8, :], r, dim=1)
        T.copy(r, B)
)",
                     {small_integers(ir::kFloat32, {8, 32})},
                     [](const auto& x, int64_t i) { return row_sum(x[0], i + 4, 32); }});
  reports.push_back({2697,
                     "NotANumberMetsOldContent",
                     reduce_program("T.fill(r, -1.0)\n        T.reduce_max(a, r, dim=1, clear=False, "
                                    "nan_propagate=True)\n        for i in T.Parallel(2):\n            r[i] = "
                                    "T.if_then_else(T.isnan(r[i]), 77.0, r[i])",
                                    2, 32, 32),
                     {testing::make_array(ir::kFloat32, {2, 32}, [](int64_t i) { return i == 40 ? NAN : 3.0; })},
                     [](const auto&, int64_t i) { return i == 1 ? 77.0 : 3.0; }});
  return reports;
}

std::string scan_program(const std::string& call, const std::string& scope = "shared", int threads = 96) {
  return "@tilelang.jit(out_idx=-1)\n@T.prim_func\ndef kernel(A: T.Tensor((12, 20), 'float32'), B: T.Tensor((12, 20), "
         "'float32')):\n    with T.Kernel(1, threads=" +
         std::to_string(threads) + "):\n        a = T.alloc_shared((12, 20), 'float32')\n        b = T.alloc_" + scope +
         "((12, 20), 'float32')\n        T.copy(A, a)\n        T.copy(A, b)\n        " + call +
         "\n        T.copy(b, B)\n";
}

// The sum of the row's elements from column `first` up to the element's own.
double running(const Array& a, int64_t i, int64_t first = 0) {
  double sum = 0;
  for (int64_t j = i / 20 * 20 + first; j <= i; ++j) sum += a->at(j);
  return sum;
}

std::vector<Report> scans() {
  const std::vector<Array> input = {small_integers(ir::kFloat32, {12, 20})};
  std::vector<Report> reports;
  reports.push_back({2576, "NinetySixThreads", scan_program("T.cumsum(a, b, dim=1)"), input,
                     [](const auto& x, int64_t i) { return running(x[0], i); }});
  reports.push_back({3011, "FromSharedMemoryIntoRegisters", scan_program("T.cumsum(a, b, dim=1)", "fragment"), input,
                     [](const auto& x, int64_t i) { return running(x[0], i); }});
  reports.push_back({2523, "TheFirstColumnsOfATile", scan_program("T.cumsum(a[0:12, 0:8], b[0:12, 0:8], dim=1)"), input,
                     [](const auto& x, int64_t i) { return i % 20 < 8 ? running(x[0], i) : x[0]->at(i); }});
  reports.push_back({2536, "TheLastRowsOfATile", scan_program("T.cumsum(b[4:12, :], dim=1)"), input,
                     [](const auto& x, int64_t i) { return i / 20 >= 4 ? running(x[0], i) : x[0]->at(i); }});
  reports.push_back({2284, "DownTheRowsOfATileThatIsNotSquare", scan_program("T.cumsum(a, b, dim=0)"), input,
                     [](const auto& x, int64_t i) {
                       double sum = 0;
                       for (int64_t j = i % 20; j <= i; j += 20) sum += x[0]->at(j);
                       return sum;
                     }});
  return reports;
}

}  // namespace

std::vector<Report> reports_of_operators() { return joined({gemms(), reductions(), scans()}); }

}  // namespace tilepilot::stage
