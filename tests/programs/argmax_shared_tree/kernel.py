import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def argmax_rows(M, N, threads=128, dtype="float16"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def argmax(X: T.Tensor((M, N), dtype), Out: T.Tensor((M,), "int32")):
        with T.Kernel(M, threads=threads) as row:
            tid = T.get_thread_binding(0)
            vals = T.alloc_shared((threads,), "float32")
            idxs = T.alloc_shared((threads,), "int32")
            best_v = T.alloc_local((1,), "float32")
            best_i = T.alloc_local((1,), "int32")

            best_v[0] = T.float32(-1e30)
            best_i[0] = 0
            for k in T.serial(T.ceildiv(N, threads)):
                col = tid + k * threads
                if col < N:
                    if T.Cast("float32", X[row, col]) > best_v[0]:
                        best_v[0] = T.Cast("float32", X[row, col])
                        best_i[0] = col
            vals[tid] = best_v[0]
            idxs[tid] = best_i[0]
            T.sync_threads()

            for s in T.unroll(7):
                offset = threads // 2 >> s
                if tid < offset:
                    other = vals[tid + offset]
                    # ties go to the smaller index
                    if other > vals[tid] or (other == vals[tid] and idxs[tid + offset] < idxs[tid]):
                        vals[tid] = other
                        idxs[tid] = idxs[tid + offset]
                T.sync_threads()

            if tid == 0:
                Out[row] = idxs[0]

    return argmax


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self._cache = {}

    def forward(self, x):
        M, N = x.shape
        if (M, N) not in self._cache:
            self._cache[(M, N)] = argmax_rows(M, N)
        return self._cache[(M, N)](x.to(torch.float16).contiguous()).to(torch.int64)
