import tilelang
import tilelang.language as T


with T.Kernel(1) as bx:
    pass
