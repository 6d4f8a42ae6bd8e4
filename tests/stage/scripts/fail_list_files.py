import os

print(os.path.join("a", "b"))
print(os.listdir("."))
