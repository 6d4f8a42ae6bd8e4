import tilelang.language as T

n = T.dynamic("n")


@T.macro
def swap(buffer, i, j):
    old = buffer[i]
    buffer[i] = buffer[j]
    buffer[j] = old


@T.prim_func
def main(A: T.Tensor((n, 16), "int32"), B: T.StridedTensor((n, 16), (32, 1), "float16"), k: T.int32):
    with T.Kernel(n, threads=(16, 2)) as bx:
        s = T.alloc_shared((16,), "int32")
        own = T.alloc_local((4,), "int32")
        tx = T.get_thread_binding(0)
        s[tx] = A[bx, tx]
        T.sync_threads()
        while k > 3:
            if tx < 8:
                swap(s, tx, tx + 8)
            else:
                own[tx % 4] += s[tx] ^ k
            T.sync_threads()
            break
        T.atomic_add(A[bx, 0], own[0])
        B[bx, tx] = T.cast(s[(tx + 1) % 16], "float16") if tx > 2 else T.float16(0.5)
