x = 2 ** 40
y = x * x
