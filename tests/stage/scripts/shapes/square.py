import shapes  # half-way: only what stands before the import that led here

seen = shapes.unit


def area(side):
    return side * side * seen
