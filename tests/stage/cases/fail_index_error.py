items = [10, 20]
items[2]
