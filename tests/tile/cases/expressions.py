import tilelang.language as T


@T.prim_func
def main(
    F: T.Tensor((16,), "float32"),
    H: T.Tensor((16,), "float16"),
    G: T.Tensor((16,), T.bfloat16),
    I: T.Tensor((16,), "int32"),
    S: T.Tensor((16,), "int8"),
    U: T.Tensor((16,), "uint8"),
    L: T.Tensor((16,), "bool"),
):
    with T.Kernel(1) as bx:
        for i in T.Parallel(16):
            F[i] = H[i] + F[i]
            F[i] = H[i] + G[i]
            F[i] = H[i] * 2 + 0.5
            F[i] = I[i] * 0.5
            F[i] = I[i] * H[i]
            F[i] = F[i] / 3 - 1 / F[i]
            F[i] = F[i] // 2 + F[i] % 3
            F[i] = F[i] ** 2 + F[i] ** 0.5 + 2.0 ** F[i]
            F[i] = T.Cast("float32", H[i]) + T.cast(I[i], "float32") + I[i].astype(T.float32) + T.float32(1)
            F[i] = T.reinterpret("float32", I[i]) + T.reinterpret(I[i], T.float32)
            F[i] = T.if_then_else(I[i] > 0, H[i], 0) + T.Select(L[i], 1.0, F[i])
            F[i] = T.exp(I[i]) + T.sqrt(H[i]) + T.sigmoid(F[i]) + T.erf(F[i]) + T.rsqrt(2)
            F[i] = T.max(F[i], 0) + T.min(F[i], H[i]) + T.clamp(F[i], -1, 1) + T.pow(F[i], 3) + T.abs(I[i])
            F[i] = min(F[i], 1) + max(F[i], 2, H[i]) + abs(F[i]) + float(I[i]) + pow(F[i], 2)
            F[i] = T.max(T.float32("-inf"), H[i]) + T.min(T.float16("inf"), F[i])
            F[i] = -T.infinity("float32") + T.min_value("float16") + T.max_value("int8") + T.fmod(F[i], 2.0)
            I[i] = S[i] + U[i] + L[i] + (L[i] + L[i])
            I[i] = (I[i] << 2 | S[i]) & 0xFF ^ ~I[i] >> 1
            I[i] = T.ceildiv(I[i], 4) + T.floordiv(I[i], 4) + T.floormod(I[i], 4) + int(F[i]) + T.ceildiv(7, 2)
            I[i] = (i + 0) * 1 + i * 0 + 2 * 3 + (i + 1) + 2
            L[i] = T.isnan(F[i]) or T.And(I[i] > 0, L[i]) and not L[i]
            L[i] = I[i]
            S[i] = F[i]
            T.copy(F[i], H[i])
