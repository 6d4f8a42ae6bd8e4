import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _build_softmax(M, N, threads=256, dtype="float16", accum_dtype="float"):
    """One block per row; maximum and sum go through a block-wide all-reduce."""

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def softmax(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M, threads=threads) as row:
            tx = T.get_thread_binding(0)
            local_max = T.alloc_local((1,), accum_dtype)
            local_sum = T.alloc_local((1,), accum_dtype)
            row_max = T.alloc_local((1,), accum_dtype)
            row_sum = T.alloc_local((1,), accum_dtype)

            local_max[0] = -T.infinity(accum_dtype)
            for k in T.serial(T.ceildiv(N, threads)):
                col = k * threads + tx
                if col < N:
                    local_max[0] = T.max(local_max[0], T.Cast(accum_dtype, X[row, col]))
            with T.attr(
                T.comm_reducer(lambda x, y: T.max(x, y), [T.min_value(accum_dtype)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(T.uint32(1), local_max[0], True, row_max[0], tx, dtype="handle")
                )

            local_sum[0] = T.Cast(accum_dtype, 0.0)
            for k in T.serial(T.ceildiv(N, threads)):
                col = k * threads + tx
                if col < N:
                    local_sum[0] += T.exp(T.Cast(accum_dtype, X[row, col]) - row_max[0])
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.Cast(accum_dtype, 0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(T.uint32(1), local_sum[0], True, row_sum[0], tx, dtype="handle")
                )

            for k in T.serial(T.ceildiv(N, threads)):
                col = k * threads + tx
                if col < N:
                    Y[row, col] = T.Cast(dtype, T.exp(T.Cast(accum_dtype, X[row, col]) - row_max[0]) / row_sum[0])

    return softmax


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._kernel_cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x_fp16 = x.to(dtype=torch.float16).contiguous()
        M, N = x_fp16.shape
        key = (M, N, "float16")
        if key not in self._kernel_cache:
            self._kernel_cache[key] = _build_softmax(M, N)
        return self._kernel_cache[key](x_fp16).to(x.dtype)
