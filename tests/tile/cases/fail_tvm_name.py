import tilelang.language as T
from tvm import tirx, target

kernel = tirx.IntImm
print(target.Target("cuda"))
