# The module re.
import re

TEXT = "The quick brown fox, born 2024-01-31, jumps over 13 lazy dogs.\nSecond line: x=1; yy=22\n"
for pattern in [r"\d+", r"(\w+)=(\d+)", r"\b[a-z]{4}\b", r"^Second", r"dogs\.$", r"(?m)^Second", r"(?m)\.$", r"o(?=x)",
                r"o(?!x)", r"(?<=-)\d\d", r"(?<!\d)\d\d(?!\d)", r"(\d{4})-(\d\d)-(\d\d)", r"[^\W\d_]+n\b", r"z*", r"(a|o)\w",
                r"(?i)THE", r"(.)\1", r"q.*?k", r"q.*k", r"(?s)dogs.*x", r"(?P<key>\w+)=(?P<value>\d+)", r"\s", r"x|yy",
                r"(?:ab|l)a?z", r"(\d)(\d)?", r"((\w)o)+", r"\Z", r"\AThe", r"[.,]", r"[]x]", r"[a\-z]", r"[^\n]*\n"]:
    found = re.search(pattern, TEXT)
    print(pattern, found and (found.span(), found.group(), found.groups()), len(re.findall(pattern, TEXT)))
print(re.findall(r"(\w)(\d)?", "a1b c3"), re.findall(r"(b)|a", "ab"), re.findall("", "abc"), re.findall("x*", "axb"))
print(re.match("b", "ab"), re.match("a", "ab").end(), re.fullmatch("a", "ab"), re.fullmatch("a|ab", "ab").group())
print(re.fullmatch("a*?", "aaa").span(), re.fullmatch("(a+)(a*)", "aaa").groups(), re.fullmatch("(a+?)(a*)", "aaa").groups())
print(re.sub(r"\d", "#", "a1b22"), re.sub("x*", "-", "abxd"), re.sub(r"(\w+) (\w+)", r"\2 \1", "ab cd ef"),
      re.sub("a", lambda m: m.group().upper() * 2, "banana", count=2), re.subn("a", "", "banana"))
print(re.sub(r"(?P<x>a)", r"<\g<x>\g<0>\g<1>>", "ab"), re.sub("a", r"\n\\", "a"), re.sub(r"(a)|b", r"[\1]", "ab"))
print(re.split(r"[,;]\s*", "a, b;c,d"), re.split(r"(-)", "a-b-c", maxsplit=1), re.split("x*", "axbc"), re.split(r"\b", "ab cd"))
print(re.split("(a)|b", "1a2b3"), re.split(",", ""), re.escape("a.b*c-d e_f"), re.escape("\n"))
p = re.compile(r"(?P<a>x+)(?P<b>y)?", re.IGNORECASE | re.M)
print(p.pattern, p.groups, p.groupindex, p.flags, p)
m = p.search("..XXz")
print(m, m.group("a"), m["b"], m[0], m.groupdict(), m.groups("none"), m.start("a"), m.end(), m.span("b"), m.lastindex,
      m.lastgroup, m.string, m.re is p, m.pos, m.endpos, bool(m))
print(m.expand(r"\g<a>!"), m.group(0, 1, "b"), [x.span() for x in p.finditer("xxYxy")])
print(p.match("axx", 1).span(), p.search("xx", 1).span(), p.search("xxx", 0, 2).span(), p.fullmatch("xxx", 1, 2).group())
print(re.compile("a") is re.compile("a"), re.compile(p) is p)
print(re.search(r"""
    (\d+)  # digits
    \ *    # blanks
    [#]    # a hash sign
""", "12  #", re.X).group(), re.findall(r"a.b", "a\nb", re.S), re.findall("é+", "caféé"), re.sub("é", "e", "éa"))
print(re.findall(r"\w+", "naïve café"), re.findall(r"\w+", "naïve", re.A), re.search("[à-ü]", "aé").start())
print(re.findall(r"(?:a|ab)(?:c|bcd)(?:d*)", "abcd"), re.match(r"(a*)*", "aab").groups(), re.match(r"(a|b)*", "abac").groups())
print(re.match(r"(?:(a)|b)*", "ab").groups(), re.match(r"(a?)*?b", "aab").groups(), re.match(r"(?:a?){3}", "aa").group())
print(re.match(r"(?>a+)ab", "aaab"), re.match(r"a++b", "aab").group(), re.match("(?i:a)b", "Ab").group(), re.match("(?i:a)b", "AB"))
print(re.findall(r"[\d.]+(?:e[+-]?\d+)?", "1.5e-3 2 .5"), re.findall(r"\x41\u0042\t", "AB\t"), re.findall("[\\]\\[]", "[]"))
print(re.sub(r"(?m)^", "> ", "a\nb"), re.sub("$", "!", "a\n"), re.findall("(?m)$", "a\nb\n"), re.findall("a{,2}", "aaa"))
print(re.findall("a{2}", "aaaa"), re.findall("a{1,}b{0}", "aab"), re.findall("a{x}", "a{x}"), re.findall("x{2,3}?", "xxxxx"))
print(re.search(r"(\w+)\s+\1", "this is is it").group(1), re.search(r"(?P<q>['\"]).*?(?P=q)", "say 'a\"b' ok").group())
print([x.group() for x in re.finditer(r"\b\w", "ab cd")], re.sub(r"\B", "-", "abc"), re.findall(r"(?<!a)b", "ab bb"))
for bad in ["(", ")", "a**", "*a", "[a", "a{2,1}", r"\q", "(?P<1>a)", "(?P<a>x)(?P<a>y)", r"(?<=a*)b", r"\2(a)", "[b-a]", "(?z)"]:
    try:
        re.compile(bad)
    except re.error as error:
        print(bad, "re.error", error.msg)
for template in [r"\3", r"\q", r"\g<b>", r"\g<"]:
    try:
        print(re.sub("(a)", template, "a"))
    except (re.error, IndexError) as error:
        print(template, type(error).__name__)
for wrong in (lambda: m.group(9), lambda: m.group("zz"), lambda: re.match("a", 5), lambda: re.compile(5)):
    try:
        wrong()
    except (IndexError, TypeError) as error:
        print(type(error).__name__, error)
print(re.sub(r"(\d+)", lambda m: str(int(m[1]) + 1), "a9b99"), re.findall(r"(?=(\w\w))", "abcd"))
print(re.match(r"M?(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})$", "MCMXCIV").groups())
print("(?:x+x+)+y", re.match("(?:x+x+)+y", "x" * 12 + "y").end(), re.search("(a+)+$", "a" * 14 + "b"))
