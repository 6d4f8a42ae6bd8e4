def power(n):
    return 2 * power(n - 1)


power(8)
