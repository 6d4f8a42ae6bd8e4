import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


def build_fc_last_step(B, L, K, N, dtype="float16", accum_dtype="float"):
    @tilelang.jit(out_idx=-1)
    @T.prim_func
    def fc_last_step(
        seq: T.Tensor((B, L, K), dtype),
        W: T.Tensor((N, K), dtype),
        bias: T.Tensor((N,), dtype),
        out: T.Tensor((B, N), dtype),
    ):
        with T.Kernel(B, threads=N) as b:
            n = T.get_thread_binding(0)
            h = T.alloc_shared((K,), accum_dtype)
            acc = T.alloc_local((1,), accum_dtype)
            for i in T.serial(T.ceildiv(K, N)):
                if i * N + n < K:
                    h[i * N + n] = T.Cast(accum_dtype, seq[b, L - 1, i * N + n])
            T.sync_threads()
            acc[0] = T.Cast(accum_dtype, bias[n])
            for k in T.serial(K):
                acc[0] += h[k] * T.Cast(accum_dtype, W[n, k])
            out[b, n] = T.Cast(dtype, acc[0])

    return fc_last_step


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size):
        super().__init__()
        self.lstm = nn.LSTM(input_size, hidden_size, num_layers, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(hidden_size * 2, output_size)
        self._fc_kernel = None

    def forward(self, x, h0, c0):
        self.lstm.flatten_parameters()
        seq, (hn, cn) = self.lstm(x, (h0, c0))
        seq16 = seq.to(torch.float16).contiguous()
        if self._fc_kernel is None:
            self._fc_kernel = build_fc_last_step(*seq16.shape, self.fc.out_features)
        y = self._fc_kernel(seq16, self.fc.weight.to(torch.float16), self.fc.bias.to(torch.float16))
        return y.to(x.dtype)
