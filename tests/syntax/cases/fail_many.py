def f(a:
    x = 1 +
    return x y

class C
    z = 3 4

if a:
    b = ]
elif c d:
    e
else:
    g(

def h(x)
    return x

print "hello"
t = b"bytes" "text"
async def i():
    await j
match k:
    case 1:
        l
m = 0x; n = 1
o = 'never closed
p = f"{q"
  r
while s:
t = 1
