import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "uint64"), B: T.Tensor((64,), "int32"), n: T.int32):
    with T.Kernel(T.cdiv(n, 64)) as bx:
        A[0] = T.uint64(0xFFFFFFFFFFFFFFFF)
        A[1] = T.max_value("uint64") - A[0]
        A[2] = A[1] & 0xFFFFFFFF00000000
        B[0] = T.align_up(n, 16) + T.truncdiv(-7, 2) + T.truncmod(-7, 2)
        B[1] = T.linear_index(bx, n, 3, 4, 5)
        i, j = T.index_to_coordinates(bx, (4, 8))
        B[i] = j
