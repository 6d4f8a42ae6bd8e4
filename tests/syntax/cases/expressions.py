a or b and not c or (d or e)
not (a and b) == c
(not a) in b
a < b <= c is not d not in e
a if b else c if d else e
(a if b else c) if (d if e else f) else lambda: 0
lambda x, /, y=1, *z, w, v=2, **k: x
lambda *, a: a
-a ** -b ** c
(-a) ** b
(a ** b) ** c
a - (b - c) - d
a * (b + c) % d // e @ f
~a | b ^ c & d << e >> f + g
(a | b) & c
a.b.c[d](e).f
(1).real
1.5.real
-9223372036854775808
a[1], a[1:2], a[:], a[::2], a[1:2:3, ..., None], a[b,], a[*c, d], a[()]
f(), f(a, *b, c, d=e, **g), f(x for x in y), f((x for x in y), 1), f(a := b), f(*a or b)
(), (a,), (a, b), [], [a], {a}, {}, {a: b, **c, d: e}
[*a, b], {*a, *b}, (*a, *b)
[x for x in y], {x for x in y}, {x: y for x, y in z}, (x for x in y)
[x for x, in y if x if not y for z in (x if a else b) if (lambda: 0)]
[(a := b), c := d]
(a := b)
print((yield_ := 1))
"a" 'b' """c
d""", r"\n", "\t\"'"
f"a{b}c{d!r:>{e}.{f}}{g=}{h = !s:x}{{}}"
f"{'a'}{x['b']}{f'{y}'}{ {1: 2} }{(lambda: 0)}{a, b}"
f'''{x["a"]}
{f"{y['b']}"}'''
None, True, False, ...
1_000, 0xFF, 0o17, 0b11, 1e10, .5, 1., 1e999
变量 + é
