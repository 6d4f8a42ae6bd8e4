# Iterators of itertools ask for an item when they are asked for one.
import itertools
def nat():
    n = 0
    while True:
        yield n
        n += 1
print(list(itertools.islice(nat(), 5)))
print(list(zip("abc", nat())))
print(next(x for x in nat() if x > 10), any(x > 3 for x in nat()), all(x < 7 for x in nat()))
print(list(itertools.takewhile(lambda v: v < 4, nat())))
print(list(itertools.islice(itertools.chain(nat()), 3)))
print(list(itertools.islice(itertools.chain.from_iterable([i, i] for i in nat()), 5)))
print(list(itertools.islice(itertools.starmap(pow, ((i, 2) for i in nat())), 5)))
print(list(itertools.islice(itertools.accumulate(nat()), 5)))
print(list(itertools.islice(itertools.pairwise(nat()), 3)))
print(list(itertools.islice(itertools.dropwhile(lambda v: v < 4, nat()), 3)))
print(list(itertools.islice(itertools.filterfalse(lambda v: v % 2, nat()), 3)))
print(list(itertools.islice(itertools.compress(nat(), itertools.cycle([1,0,0])), 3)))
a, b = itertools.tee(nat()); print(next(a), next(a), next(b), next(a), next(b))
print(list(itertools.islice(itertools.islice(nat(), 2, None, 3), 3)))
print([ (k, list(v)) for k, v in itertools.groupby("aabbbc")])
print([ (k, list(v)) for k, v in itertools.groupby(range(6), key=lambda x: x // 2)])
print(list(itertools.islice(enumerate(nat(), 3), 2)), list(itertools.islice(map(lambda a, b: a + b, nat(), nat()), 3)))
print(list(itertools.islice(filter(None, nat()), 2)))
print(list(itertools.islice(itertools.zip_longest("ab", [1,2,3], fillvalue=0), 9)))
import itertools as it
print(list(it.product("ab", repeat=2)), list(it.product([1,2],"xy")), list(it.permutations([1,2,3],2)), list(it.combinations("abcd",2)))
print(list(it.combinations_with_replacement("ab",2)), list(it.repeat(1,3)))
c = it.count(0.5, 0.25); print(next(c), next(c)); r = it.repeat('x'); print(next(r))
print(list(it.accumulate([1,2,3], lambda a,b: a*b, initial=10)), list(it.accumulate([3,1,2], max)))
print(list(it.chain([1],[2,3],"a")), list(it.islice("abcdefg", 1, 6, 2)), list(it.islice("abc", 2)))
print(list(it.product()), list(it.permutations("abc")), list(it.zip_longest([1],[1,2])))
