// What copies that run ahead of their loop may not overtake.
#include "tests/reports/reports.h"

namespace tilepilot::stage {
namespace {

constexpr int64_t kSide = 32;  // of tiles here

// A row of 32 sums over the rows of A that `rows` names, given a weight each.
double weighted_rows(const Array& a, int64_t column, const std::vector<std::pair<int64_t, int64_t>>& rows) {
  double sum = 0;
  for (const auto& [row, weight] : rows) sum += static_cast<double>(weight) * a->at(row * kSide + column);
  return sum;
}

std::string row_program(const std::string& body, const std::string& parameters = "", int rows = 4) {
  return "@tilelang.jit(out_idx=-1)\n@T.prim_func\ndef kernel(A: T.Tensor((" + std::to_string(rows) +
         ", 32), 'float32'), " + parameters +
         "B: T.Tensor((32,), 'float32')):\n    with T.Kernel(1, threads=128):\n        s = T.alloc_shared((32,), "
         "'float32')\n        sum = T.alloc_fragment((32,), 'float32')\n        T.clear(sum)\n" +
         body + "        T.copy(sum, B)\n";
}

std::vector<Report> order() {
  const std::vector<Array> rows{small_integers(ir::kFloat32, {4, kSide})};
  std::vector<Report> reports;
  reports.push_back({2668, "ATileReadBeforeItIsOverwritten", row_program(R"(
        T.copy(A[3, 0:32], s)
        for k in T.Pipelined(4, num_stages=3):
            for i in T.Parallel(32):
                sum[i] += s[i] * (k + 1)
            T.copy(A[k, 0:32], s)
)"),
                     rows, [](const auto& x, int64_t i) {
                       return weighted_rows(x[0], i, {{3, 1}, {0, 2}, {1, 3}, {2, 4}});
                     }});
  reports.push_back(
      {3039, "ATileReadAfterTheLoop", row_program(R"(
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[k, 0:32], s)
            for i in T.Parallel(32):
                sum[i] += s[i]
        for i in T.Parallel(32):
            sum[i] += s[31 - i] * 10
)"),
       rows, [](const auto& x, int64_t i) {
         return weighted_rows(x[0], i, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}) + 10 * x[0]->at(3 * kSide + 31 - i);
       }});
  reports.push_back({2595,
                     "ACopyOfWhatTheLoopAddsTo",
                     row_program(R"(
        for k in T.Pipelined(4, num_stages=2):
            for i in T.Parallel(32):
                T.atomic_add(W[i], A[k, i])
            T.copy(W, s)
            for i in T.Parallel(32):
                sum[i] += s[31 - i]
)",
                                 "W: T.Tensor((32,), 'float32'), "),
                     {rows[0], testing::make_array(ir::kFloat32, {kSide}, [](int64_t) { return 0; })},
                     [](const auto& x, int64_t i) {
                       return weighted_rows(x[0], 31 - i, {{0, 4}, {1, 3}, {2, 2}, {3, 1}});
                     }});
  reports.push_back({2720, "ARowThatTheLoopItselfComputes", row_program(R"(
        at = T.alloc_shared((1,), 'int32')
        for k in T.Pipelined(4, num_stages=2):
            at[0] = 3 - k
            row = at[0]
            T.copy(A[row, 0:32], s)
            for i in T.Parallel(32):
                sum[i] += s[i] * (k + 1)
)"),
                     rows, [](const auto& x, int64_t i) {
                       return weighted_rows(x[0], i, {{3, 1}, {2, 2}, {1, 3}, {0, 4}});
                     }});
  reports.push_back({1792, "ARowFromAVariable", row_program(R"(
        at = T.alloc_var('int32')
        at = 0
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[at, 0:32], s)
            at = (at + 3) % 4
            for i in T.Parallel(32):
                sum[i] += s[i] * (k + 1)
)"),
                     rows, [](const auto& x, int64_t i) {
                       return weighted_rows(x[0], i, {{0, 1}, {3, 2}, {2, 3}, {1, 4}});
                     }});
  reports.push_back({2876,
                     "RowsThatATensorChooses",
                     row_program(R"(
        for k in T.Pipelined(4, num_stages=2):
            first = L[k]
            if (first <= k) & (k < first + 2):
                T.copy(A[k, 0:32], s)
                for i in T.Parallel(32):
                    sum[i] += s[i]
)",
                                 "L: T.Tensor((4,), 'int32'), "),
                     {rows[0], testing::make_array(ir::kInt32, {4}, [](int64_t i) { return i == 2 ? 3.0 : 0.0; })},
                     [](const auto& x, int64_t i) {
                       return weighted_rows(x[0], i, {{0, 1}, {1, 1}});
                     }});
  reports.push_back({2823, "ATileMadeOfAnotherTile", row_program(R"(
        t = T.alloc_shared((32,), 'float32')
        for k in T.Pipelined(4, num_stages=3):
            T.copy(A[k, 0:32], s)
            T.copy(s, t)
            T.copy(A[3 - k, 0:32], s)
            for i in T.Parallel(32):
                sum[i] += s[i] + t[31 - i] * (k + 1)
)"),
                     rows, [](const auto& x, int64_t i) {
                       return weighted_rows(x[0], i, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}) +
                              weighted_rows(x[0], 31 - i, {{0, 1}, {1, 2}, {2, 3}, {3, 4}});
                     }});
  reports.push_back({2548, "APipelineInAWhileLoop", row_program(R"(
        turn = T.alloc_local((1,), 'int32')
        turn[0] = 0
        while turn[0] < 3:
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0:32], s)
                for i in T.Parallel(32):
                    sum[i] += s[i] * (turn[0] + k)
            turn[0] += 1
)"),
                     rows, [](const auto& x, int64_t i) {
                       return weighted_rows(x[0], i, {{0, 3}, {1, 6}, {2, 9}, {3, 12}});
                     }});
  reports.push_back({2698, "ATilePartlyFilledAfterACopy", row_program(R"(
        T.copy(A[1, 0:32], s)
        T.fill(s[20:32], 7)
        for i in T.Parallel(32):
            sum[i] = s[31 - i]
)"),
                     rows, [](const auto& x, int64_t i) { return i < 12 ? 7 : x[0]->at(kSide + 31 - i); }});
  return reports;
}

// One tile that an iteration fills twice: the first content is dead before the second one comes.
std::vector<Report> tiles_filled_twice() {
  const std::string sums = R"(
            T.reduce_sum(s, part, dim=1)
            for i in T.Parallel(32):
                sum[i] += part[i] * (k + 1))";
  const std::string first = "\n            T.copy(A[0, k * 32], s)" + sums;
  const auto program = [](const std::string& body, int stages) {
    return R"(
@tilelang.jit(out_idx=-1)
@T.prim_func
def kernel(A: T.Tensor((32, 128), "int32"), B: T.Tensor((32, 128), "int32"), C: T.Tensor((32,), "int32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((32, 32), "int32")
        sum = T.alloc_fragment((32,), "int32")
        part = T.alloc_fragment((32,), "int32")
        T.clear(sum)
        T.clear(s)
        for k in T.Pipelined(4, num_stages=)" +
           std::to_string(stages) + "):" + body + "\n        T.copy(sum, C)\n";
  };
  // `value`: of row i, column j of the tile in step k when it is summed up for the second time.
  using Value = std::function<double(const std::vector<Array>&, int64_t i, int64_t j, int64_t k)>;
  const auto summed = [](bool also_first, const Value& value) {
    return [=](const std::vector<Array>& x, int64_t i) {
      double sum = 0;
      for (int64_t k = 0; k < 4; ++k)
        for (int64_t j = 0; j < 32; ++j)
          sum += static_cast<double>(k + 1) * (value(x, i, j, k) + (also_first ? x[0]->at(i * 128 + k * 32 + j) : 0));
      return sum;
    };
  };
  const Value of_b = [](const auto& x, int64_t i, int64_t j, int64_t k) { return x[1]->at(i * 128 + k * 32 + j); };
  const std::vector<Array> inputs{small_integers(ir::kInt32, {32, 128}), small_integers(ir::kInt32, {32, 128}, 2)};
  std::vector<Report> reports;
  for (const int stages : {1, 2, 3}) {
    const std::string name = "In" + std::to_string(stages) + "Stages";
    reports.push_back({3031, "ATileOfTwoCopies" + name,
                       program(first + "\n            T.copy(B[0, k * 32], s)" + sums, stages), inputs,
                       summed(true, of_b)});
  }
  reports.push_back({3031, "ATileCopiedAndThenComputed",
                     program(first + R"(
            for i, j in T.Parallel(32, 32):
                s[i, j] = B[31 - i, k * 32 + j] * 2)" +
                                 sums,
                             2),
                     inputs, summed(true, [](const auto& x, int64_t i, int64_t j, int64_t k) {
                       return 2 * x[1]->at((31 - i) * 128 + k * 32 + j);
                     })});
  reports.push_back({3031, "ATileOfTwoParallelLoops",
                     program(R"(
            for i, j in T.Parallel(32, 32):
                s[i, j] = A[i, k * 32 + j])" +
                                 sums + R"(
            for i, j in T.Parallel(32, 32):
                s[i, j] = B[i, k * 32 + j])" +
                                 sums,
                             2),
                     inputs, summed(true, of_b)});
  reports.push_back({3031, "TwoCopiesThatOverlap",
                     program(R"(
            T.copy(A[0:32, k * 32 : k * 32 + 24], s[0:32, 0:24])
            T.copy(B[0:32, k * 32 : k * 32 + 16], s[0:32, 16:32]))" +
                                 sums,
                             2),
                     inputs, summed(false, [](const auto& x, int64_t i, int64_t j, int64_t k) {
                       return j < 16 ? x[0]->at(i * 128 + k * 32 + j) : x[1]->at(i * 128 + k * 32 + j - 16);
                     })});
  return reports;
}

}  // namespace

std::vector<Report> reports_of_order() { return joined({order(), tiles_filled_twice()}); }

}  // namespace tilepilot::stage
