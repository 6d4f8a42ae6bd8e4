# call: split(4, T.Tensor((8, 64), "float32"), T.Tensor((16,), "bfloat16"))
import tilelang
import tilelang.language as T


@tilelang.jit
def split(scale, x: T.Tensor((8, 64), "float32"), w, n: T.int32 = 3):
    K = T.const("K")
    w: T.Tensor[[K], "bfloat16"]
    low = T.empty(8, 32, dtype=T.float32)
    high = T.empty((8, 32), "float16")
    with T.Kernel(8) as row:
        for j in T.Parallel(32):
            low[row, j] = x[row, j] * scale
            high[row, j] = x[row, j + 32] + w[j % K] + n
    return low, high
