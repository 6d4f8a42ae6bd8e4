sizes = [1, 2, 3]
total = sizes + (4, 5)
