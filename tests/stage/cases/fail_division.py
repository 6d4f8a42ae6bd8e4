blocks = 0
print(128 // blocks)
