def kernel(M, N, block_M=64, *, dtype="float32"):
    return M * N


kernel(128, blockM=32)
