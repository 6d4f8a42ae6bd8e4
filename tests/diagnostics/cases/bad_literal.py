block = 0o128
name = "matmul
path = "\xZZ"
mark = 1_000_
