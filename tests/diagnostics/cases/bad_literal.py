block = 0o128
size = 99999999999999999999
name = "matmul
path = "\xZZ"
mark = 1_000_
