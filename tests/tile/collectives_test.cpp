// Atomics, all-reduces over threads and scans, run through the CPU backend and compared with loops in C++.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using ::testing::HasSubstr;

class Collectives : public Run {
 protected:
  // Sums of a 5 by 100 tensor's rows or of all of it, however the program comes by them.
  Array rows_ = random_array(ir::kFloat32, {5, 100}, 1);
  double sum_of_row(int64_t row) const {
    double sum = 0;
    for (int64_t k = 0; k < 100; ++k) sum += rows_->at(row * 100 + k);
    return sum;
  }
  Array zeros(ir::DType type, std::vector<int64_t> shape) const {
    return testing::make_array(type, std::move(shape), [](int64_t) { return 0; });
  }
};

TEST_F(Collectives, AtomicElementsOfParallelLoopsAndOfBlocks) {
  load(R"(
@tilelang.jit
def total(A, B):
    A: T.Tensor[[5, 100], "float32"]
    B: T.Tensor[[1], "float32"]
    with T.Kernel(5, threads=64) as row:
        for k in T.Parallel(100):
            T.atomic_add(B[0], A[row, k])
)");
  auto sum = zeros(ir::kFloat32, {1});
  ASSERT_TRUE(evaluate("total(x0, x1)", {rows_, sum}).ok());
  double expected = 0;
  for (int64_t row = 0; row < 5; ++row) expected += sum_of_row(row);
  EXPECT_NEAR(sum->at(0), expected, 1e-4);
}

// Where no loop shares iterations out, every thread of the block does it.
TEST_F(Collectives, EachThreadCountsOnce) {
  load(R"(
@tilelang.jit
def count(B, guarded):
    B: T.Tensor[[1], "int32"]
    with T.Kernel(3, threads=48) as bx:
        if guarded:
            if T.get_thread_binding() == 0:
                T.atomic_add(B[0], 1)
        else:
            T.atomic_add(B[0], 1)
)");
  for (bool guarded : {false, true}) {
    auto counter = zeros(ir::kInt32, {1});
    auto called = evaluate(guarded ? "count(x0, True)" : "count(x0, False)", {counter});
    ASSERT_TRUE(called.ok()) << render(sources_, called.error());
    EXPECT_EQ(counter->at(0), guarded ? 3 : 3 * 48);
  }
}

TEST_F(Collectives, AtomicTiles) {
  load(R"(
@tilelang.jit
def columns(A, B, C):
    A: T.Tensor[[64, 32], "float32"]
    B: T.Tensor[[32], "float32"]
    C: T.Tensor[[4, 32], "float16"]
    with T.Kernel(4, threads=32) as bx:
        tile = T.alloc_shared((16, 32), "float32")
        sums = T.alloc_fragment((32,), "float32")
        T.copy(A[bx * 16, 0], tile)
        T.reduce_sum(tile, sums, dim=0)
        T.atomic_add(B, sums)
        T.atomic_max(C[bx, 0:32], sums)
        T.atomic_add(C[bx, 0:4], 1.0)
)");
  auto a = random_array(ir::kFloat32, {64, 32}, 2);
  auto b = zeros(ir::kFloat32, {32}), c = zeros(ir::kFloat16, {4, 32});
  auto called = evaluate("columns(x0, x1, x2)", {a, b, c});
  ASSERT_TRUE(called.ok()) << render(sources_, called.error());
  for (int64_t j = 0; j < 32; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < 64; ++i) sum += a->at(i * 32 + j);
    EXPECT_NEAR(b->at(j), sum, 1e-4);
  }
  for (int64_t i = 0; i < 128; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < 16; ++k) sum += a->at((i / 32 * 16 + k) * 32 + i % 32);
    EXPECT_NEAR(c->at(i), std::max(sum, 0.0) + (i % 32 < 4 ? 1 : 0), 1e-2) << i;
  }
}

// A histogram in shared memory whose old values give each element a place of its own.
TEST_F(Collectives, PreviousValues) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def places(N, threads):
    @T.prim_func
    def main(A: T.Tensor((N,), "int32"), B: T.Tensor((N,), "int32")):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            count = T.alloc_shared((4,), "int32")
            T.clear(count)
            T.sync_threads()
            place = T.atomic_add(count[A[tx]], 1, return_prev=True)
            T.sync_threads()
            B[tx] = place * 100 + T.atomic_load(count[A[tx]])
    return main
)");
  auto a = testing::make_array(ir::kInt32, {32}, [](int64_t i) { return static_cast<double>(i * i % 4); });
  auto b = call("places(32, 32)(x0)", {a});
  ASSERT_TRUE(b);
  for (int bin : {0, 1}) {
    std::vector<int64_t> seen;
    for (int64_t i = 0; i < 32; ++i)
      if (static_cast<int>(a->at(i)) == bin) seen.push_back(static_cast<int64_t>(b->at(i)));
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(seen.size(), 16u);
    for (size_t k = 0; k < seen.size(); ++k) EXPECT_EQ(seen[k], static_cast<int64_t>(k * 100 + 16));
  }
}

TEST_F(Collectives, AtomicErrors) {
  load(R"(
@tilelang.jit
def wrong(A, which):
    A: T.Tensor[[8, 8], "float32"]
    with T.Kernel(1, threads=32) as _:
        s = T.alloc_shared((4, 4), "float32")
        if which == 0:
            T.atomic_or(A[0, 0], 1)
        elif which == 1:
            T.atomic_add(A[0, 0], 1, memory_order="weak")
        elif which == 2:
            T.atomic_add(A[0:4, 0:4], s, return_prev=True)
        elif which == 3:
            T.atomic_add(A[0:2, 0:4], s)
        else:
            for i in T.Parallel(4):
                T.atomic_add(A[0:4, 0:4], s)
)");
  auto a = zeros(ir::kFloat32, {8, 8});
  EXPECT_THAT(failure("wrong(x0, 0)", {a}), HasSubstr("combines bits, but `A` holds float32"));
  EXPECT_THAT(failure("wrong(x0, 1)", {a}), HasSubstr("there is no memory order `weak`"));
  EXPECT_THAT(failure("wrong(x0, 2)", {a}), HasSubstr("has no previous value"));
  EXPECT_THAT(failure("wrong(x0, 3)", {a}), HasSubstr("unequal extents"));
  EXPECT_THAT(failure("wrong(x0, 4)", {a}), HasSubstr("inside a parallel or vectorized loop"));
}

constexpr const char* kAllReduce = R"(
@tilelang.jit(out_idx=[-1])
def rows(M, N, threads, op="sum"):
    identity = {"sum": 0.0, "max": -1e30, "mul": 1.0}[op]
    combine = {"sum": lambda x, y: x + y, "max": lambda x, y: T.max(x, y), "mul": lambda x, y: y * x}[op]
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=threads) as row:
            tx = T.get_thread_binding(0)
            own = T.alloc_local((1,), "float32")
            all = T.alloc_local((1,), "float32")
            own[0] = identity
            for k in T.serial(T.ceildiv(N, threads)):
                if k * threads + tx < N:
                    own[0] = combine(own[0], A[row, k * threads + tx])
            with T.attr(
                T.comm_reducer(combine, [T.Cast("float32", identity)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(T.uint32(1), own[0], True, all[0], tx, dtype="handle")
                )
            if tx == threads - 1:
                B[row] = all[0]
    return main
)";

TEST_F(Collectives, AllThreadsFindTheTotal) {
  load(kAllReduce);
  expect_near(call("rows(5, 100, 32)(x0)", {rows_}), 1e-5, [&](int64_t i) { return sum_of_row(i); });
  expect_near(call("rows(5, 100, 24, op='max')(x0)", {rows_}), 0, [&](int64_t i) {
    double most = -1;
    for (int64_t k = 0; k < 100; ++k) most = std::max(most, rows_->at(i * 100 + k));
    return most;
  });
  auto near_one = testing::make_array(ir::kFloat32, {5, 100}, [](int64_t i) { return 1 + 0.001 * double(i % 7); });
  expect_near(call("rows(5, 100, 16, op='mul')(x0)", {near_one}), 1e-4, [&](int64_t i) {
    double product = 1;
    for (int64_t k = 0; k < 100; ++k) product *= near_one->at(i * 100 + k);
    return product;
  });
}

// Threads that differ along the other axis form groups of their own; some take no part.
TEST_F(Collectives, AllReduceOverOneAxisOfTheBlock) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def rows(M, N, lanes=8, group=4):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, lanes), "float32")):
        with T.Kernel(T.ceildiv(M, group), threads=(lanes, group)) as b:
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            all = T.alloc_local((1,), "float32")
            value = T.if_then_else(b * group + ty < M, A[b * group + ty, tx], 0.0)
            with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope",
                        T.reinterpret(T.uint64(0), dtype="handle")):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), value, tx != 2, all[0], tx, dtype="handle"))
            if b * group + ty < M:
                B[b * group + ty, tx] = all[0]
    return main
)");
  auto a = random_array(ir::kFloat32, {6, 8}, 3);
  expect_near(call("rows(6, 8)(x0)", {a}), 1e-6, [&](int64_t i) {
    double sum = 0;
    for (int64_t k = 0; k < 8; ++k) sum += k == 2 ? 0 : a->at(i / 8 * 8 + k);
    return sum;
  });
}

TEST_F(Collectives, AllReduceErrors) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def wrong(which):
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32) as _:
            tx = T.get_thread_binding(0)
            all = T.alloc_local((1,), "float32")
            if which == 0:
                T.tvm_thread_allreduce(T.uint32(1), A[tx], True, all[0], tx, dtype="handle")
            elif which == 1:
                with T.attr(T.comm_reducer(lambda x, y: x - y, [0.0]), "reduce_scope", 0):
                    T.tvm_thread_allreduce(T.uint32(1), A[tx], True, all[0], tx, dtype="handle")
            elif which == 2:
                with T.attr(T.comm_reducer(lambda x, y: x + y, [0.0]), "reduce_scope", 0):
                    if tx < 8:
                        T.tvm_thread_allreduce(T.uint32(1), A[tx], True, all[0], tx, dtype="handle")
            else:
                with T.attr(T.comm_reducer(lambda x, y: x + y, [0.0]), "reduce_scope", 0):
                    T.tvm_thread_allreduce(T.uint32(1), A[tx], True, all[0], tx + 1, dtype="handle")
            B[tx] = all[0]
    return main
)");
  EXPECT_THAT(failure("wrong(0)(x0)", {rows_}), HasSubstr("stands outside `with T.attr(T.comm_reducer"));
  EXPECT_THAT(failure("wrong(1)(x0)", {rows_}), HasSubstr("cannot combine their values"));
  EXPECT_THAT(failure("wrong(2)(x0)", {testing::make_array(ir::kFloat32, {32}, [](int64_t) { return 1; })}),
              HasSubstr("synchronise inside"));
  EXPECT_THAT(failure("wrong(3)(x0)", {rows_}), HasSubstr("reduces over thread indices"));
}

// In both forms: updates in place, and contributions that are collected in another tile.
TEST_F(Collectives, Reducers) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def rows(form, op="sum"):
    @T.prim_func
    def main(A: T.Tensor((5, 100), "float32"), B: T.Tensor((5,), "float32")):
        with T.Kernel(1, threads=64) as _:
            r = T.alloc_reducer((5,), "float32", op=op)
            out = T.alloc_fragment((5,), "float32")
            if form == "old":
                T.clear(r)
                for i, k in T.Parallel(5, 100):
                    r[i] += A[i, k]
                T.finalize_reducer(r)
                T.copy(r, B)
            else:
                T.reducer_init(r)
                for i, k in T.Parallel(5, 100):
                    T.reducer_update(r[i], A[i, k])
                T.finalize_reducer(r, out)
                T.copy(out, B)
    return main
)");
  for (const char* form : {"rows('old')(x0)", "rows('new')(x0)"})
    expect_near(call(form, {rows_}), 1e-5, [&](int64_t i) { return sum_of_row(i); });
  expect_near(call("rows('new', 'min')(x0)", {rows_}), 0, [&](int64_t i) {
    double least = 1;
    for (int64_t k = 0; k < 100; ++k) least = std::min(least, rows_->at(i * 100 + k));
    return least;
  });
  EXPECT_THAT(failure("rows('new', 'xor')(x0)", {rows_}), HasSubstr("reducers of `xor` are not supported"));
}

// Each thread contributes, as often as it comes by; all of them read the sum.
TEST_F(Collectives, ReducersThatThreadsContributeTo) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def total():
    @T.prim_func
    def main(A: T.Tensor((5, 100), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding(0)
            r = T.alloc_reducer((1,), "float32", op="sum", replication="all")
            T.clear(r)
            for i in T.serial(5):
                r[0] += A[i, tx]
            if tx < 36:
                r[0] += A[0, 64 + tx]
            T.finalize_reducer(r)
            B[tx] = r[0]
    return main
)");
  expect_near(call("total()(x0)", {rows_}), 1e-4, [&](int64_t) {
    double sum = sum_of_row(0);
    for (int64_t i = 1; i < 5; ++i) {
      for (int64_t k = 0; k < 64; ++k) sum += rows_->at(i * 100 + k);
    }
    return sum;
  });
}

TEST_F(Collectives, Scans) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def scan(dim, reverse, op="sum", dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((12, 20), dtype), B: T.Tensor((12, 20), dtype)):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((12, 20), dtype)
            f = T.alloc_fragment((12, 20), dtype)
            T.copy(A, s)
            if op == "max":
                T.cummax(s, f, dim=dim, reverse=reverse)
            elif reverse:
                T.cumsum(s, f, dim, reverse)
            else:
                T.cumsum(s, dim=dim)
                T.copy(s, f)
            T.copy(f, B)
    return main
)");
  auto a = random_array(ir::kFloat32, {12, 20}, 5);
  const auto along = [&](int64_t i, bool rows, bool reverse, bool most) {
    const int64_t row = i / 20, column = i % 20, count = rows ? 12 : 20, here = rows ? row : column;
    double result = most ? -2 : 0;
    for (int64_t k = reverse ? here : 0; k < (reverse ? count : here + 1); ++k) {
      const double x = a->at(rows ? k * 20 + column : row * 20 + k);
      result = most ? std::max(result, x) : result + x;
    }
    return result;
  };
  expect_near(call("scan(0, False)(x0)", {a}), 1e-5, [&](int64_t i) { return along(i, true, false, false); });
  expect_near(call("scan(-1, True)(x0)", {a}), 1e-5, [&](int64_t i) { return along(i, false, true, false); });
  expect_near(call("scan(1, True, op='max')(x0)", {a}), 0, [&](int64_t i) { return along(i, false, true, true); });
  EXPECT_THAT(failure("scan(2, True)(x0)", {a}), HasSubstr("`dim=2` of `T.cumsum`: `s` has 2 axes"));
}

TEST_F(Collectives, ReductionsOfBitsAndWithNaN) {
  load(R"(
@tilelang.jit(out_idx=[-1])
def bits(op):
    @T.prim_func
    def main(A: T.Tensor((4, 16), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32) as _:
            f = T.alloc_fragment((4, 16), "int32")
            r = T.alloc_fragment((4,), "int32")
            T.copy(A, f)
            T.reduce(f, r, op, dim=1)
            T.copy(r, B)
    return main

@tilelang.jit(out_idx=[-1])
def most(keep):
    @T.prim_func
    def main(A: T.Tensor((4, 16), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32) as _:
            f = T.alloc_fragment((4, 16), "float32")
            r = T.alloc_fragment((4,), "float32")
            T.copy(A, f)
            T.reduce_max(f, r, dim=1, nan_propagate=keep)
            T.copy(r, B)
    return main
)");
  auto a = testing::make_array(ir::kInt32, {4, 16}, [](int64_t i) { return double((i * 37 + 11) % 1024 | (i < 16)); });
  for (const char* op : {"bitand", "bitor", "bitxor"}) {
    expect_near(call(std::string("bits('") + op + "')(x0)", {a}), 0, [&](int64_t i) {
      auto result = static_cast<int32_t>(a->at(i * 16));
      for (int64_t k = 1; k < 16; ++k) {
        const auto x = static_cast<int32_t>(a->at(i * 16 + k));
        result = op[3] == 'a' ? result & x : op[3] == 'o' ? result | x : result ^ x;
      }
      return double{static_cast<double>(result)};
    });
  }
  auto with_nan =
      testing::make_array(ir::kFloat32, {4, 16}, [](int64_t i) { return i == 20 ? std::nan("") : double(i); });
  auto passed = call("most(False)(x0)", {with_nan}), kept = call("most(True)(x0)", {with_nan});
  ASSERT_TRUE(passed && kept);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(passed->at(i), double(i * 16 + 15));
    EXPECT_EQ(std::isnan(kept->at(i)), i == 1);
  }
}

}  // namespace
}  // namespace tilepilot::stage
