import random
from random import Random, choice, randint, seed

for start in (0, 7, -12, 2**80 + 1):
    random.seed(start)
    print([random.random() for _ in range(3)], random.getrandbits(70), random.uniform(-1, 1))
    print([randint(1, 6) for _ in range(8)], random.randrange(0, 100, 7), choice("abcdef"))
    items = list(range(12))
    random.shuffle(items)
    print(items, random.sample(range(1000), 6), random.sample(range(10), 8))
    print(random.gauss(0, 1), random.gauss(5, 2), random.normalvariate(0, 1), random.choices("xyz", [1, 2, 3], k=5))

seed(3)
own = Random(3)
print(random.random() == own.random(), own.randint(0, 10**30) == random.randint(0, 10**30))
