import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def _hinge(rows, cols, threads=256, dtype="float16", accum_dtype="float"):
    numel = rows * cols

    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def hinge(P: T.Tensor((rows, cols), dtype), Y: T.Tensor((cols,), dtype), S: T.Tensor((1,), accum_dtype)):
        with T.Kernel(1, threads=threads) as bx:
            tx = T.get_thread_binding(0)
            acc = T.alloc_local((1,), accum_dtype)
            red = T.alloc_local((1,), accum_dtype)
            acc[0] = 0.0
            for k in T.serial(T.ceildiv(numel, threads)):
                idx = k * threads + tx
                if idx < numel:
                    m = 1.0 - T.Cast(accum_dtype, P[idx // cols, idx % cols]) * T.Cast(accum_dtype, Y[idx % cols])
                    acc[0] += T.max(m, 0.0)
            with T.attr(
                T.comm_reducer(lambda x, y: x + y, [T.float32(0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), acc[0], True, red[0], tx, dtype="handle"))
            if tx == 0:
                S[0] = red[0] / numel

    return hinge


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = {}

    def forward(self, predictions, targets):
        key = tuple(predictions.shape)
        if key not in self.kernel:
            self.kernel[key] = _hinge(*key)
        out = self.kernel[key](predictions.to(torch.float16).contiguous(), targets.to(torch.float16).contiguous())
        return out[0].to(predictions.dtype)
