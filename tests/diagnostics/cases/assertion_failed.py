def check(n):
    assert n % 32 == 0, f"n must be a multiple of 32, got {n}"


check(100)
