# Functions: arguments of every kind, closures, recursion, decorators, lambdas.
def plain(a, b=2, *rest, c, d=4, **more):
    return a, b, rest, c, d, sorted(more.items())

print(plain(1, c=3))
print(plain(1, 5, 6, 7, c=3, d=8, e=9, f=10))
print(plain(*[1, 2, 3], **{"c": 4, "z": 5}))

def positional_only(a, b, /, c, *, d):
    return a + b + c + d

print(positional_only(1, 2, 3, d=4), positional_only(1, 2, c=3, d=4))

def counter():
    count = 0
    def step(by=1):
        nonlocal count
        count += by
        return count
    return step

first, second = counter(), counter()
print(first(), first(5), second(), first())

def make_adders():
    return [lambda x, n=n: x + n for n in range(3)], [lambda x: x + n for n in range(3)]

early, late = make_adders()
print([f(10) for f in early], [f(10) for f in late])

total = 0
def add_to_total(n):
    global total
    total += n
    return total

add_to_total(5); add_to_total(7)
print(total)

def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print([fib(i) for i in range(15)])

def twice(f):
    def wrapper(*args, **kwargs):
        return f(f(*args, **kwargs))
    return wrapper

@twice
def triple(x):
    "Three times."
    return 3 * x

print(triple(2), triple.__name__)

def outer(x):
    def middle():
        def inner():
            return x
        return inner
    x += 1
    return middle()()
print(outer(41))

def shadow(len):
    return len + 1
print(shadow(3), len([1, 2]))

def defaults(items=[]):
    items.append(1)
    return items
defaults(); print(defaults())
print((lambda *a, k=3: (a, k))(1, 2), (lambda: None)())

def annotated(x: int, y: "float" = 2.0) -> str:
    z: int = 3
    return f"{x} {y} {z}"
print(annotated(1), annotated.__annotations__["x"])

def swap(a, b):
    a, b = b, a
    (c, d), *e = (a, b), 1, 2
    [f, *g, h] = range(5)
    return a, b, c, d, e, f, g, h
print(swap(1, 2))

x = y = z = 5
x += 1; y -= 2; z **= 2
print(x, y, z, (w := x + y), w)

def returns_nothing(): pass
print(returns_nothing(), print.__name__)
def early_return(n):
    for i in range(10):
        while True:
            if i == n: return i * 100
            break
    return -1
print(early_return(3), early_return(20))
print(max((1, 5, 3), key=lambda v: -v), sorted("bca", reverse=True), min(4, 2, 8))
def gen(n):
    for i in range(n):
        yield i
    yield from "ab"
print(list(gen(3)), sum(gen_item for gen_item in [1, 2, 3]))
it = gen(2)
print(next(it), next(it), next(it), next(it), next(it, "end"))
def noted(tag):
    print("decorator", tag)
    def apply(f):
        print("apply", tag)
        return f
    return apply
@noted("outer")
@noted("inner")
def decorated(x=print("default")): return x
print(decorated(1))
