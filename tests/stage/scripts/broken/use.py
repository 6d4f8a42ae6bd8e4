def ratio(x):
    return 1 / x


print(ratio(0))
