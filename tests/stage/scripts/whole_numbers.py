import math

big = 2**70
print(big, -big, hex(big), f"{big:,} {big:x} {-big:+}", "%d %x" % (big, big))
print(0xFFFFFFFFFFFFFFFF, 1 << 63, -(1 << 63), ~(1 << 64))
print(big // 3, -big // 3, big % 1000003, divmod(-big, 12345678901234567890), big / 3, 3 / big)
print(big & 0xFFFF, (big - 1) & (big >> 1), big ^ -1, big | 1, big >> 69, -big >> 71)
print(int("123456789012345678901234567890"), int("ff" * 10, 16), int(1e30), round(1e25), float(big))
print(big == 2.0**70, big > 1e21, big < 1e22, hash(big) == hash(2.0**70), big in {2.0**70}, isinstance(big, int))
print(math.factorial(25), math.gcd(big, 6**40), math.lcm(2**40, 3**40), math.isqrt(big + 1), math.comb(100, 50))
print(pow(3, 200, 10**20), pow(7, -1 + 2**65, 13), sum([big, -big, 5]), max(big, 1.5), abs(-big), (5 * big).bit_length())
print(round(12345678901234567895, -1), round(-big, -19), bool(big), type(big).__name__, (big - big + 7).bit_length())
failures = [lambda: float(10**400), lambda: 1 << -1, lambda: big // 0, lambda: 10**400 / 1.0]
for failure in failures:
    try:
        print(failure())
    except (ArithmeticError, ValueError, TypeError) as error:
        print(type(error).__name__)
