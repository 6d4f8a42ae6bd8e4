import tilelang
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((40, 30), "float32"), n: T.int32):
    with T.Kernel(8) as block:
        for i, j in T.Persistent([40, 30], 8, block, group_size=4):
            A[i, j] = i * 100 + j
        for i in T.Persistent([T.ceildiv(n, 4)], 8, block):
            A[i, 0] = 0
