# Strings, f-strings, formatting.
name, n, x = "tile", 42, 3.14159
print(f"{name} {n:5d}|{n:<5}|{n:^5}|{n:>+5}|{n:05}|{n:#x}|{n:b}|{n:,}|{x:.2f}|{x:10.3e}|{x!r}|{name!r:>8}|{name:*^10}")
print(f"{n=} {x = :.1f} {name=!s} {{braces}} {'nested ' + f'{n}'} {n:{'>'}{8}} {1234567.891:,.1f} {0.256:.1%} {1e10} {1e16} {1e-5} {123456789.0}")
print("%d %5.2f %s %r %x %05d %-5s| %+d %%" % (n, x, name, name, 255, 42, "ab", 7), "%s" % n, "%(a)s" % {"a": 1}, "%5s|%c" % ("x", "y"))
print("{} {1} {0}".replace("{} ", "").format("a", "b"), "{a}-{b:>4}".format(a=1, b=2), "{0[1]} {1.real}".format([1, 2], 5), "{:{}}".format("x", 4) + "|")
print("a,b,,c".split(","), " a  b ".split(), "a b c".split(" ", 1), "abc".partition("b"), "x".join(["1", "2"]), "a\nb\r\nc".splitlines(), "a b c".rsplit(None, 1))
print("Hello".upper(), "Hello".lower(), "hello world".title(), "hello".capitalize(), "aBc".swapcase(), "  x ".strip(), "xxaxx".strip("x"), "abc".replace("b", "--"), "aaa".replace("a", "b", 2))
print("hello".find("l"), "hello".rfind("l"), "hello".index("e"), "hello".count("l"), "hello".startswith("he"), "hello".endswith(("x", "lo")), "hello".find("z"))
print("42".isdigit(), "ab1".isalnum(), "ab".isalpha(), " ".isspace(), "Ab".isupper(), "ab".islower(), "a_1".isidentifier())
print("x".center(5, "-"), "x".ljust(3) + "|", "x".rjust(3), "42".zfill(5), "-42".zfill(5), "prefix_x".removeprefix("prefix_"), "x.py".removesuffix(".py"))
print(repr("it's"), repr('"q"'), repr("a\n\t\\"), repr("\x00\x7f"), str(None), str(True), str([1, "a"]), repr(1.0), repr(-0.0), repr(1e100), repr(float("nan")), float("-inf"))
print("a" < "b", "a" < "B", "abc" > "abd", "" < "a", "a" == "a", "z" * 0 == "", not "", "ab" + "cd", "ab" * 2, "b" not in "abc")
print("""multi
line""", r"raw\n", "a" "b", "\u00e9\t|", 'single', "\x41\101")
print(0.1 + 0.2, 1 / 3, 100.0, 1e22, 123456789012345678.0, 5e-324, 1.7976931348623157e308, 2.5e-7, 0.00001, 1234.5678e10)
print(f"{1e-7:g} {1e7:g} {123456789:g} {0.0001:g} {1.5:g} {100000:g} {1000000:g} {3.0:.0f} {2.5:.0f} {1.005:.2f} {12345.678:.3g} {5:.2f} {5:e}")
print(f"{True} {True:d} {None} {[1, 2]} {(1,)} {{'a': 1}} { {'a': 1} } {n if n > 3 else 0} {max(1, 2)} {'a' if x else 'b'}")
print(format(3.14159, ".3f"), format(255, "x"), format("a", ">5"), "{:>{w}.{p}f}".format(2.71828, w=8, p=2), f"{'é':>3}|")
