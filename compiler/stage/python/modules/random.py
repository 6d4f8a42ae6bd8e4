# `random` for scripts: Python's generator (Mersenne Twister) and its ways to draw from it, so that seeds reproduce what
# they give in Python. Left out: seeds that are no integers, and rare distributions.
from math import ceil, cos, exp, floor, log, pi, sin, sqrt
from time import time_ns

SIZE, MIDDLE = 624, 397
ALL_BITS, HIGH_BIT, LOW_BITS = 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF
NORMAL_SCALE = 4 * exp(-0.5) / sqrt(2.0)


def words_of(number):
    words = []
    while number:
        words.append(number & ALL_BITS)
        number >>= 32
    return words or [0]


class Random:
    def __init__(self, x=None):
        self.seed(x)

    def seed(self, a=None, version=2):
        if a is None:
            a = time_ns()
        if isinstance(a, float):
            a = int(a)
        if not isinstance(a, int):
            raise TypeError("a seed must be an integer here")
        self.spare = None
        self.start(words_of(abs(a)))

    def start(self, key):
        state = [19650218]
        for i in range(1, SIZE):
            last = state[i - 1]
            state.append((1812433253 * (last ^ (last >> 30)) + i) & ALL_BITS)
        i, j = 1, 0
        for _ in range(max(SIZE, len(key))):
            last = state[i - 1]
            state[i] = ((state[i] ^ ((last ^ (last >> 30)) * 1664525)) + key[j] + j) & ALL_BITS
            i += 1
            j = (j + 1) % len(key)
            if i == SIZE:
                state[0] = state[SIZE - 1]
                i = 1
        for _ in range(SIZE - 1):
            last = state[i - 1]
            state[i] = ((state[i] ^ ((last ^ (last >> 30)) * 1566083941)) - i) & ALL_BITS
            i += 1
            if i == SIZE:
                state[0] = state[SIZE - 1]
                i = 1
        state[0] = HIGH_BIT
        self.state, self.next = state, SIZE

    def refill(self):
        state = self.state
        for i in range(SIZE):
            mixed = (state[i] & HIGH_BIT) | (state[(i + 1) % SIZE] & LOW_BITS)
            state[i] = state[(i + MIDDLE) % SIZE] ^ (mixed >> 1) ^ (0x9908B0DF if mixed & 1 else 0)
        self.next = 0

    def word(self):
        if self.next == SIZE:
            self.refill()
        value = self.state[self.next]
        self.next += 1
        value ^= value >> 11
        value ^= (value << 7) & 0x9D2C5680
        value ^= (value << 15) & 0xEFC60000
        return value ^ (value >> 18)

    def random(self):
        high, low = self.word() >> 5, self.word() >> 6
        return (high * 67108864.0 + low) / 9007199254740992.0

    def getrandbits(self, k):
        if k < 0:
            raise ValueError("number of bits must be non-negative")
        result, shift = 0, 0
        while k > 0:
            word = self.word()
            result |= (word >> (32 - k) if k < 32 else word) << shift
            shift += 32
            k -= 32
        return result

    def below(self, limit):
        bits = limit.bit_length()
        value = self.getrandbits(bits)
        while value >= limit:
            value = self.getrandbits(bits)
        return value

    def randrange(self, start, stop=None, step=1):
        if stop is None:
            start, stop = 0, start
        count = (stop - start + step - (1 if step > 0 else -1)) // step
        if count <= 0:
            raise ValueError("empty range for randrange()")
        return start + step * self.below(count)

    def randint(self, a, b):
        return self.randrange(a, b + 1)

    def uniform(self, a, b):
        return a + (b - a) * self.random()

    def choice(self, seq):
        if len(seq) == 0:
            raise IndexError("Cannot choose from an empty sequence")
        return seq[self.below(len(seq))]

    def choices(self, population, weights=None, *, cum_weights=None, k=1):
        if weights is None and cum_weights is None:
            return [population[floor(self.random() * len(population))] for _ in range(k)]
        bounds = list(cum_weights) if cum_weights is not None else []
        if cum_weights is None:
            total = 0
            for weight in weights:
                total += weight
                bounds.append(total)
        return [self.weighted(population, bounds) for _ in range(k)]

    def weighted(self, population, bounds):
        drawn = self.random() * (bounds[-1] + 0.0)
        for item, bound in zip(population, bounds):
            if drawn < bound:
                return item
        return population[-1]

    def shuffle(self, x):
        for i in reversed(range(1, len(x))):
            j = self.below(i + 1)
            x[i], x[j] = x[j], x[i]

    def sample(self, population, k):
        count = len(population)
        if k < 0 or k > count:
            raise ValueError("Sample larger than population or is negative")
        pool_limit = 21 + (4 ** ceil(log(k * 3, 4)) if k > 5 else 0)
        if count <= pool_limit:
            return self.sample_from_pool(list(population), k)
        chosen, result = set(), []
        for _ in range(k):
            position = self.below(count)
            while position in chosen:
                position = self.below(count)
            chosen.add(position)
            result.append(population[position])
        return result

    def sample_from_pool(self, pool, k):
        result = []
        for i in range(k):
            position = self.below(len(pool) - i)
            result.append(pool[position])
            pool[position] = pool[len(pool) - i - 1]
        return result

    def gauss(self, mu=0.0, sigma=1.0):
        drawn, self.spare = self.spare, None
        if drawn is None:
            angle = self.random() * 2.0 * pi
            radius = sqrt(-2.0 * log(1.0 - self.random()))
            drawn, self.spare = cos(angle) * radius, sin(angle) * radius
        return mu + drawn * sigma

    def normalvariate(self, mu=0.0, sigma=1.0):
        while True:
            first, second = self.random(), 1.0 - self.random()
            drawn = NORMAL_SCALE * (first - 0.5) / second
            if drawn * drawn / 4.0 <= -log(second):
                return mu + drawn * sigma

    def expovariate(self, lambd=1.0):
        return -log(1.0 - self.random()) / lambd


_shared = Random()
seed, random, getrandbits = _shared.seed, _shared.random, _shared.getrandbits
randrange, randint, uniform = _shared.randrange, _shared.randint, _shared.uniform
choice, choices, shuffle, sample = _shared.choice, _shared.choices, _shared.shuffle, _shared.sample
gauss, normalvariate, expovariate = _shared.gauss, _shared.normalvariate, _shared.expovariate
