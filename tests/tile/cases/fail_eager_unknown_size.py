# call: add(T.Tensor((64,), "float32"))
import tilelang
import tilelang.language as T


@tilelang.jit
def add(A):
    N, K = T.const("N, K")
    A: T.Tensor[[N], "float32"]
    with T.Kernel(K) as bx:
        T.clear(A)
