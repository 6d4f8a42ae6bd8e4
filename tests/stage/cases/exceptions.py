# Exceptions: raising, catching by class, finally, our own errors as Python's.
def attempt(f):
    try:
        return f()
    except (KeyError, IndexError) as e:
        return type(e).__name__, str(e) if isinstance(e, IndexError) else repr(e.args[0])
    except ArithmeticError as e:
        return "arithmetic " + type(e).__name__
    except Exception as e:
        return type(e).__name__
    finally:
        print("done", end="; ")

print(attempt(lambda: {}["a"]))
print(attempt(lambda: [1][5]))
print(attempt(lambda: 1 // 0))
print(attempt(lambda: 1.0 / 0))
print(attempt(lambda: undefined_name))
print(attempt(lambda: None.x))
print(attempt(lambda: 1 + "a"))
print(attempt(lambda: int("x")))
print(attempt(lambda: (1).foo()))
print(attempt(lambda: len(5)))
print(attempt(lambda: attempt()))
print(attempt(lambda: next(iter([]))))
print(attempt(lambda: 42))

class MyError(ValueError):
    def __init__(self, code, text="mine"):
        super().__init__(text)
        self.code = code

try:
    raise MyError(7)
except ValueError as e:
    print(e.code, e, repr(e), e.args)

try:
    try:
        raise RuntimeError("inner")
    except RuntimeError as e:
        raise TypeError("outer") from e
except TypeError as e:
    print(e, repr(e.__cause__))

try:
    try:
        [][0]
    except IndexError:
        raise
except LookupError as e:
    print("again", e)

def order():
    try:
        print("try")
        return "from try"
    finally:
        print("finally")

print(order())

def override():
    for i in range(3):
        try:
            if i == 1: continue
            if i == 2: break
            print("body", i)
        except ValueError:
            pass
        else:
            print("else", i)
        finally:
            print("cleanup", i)
    return i
print(override())

try:
    assert 1 == 2, "not equal"
except AssertionError as e:
    print("assert:", e)
try:
    assert []
except AssertionError as e:
    print("assert:", e.args)
try:
    raise NotImplementedError
except RuntimeError as e:
    print(type(e).__name__, e.args, str(e) == "")
try:
    raise Exception("a", 1)
except Exception as e:
    print(e, e.args, repr(e))
try:
    a, b = 1, 2, 3
except ValueError as e:
    print(e)
try:
    a, b, c = 1, 2
except ValueError as e:
    print(e)
try:
    import not_a_real_module
except ImportError as e:
    print(type(e).__name__)
try:
    def f(a, b): pass
    f(1)
except TypeError as e:
    print(e)
def nested():
    try:
        try:
            1 / 0
        finally:
            print("first")
    except ZeroDivisionError:
        print("second")
        return 1
    finally:
        print("third")
print(nested())
print(issubclass(KeyError, LookupError), issubclass(ZeroDivisionError, Exception), isinstance(MyError(1), ValueError))
