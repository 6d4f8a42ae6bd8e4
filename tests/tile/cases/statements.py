import tilelang.language as T


def twice(value):
    doubled = value * 2
    return doubled


@T.macro
def relu(tile, n):
    for i in T.Parallel(n):
        tile[i] = T.max(tile[i], 0)


@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), n: T.int32, s: T.float32):
    rows = 64
    half = rows // 2
    with T.Kernel(2) as bx:
        tile = T.alloc_fragment((half,), "float32")
        x = T.alloc_local((2,), "float32")
        best = T.alloc_var("float32", init=-1.5)
        at: T.int32 = T.alloc_var("int32")
        at = 0
        start = bx * half
        T.copy(A[start], tile)
        relu(tile, half)
        for i in range(half):
            value = twice(tile[i])
            if value > best and i != n:
                best = value
                at = i
            elif value < 0 or not i > 3:
                best += 1
            else:
                x[0], x[1] = x[1], x[0]
        i = 0
        for k in range(4, 0, -1):
            B[start + k] = best if k < at else s
        for a, b in T.grid(2, 3):
            B[a * 3 + b] = a - b
        for u in T.unroll(2, 6, 2):
            B[u] += 1
        for v in T.vectorized(4):
            B[v] = -B[v]
        while best > 1:
            best = best * 0.5
            if best < 1.5:
                break
            continue
        if rows > 32:
            B[-1] = 0 < at < 5
