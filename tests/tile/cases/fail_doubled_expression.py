import tilelang
import tilelang.language as T

m = T.dynamic("m")
for _ in range(60):
    m = m * m
