def f(flag):
    if flag:
        value = 1
    return value


f(False)
