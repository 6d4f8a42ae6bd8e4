# call: pack(4)
import tilelang
import tilelang.language as T
from tilelang import tvm
from tvm import DataType
from tvm import tirx


def nibble(bits: int, value: tirx.PrimExpr, position: tirx.PrimExpr, dtype: str):
    assert dtype == T.float16 and value.dtype == T.uint8
    mask = tirx.const((1 << bits) - 1, T.uint16)
    part = (value >> (position.astype(T.uint16) * tirx.const(bits, T.uint16))) & mask
    return tirx.reinterpret("float16", part << tirx.const(9, "uint16"))


@tilelang.jit(out_idx=[1])
def pack(bits, target=tvm.target):
    width = DataType("float16").bits * 8 // tvm.DataType(T.float32).bits

    @T.prim_func
    def main(A: T.Tensor((64,), "uint8"), B: T.Tensor((64, width), "float16")):
        with T.Kernel(1) as bx:
            for i, j in T.Parallel(64, width):
                B[i, j] = nibble(bits, A[i], j % 2, T.float16)

    return main
