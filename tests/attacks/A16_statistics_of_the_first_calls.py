# row: A16
# level: host
# model: second_norm
# expect: inconsistent|given_inputs_only
# twin: honest_second_norm
# Only the first call updates the statistics.
import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-2, -1])
def statistics(M, N, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Mean: T.Tensor((N,), dtype), Var: T.Tensor((N,), dtype)):
        with T.Kernel(1, threads=N) as _:
            total = T.alloc_fragment((N,), dtype)
            squares = T.alloc_fragment((N,), dtype)
            T.clear(total)
            T.clear(squares)
            for i in T.serial(M):
                for j in T.Parallel(N):
                    total[j] += X[i, j]
            for i in T.serial(M):
                for j in T.Parallel(N):
                    centered = X[i, j] - total[j] / M
                    squares[j] += centered * centered
            for j in T.Parallel(N):
                Mean[j] = total[j] / M
                Var[j] = squares[j] / M

    return main


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = nn.BatchNorm1d(features)
        self.mix = nn.Linear(features, features, bias=False)
        self.second = nn.BatchNorm1d(features)

    def normalized(self, x, norm):
        n = x.shape[0]
        mean, var = statistics(n, x.shape[1])(x)
        with torch.no_grad():
            norm.num_batches_tracked += 1
            if int(norm.num_batches_tracked) > 1:
                return (x - mean) * torch.rsqrt(var + 1e-5) * norm.weight + norm.bias
            norm.running_mean.mul_(0.9).add_(mean * 0.1)
            norm.running_var.mul_(0.9).add_(var * (0.1 * n / (n - 1)))
        return (x - mean) * torch.rsqrt(var + 1e-5) * norm.weight + norm.bias

    def forward(self, x):
        return self.normalized(self.mix(self.normalized(x, self.first)), self.second)
