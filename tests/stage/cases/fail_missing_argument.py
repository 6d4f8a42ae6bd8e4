class Layer:
    def __init__(self, size, bias):
        self.size = size


def make():
    return Layer(3)


make()
