import tilelang.language as T
from tvm import tirx, relax

kernel = tirx.IntImm
print(relax.Function("cuda"))
