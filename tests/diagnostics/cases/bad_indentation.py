def f():
    x = 1
  y = 2

def g():
x = 1

    z = 3
