# heapq, bisect, string, textwrap, and calls of logging.
import bisect
import heapq
import logging
import string
import textwrap

heap = []
for x in [5, 1, 8, 3, 9, 2, 7, 7, 1]:
    heapq.heappush(heap, x)
print(heap, heapq.heappop(heap), heap, heapq.heapreplace(heap, 4), heapq.heappushpop(heap, 0), heap)
data = [(4, "d"), (1, "a"), (3, "c"), (1, "b"), (2, "x"), (0, "z")]
heapq.heapify(data)
print(data, [heapq.heappop(data) for _ in range(len(data))])
print(heapq.nsmallest(3, [5, 2, 8, 1]), heapq.nlargest(2, ["aa", "b", "cccc"], key=len), heapq.nsmallest(9, [2, 1]))
print(list(heapq.merge([1, 4, 7], [2, 4, 9], [], [0])), list(heapq.merge([7, 1], [8, 3], reverse=True)),
      list(heapq.merge(["a", "ccc"], ["bb"], key=len)))
try:
    heapq.heappop([])
except IndexError as error:
    print("IndexError", error)
a = [1, 3, 3, 5]
print([bisect.bisect(a, x) for x in range(7)], [bisect.bisect_left(a, x) for x in range(7)], bisect.bisect_right(a, 3, 0, 2))
bisect.insort(a, 4)
bisect.insort_left(a, 3)
print(a, bisect.bisect_left(["a", "bb", "dddd"], 3, key=len))
bisect.insort(a, -9, key=abs)
print(a)
print(string.ascii_letters, string.digits, string.hexdigits, string.punctuation, repr(string.whitespace), len(string.printable))
print(string.capwords("ab  cd eF"), string.Template("$a ${b}x $$ $c").safe_substitute(a=1, b="two"),
      string.Template("$a").substitute({"a": 5}))
try:
    string.Template("$q").substitute()
except KeyError as error:
    print("KeyError", error)
text = """
    def f():
        return 1

\t
    # end
  """
print(repr(textwrap.dedent(text)), repr(textwrap.dedent("\ta\n\t b\n")), repr(textwrap.dedent("  a\n\tb")), repr(textwrap.dedent("")))
print(textwrap.indent("a\n\nb\n", "> "), repr(textwrap.indent("a\n\nb", "+", lambda line: True)))
log = logging.getLogger(__name__)
log.debug("never %s", "shown")
log.info("nor %d", 3)
print(logging.INFO, logging.getLogger("a") is logging.getLogger("a"), log.name)
try:
    log.info()
except TypeError:
    print("TypeError")
