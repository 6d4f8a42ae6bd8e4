# `random` for scripts: the Mersenne Twister as Python seeds and reads it, so that a seed gives the same numbers.
import math
import time

WORDS, MIDDLE = 624, 397
MASK = 0xFFFFFFFF


class Random:
    def __init__(self, seed=None):
        self.seed(seed)

    def seed(self, a=None, version=2):
        if a is None:
            a = time.time_ns()
        if not isinstance(a, int):
            raise TypeError("a seed must be an integer here")
        a = abs(a)
        key = [a & MASK]
        while a > MASK:
            a >>= 32
            key.append(a & MASK)
        self.state = seeded(key)
        self.position = WORDS
        self.next_gauss = None

    def word(self):
        """32 random bits."""
        if self.position == WORDS:
            self.state = twisted(self.state)
            self.position = 0
        value = self.state[self.position]
        self.position += 1
        value ^= value >> 11
        value ^= (value << 7) & 0x9D2C5680
        value ^= (value << 15) & 0xEFC60000
        return value ^ (value >> 18)

    def random(self):
        high, low = self.word() >> 5, self.word() >> 6
        return (high * 67108864.0 + low) / 9007199254740992.0

    def getrandbits(self, k):
        if k <= 32:
            return self.word() >> (32 - k) if k else 0
        if k > 62:
            raise ValueError("at most 62 bits at once here")
        low = self.word()
        return (self.word() >> (64 - k)) << 32 | low

    def below(self, n):
        bits = n.bit_length()
        value = self.getrandbits(bits)
        while value >= n:
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
        if not len(seq):
            raise IndexError("Cannot choose from an empty sequence")
        return seq[self.below(len(seq))]

    def choices(self, population, weights=None, *, k=1):
        if weights is None:
            return [population[int(self.random() * len(population))] for _ in range(k)]
        bounds, total = [], 0
        for weight in weights:
            total += weight
            bounds.append(total)
        return [population[sum(bound <= point for bound in bounds[:-1])]
                for point in (self.random() * total for _ in range(k))]

    def shuffle(self, x):
        for i in reversed(range(1, len(x))):
            j = self.below(i + 1)
            x[i], x[j] = x[j], x[i]

    def sample(self, population, k):
        n = len(population)
        if not 0 <= k <= n:
            raise ValueError("Sample larger than population or is negative")
        # Python's choice between a pool and a set of what was taken: it decides which numbers are drawn.
        pool_limit = 21 + (4 ** math.ceil(math.log(k * 3, 4)) if k > 5 else 0)
        if n > pool_limit:
            taken, result = set(), []
            for _ in range(k):
                j = self.below(n)
                while j in taken:
                    j = self.below(n)
                taken.add(j)
                result.append(population[j])
            return result
        pool, result = list(population), []
        for i in range(k):
            j = self.below(n - i)
            result.append(pool[j])
            pool[j] = pool[n - i - 1]
        return result

    def gauss(self, mu=0.0, sigma=1.0):
        value, self.next_gauss = self.next_gauss, None
        if value is None:
            angle = self.random() * 2.0 * math.pi
            radius = math.sqrt(-2.0 * math.log(1.0 - self.random()))
            value, self.next_gauss = math.cos(angle) * radius, math.sin(angle) * radius
        return mu + value * sigma


def seeded(key):
    """The state that a list of 32-bit words stands for."""
    state = [19650218]
    for i in range(1, WORDS):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) & MASK)
    i, j = 1, 0
    for _ in range(max(WORDS, len(key))):
        state[i] = ((state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * 1664525)) + key[j] + j) & MASK
        i, j = i + 1, (j + 1) % len(key)
        if i == WORDS:
            state[0], i = state[-1], 1
    for _ in range(WORDS - 1):
        state[i] = ((state[i] ^ ((state[i - 1] ^ (state[i - 1] >> 30)) * 1566083941)) - i) & MASK
        i += 1
        if i == WORDS:
            state[0], i = state[-1], 1
    state[0] = 0x80000000
    return state


def twisted(state):
    """The next WORDS words before tempering."""
    state = list(state)
    for i in range(WORDS):
        bits = (state[i] & 0x80000000) | (state[(i + 1) % WORDS] & 0x7FFFFFFF)
        state[i] = state[(i + MIDDLE) % WORDS] ^ (bits >> 1) ^ (0x9908B0DF if bits & 1 else 0)
    return state


shared = Random()
seed, random, getrandbits = shared.seed, shared.random, shared.getrandbits
randrange, randint, uniform, gauss = shared.randrange, shared.randint, shared.uniform, shared.gauss
choice, choices, shuffle, sample = shared.choice, shared.choices, shared.shuffle, shared.sample
