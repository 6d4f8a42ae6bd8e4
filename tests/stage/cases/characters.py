# Methods of str that change characters, and conversions for ASCII.
print("abc".translate({97: "X", 98: None}), "abc".translate(str.maketrans("ab", "xy")), "abc".translate(str.maketrans("a", "b", "c")), "abc".translate(str.maketrans({"a": "1"})))
print("a\tb\t".expandtabs(4), "ab\tc".expandtabs(), "{x} {y}".format_map({"x": 1, "y": 2}), "ABC".casefold(), "abc".isascii(), "\u00e9".isascii(), "Ab Cd".istitle(), "ab".istitle(), "a\n".isprintable())
print(ascii("\u00e9\u65e5"), "%a" % "\u00e9", "{!a}".format("\u00e9"), f"{True:5}|{False:<7}|{True:d}|{True}|{65:c}|{233:c}")
