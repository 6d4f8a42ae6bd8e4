shape = [1, 2, 3]
last = shape[len(shape)]
