import sys

with open(sys.argv[0]) as file:
    print(file.read())
