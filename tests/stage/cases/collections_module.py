# The containers of `collections`.
from collections import OrderedDict, defaultdict, Counter, deque, ChainMap
od = OrderedDict([("a", 1), ("b", 2)]); od.move_to_end("a"); print(list(od.items()), od.popitem(last=False), od == {"a": 1}, od.popitem())
od = OrderedDict(a=1); od["c"] = 3; od.move_to_end("c", last=False); print(list(od.items()), list(reversed(od)))
dd = defaultdict(list); dd["x"].append(1); print(dd, dd["y"], len(dd), dict(dd), dd.get("zz"), "zz" in dd, dd.default_factory)
dd = defaultdict(lambda: 5, {"a": 1}); print(dd["b"], sorted(dd.items()))
di = defaultdict(int)
for ch in "hello": di[ch] += 1
print(dict(di))
nest = defaultdict(lambda: defaultdict(int)); nest["a"]["b"] += 2; print(nest["a"]["b"])
c = Counter("hello world"); print(c.most_common(2), c["l"], c["zz"], sum(c.values()), c.total())
c2 = Counter(a=3, b=1); c2.update("ab"); c2.update({"a": 2}); print(c2, c2 + Counter(a=1), c2 - Counter(a=5), c2 & Counter(a=2), c2 | Counter(z=9), sorted(c2.elements()), Counter([1, 1, 2]))
c2.subtract({"a": 10}); print(c2, c2.most_common(), dict(c2)); del c2["a"]; print(c2, Counter() == Counter(), Counter(a=1) == {"a": 1})
dq = deque([1, 2, 3], maxlen=3); dq.append(4); print(dq, dq[0], dq[-1], len(dq), dq.maxlen); dq.appendleft(9); print(dq, list(dq), dq.pop(), dq.popleft(), dq)
dq = deque("abc"); dq.rotate(1); print(dq); dq.rotate(-1); dq.extend("de"); dq.extendleft("xy"); print(dq, "a" in dq, dq.index("a"), dq.count("x")); dq.remove("a"); dq.reverse(); print(dq, bool(deque()), deque([1]) == deque([1])); dq[0] = "Q"; print(dq, dq.copy()); dq.clear(); print(dq, deque([1, 2]) + deque([3]))
try: deque().popleft()
except IndexError as e: print(e)
q = deque([(0, 1)])
while q:
    a, b = q.popleft()
    if a < 3: q.append((a + 1, b * 2))
print(a, b, [x for x in deque([1, 2])], sorted(deque([3, 1])), list(reversed(deque([1, 2]))))
cm = ChainMap({"a": 1}, {"a": 2, "b": 3}); print(cm["a"], cm["b"], sorted(cm), len(cm), "b" in cm, cm.get("q", 0), cm.maps, dict(cm)); cm["n"] = 5; print(cm.maps[0], cm.new_child({"a": 9})["a"], cm.parents["a"])
