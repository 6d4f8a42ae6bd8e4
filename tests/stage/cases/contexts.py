# Contexts made of generators: as decorators, on a stack, and classes that are both.
from contextlib import ContextDecorator, ExitStack, contextmanager, suppress
@contextmanager
def cm(n):
    print("in", n)
    try:
        yield n
    finally:
        print("out", n)
with ExitStack() as st:
    vals = [st.enter_context(cm(i)) for i in range(3)]
    st.callback(print, "cb", 1)
    print(vals)
@contextmanager
def tick(n):
    print("in", n); yield; print("out", n)
@tick(3)
def work(a): print("work", a); return a * 2
print(work(4))
class T(ContextDecorator):
    def __enter__(self): print("in"); return self
    def __exit__(self, *a): print("out"); return False
@T()
def f(): print("f")
f()

with ExitStack() as stack:
    stack.enter_context(suppress(KeyError))
    stack.enter_context(cm("inner"))
    raise KeyError("swallowed")
print("on")
try:
    with ExitStack() as stack:
        stack.enter_context(cm("outer"))
        raise ValueError("not swallowed")
except ValueError as e:
    print("out", e)
