# `tilelang.cuda.intrinsics.sparse_layout`: how the metadata of 2:4 sparse operands is counted (PTX ISA 9.7.15.6,
# "sparse matrix storage"): of each group of elements so many are kept, and 4 bits say which.
import tilelang.language as T

GROUP_CONFIG = {T.float32: (1, 2)}
for kept in (T.float16, T.bfloat16, T.int8, T.uint8, T.float8_e4m3fn, T.float8_e5m2):
    GROUP_CONFIG[kept] = (2, 4)


def get_e_factor(a_dtype, meta_dtype):
    """Elements of the dense operand for one element of metadata."""
    return T.dtype(meta_dtype).bits // 4 * GROUP_CONFIG[T.dtype(a_dtype)][1]


def get_e_replicate_factor(a_dtype):
    return 1 if T.dtype(a_dtype).bits <= 8 else 2
