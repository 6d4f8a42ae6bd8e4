// Copies between tensors and tiles of one type move all bits, of infinities and of every NaN.
#include <gmock/gmock.h>

#include <cstring>

#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

class CopiedBits : public Run {
 protected:
  CopiedBits() : Run(backend()) {}

  // Of a type of one or two bytes: each of its codes, copied as `body` says by blocks of 64.
  void expect_kept(const std::string& type, const std::string& body) {
    load(R"(
@tilelang.jit
@T.prim_func
def kernel(X: T.Tensor((65536,), ")" +
         type + R"("), Y: T.Tensor((65536,), ")" + type + R"(")):
    with T.Kernel(1024, threads=32) as b:
        tile = T.alloc_shared((64,), ")" +
         type + R"(")
        held = T.alloc_fragment((64,), ")" +
         type + R"(")
)" + body);
    const ir::DType dtype = *ir::parse_dtype(type);
    const std::vector<int64_t> shape = {65536};
    const auto x = std::make_shared<testing::ArrayObject>(dtype, shape);
    const auto y = std::make_shared<testing::ArrayObject>(dtype, shape);
    const size_t width = static_cast<size_t>(dtype.bytes());
    auto* codes = static_cast<uint8_t*>(x->view.data);
    std::memset(y->view.data, 0x5a, 65536 * width);
    for (size_t i = 0; i < 65536 * width; ++i) codes[i] = static_cast<uint8_t>((i / width) >> (8 * (i % width)));
    call("kernel(x0, x1)", {x, y});
    EXPECT_EQ(std::memcmp(codes, y->view.data, 65536 * width), 0) << type << "\n" << body;
  }
};

TEST_F(CopiedBits, AreThoseOfTheTensor) {
  for (const char* type : {"float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"}) {
    expect_kept(type, "        T.copy(X[b * 64], tile)\n        T.copy(tile, Y[b * 64])\n");
    expect_kept(type, "        T.copy(X[b * 64], tile)\n        T.copy(tile, held)\n        T.copy(held, Y[b * 64])\n");
    expect_kept(
        type, "        for i in T.Parallel(64):\n            kept = X[b * 64 + i]\n            Y[b * 64 + i] = kept\n");
  }
}

TEST_F(CopiedBits, OfAnotherBlocksTileAreNotThoseOfTheOwnOne) {
  load(R"(
@tilelang.jit
@T.prim_func
def kernel(X: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")):
    with T.ClusterKernel(2, threads=32, cluster_dims=(2, 1, 1)) as b:
        given = T.alloc_shared((64,), "float32")
        taken = T.alloc_shared((64,), "float32")
        T.copy(X[b * 64], given)
        T.copy_cluster(given, taken, dst_block=T.block_rank_in_cluster() ^ 1)
        T.cluster_sync()
        T.copy(taken, Y[b * 64])
)");
  const Array x = random_array(ir::kFloat32, {128}, 1), y = random_array(ir::kFloat32, {128}, 2);
  EXPECT_THAT(failure("kernel(x0, x1)", {x, y}), ::testing::HasSubstr("blocks of a cluster share memory"));
}

}  // namespace
}  // namespace tilepilot::stage
