class Count(int):
    pass
