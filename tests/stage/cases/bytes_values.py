# bytes: literals, methods, and ways from and to text and int.
b = b"abc\x00\xff"
print(b, len(b), b[0], b[-1], b[1:3], b[::-1], list(b), b.hex(), b + b"d", b * 2, b == b"abc\x00\xff", b"b" in b, 97 in b)
print(b.decode("latin-1"), b"abc".decode(), bytes([1, 2]), bytes(3), b"\n'", b'"', bytes.fromhex("00 ff"), b"a,b".split(b","), b"abc".upper())
print(b"abc".startswith(b"ab"), b"abc".startswith((b"x", b"a")), b"abc".replace(b"b", b"xy"), b"abc".find(b"c"), b" a ".strip(), b",".join([b"a", b"b"]))
print({b"k": 1}[b"k"], isinstance(b, bytes), type(b), bool(b""), b"a" < b"b", rb"\n", b"a" b"b", bytes("\u00e9", "utf-8"), b"\101\t\q\u0041")
print(int.from_bytes(b"\x01\x02", "big"), int.from_bytes(b"\x01\x02", "little"), (258).to_bytes(2, "big"), (5).to_bytes(4, "little"))
print((-2).to_bytes(2, "little", signed=True), int.from_bytes(b"\xfe\xff", "little", signed=True), (10 ** 20).to_bytes(9, "big").hex())
print("\u00e9".encode(), "\u00e9".encode("latin-1"), "\u00e9x".encode("ascii", "ignore"), b"\xff".decode("utf-8", errors="ignore"), b"\xffa".decode(errors="replace"))
for wrong in [lambda: b"a" + "b", lambda: b"abc"[9], lambda: b"\xff".decode(), lambda: "\u00e9".encode("ascii"), lambda: bytes("a"), lambda: bytes([300]), lambda: (300).to_bytes(1, "big"), lambda: b"a" < "a", lambda: bytes.fromhex("0g")]:
    try:
        print(wrong())
    except Exception as e:
        print(type(e).__name__)


def chunks(data, size):
    for at in range(0, len(data), size):
        yield data[at:at + size]


print(list(chunks(b"abcdefg", 3)), sum(b"\x01\x02"), max(b"az"), bytes(reversed(b"abc")), sorted(b"cab"), b"x" != "x")
