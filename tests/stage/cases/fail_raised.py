def check(shape):
    if len(shape) != 2:
        raise ValueError(f"expected 2 dimensions, got {len(shape)}")


def forward(shape):
    check(shape)


forward((1, 2, 3))
