import random

random.seed(42)
print([random.random() for _ in range(3)], random.getrandbits(8), random.getrandbits(40))
print([random.randint(1, 6) for _ in range(10)], random.randrange(0, 100, 7), random.uniform(-1, 1))
items = list(range(10))
random.shuffle(items)
print(items, random.choice("abcdef"), random.choices([1, 2, 3], k=5), random.choices("ab", [1, 9], k=5))
print(random.sample(range(10), 4), random.sample(range(1000), 6), random.sample(range(50), 30))
print(random.gauss(0, 1), random.gauss(2, 3))
random.seed(2 ** 40 + 17)
print([random.randint(0, 2 ** 31) for _ in range(700)][-3:])
other = random.Random(7)
print(other.random(), random.Random(7).random())
for wrong in (lambda: random.choice([]), lambda: random.randrange(3, 3)):
    try:
        wrong()
    except (IndexError, ValueError) as error:
        print(type(error).__name__)
