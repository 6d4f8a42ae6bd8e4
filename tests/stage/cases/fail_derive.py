class Cache(dict):
    pass
