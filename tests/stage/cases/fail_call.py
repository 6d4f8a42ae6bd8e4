shape = (1, 2)
shape()
