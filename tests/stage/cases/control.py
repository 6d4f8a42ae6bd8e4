# Control flow and operators.
for i in range(3):
    if i == 1: continue
    print(i, end=" ")
else:
    print("for else")
for i in range(3):
    if i == 1: break
else:
    print("never")
n = 0
while n < 3:
    n += 1
    if n == 2: continue
else:
    print("while else", n)
while True:
    n -= 1
    if not n: break
print(n)
print(1 < 2 < 3, 1 < 3 < 2, 1 == 1.0, None is None, not None, [] or "default", 0 and 1, 1 and 2, "" or 0 or None)
print(3 if n else 4, (1 if True else 2) + 1, 5 if 0 else 6 if 0 else 7)
print(~5, -5 >> 1, 1 << 10, 6 & 3, 6 | 3, 6 ^ 3, -7 // 2, -7 % 2, 7 // -2, 2 ** 3 ** 2, -2 ** 2, (-2) ** 2, +3, not 1 == 2)
print(True + 1, True == 1, False < True, 1.5 // 0.5, -1.5 % 1, 7.0 // 2, 1e308 * 10, -1e308 * 10, 0.0 == -0.0, 3 == 3.0000000001)
print(2 ** 62, -2 ** 62 - 1, 9223372036854775807, 10 ** 18, 7 / 2, 6 / 3, 1 / 3, 2 ** 0.5, 4 ** -1, 0 ** 0)
a = b = []
a.append(1)
print(b, a is b, a == [1], a is not [1])
x, (y, *z), w = 1, (2, 3, 4), 5
print(x, y, z, w)
(p, q), r = [1, 2], 3
print(p, q, r)
d = {}
d["k"], d["l"] = 1, 2
class O: pass
o = O(); o.a, o.b = 5, [0, 0]
o.b[1], o.a = o.a, 9
print(d, o.a, o.b)
if n := len("abcd"): print("walrus", n)
print([y := 1, y ** 2], [last := v for v in range(3)], last)
pass
del x
try: x
except NameError: print("deleted")
print(*[1, 2], *"ab", sep="-", end="!\n")
def f(): return 1, 2
a, b = f(); print(a + b)
lst = [1, 2, 3]
for i, v in enumerate(lst): lst[i] = v * 2
print(lst)
i = 10
lst[0], lst[1] = lst[1], lst[0]
print(lst, i)
total = 0
for row in [[1, 2], [3]]:
    for v in row:
        if v == 2: break
        total += v
print(total)
def any_ten(vs): return any(v == 10 for v in vs)
print(any_ten([1, 10]), any_ten([]))
x = 5
x = x if x > 10 else -x; print(x)
assert x == -5, "x"
print(1 if [] else 2, [0][0] if [0] else None)
while n:
    n -= 1
    for _ in range(2):
        if n == 2: break
    else:
        continue
    break
print("n", n)
