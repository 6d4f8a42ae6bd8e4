import math
import os

os.environ["THREADS"] = "4"
print(math.sqrt(int(os.environ.get("THREADS", "1"))), os.getenv("HOME"))
print(os.listdir("."))
