# The classes of `contextlib` that are written in Python.
class AbstractContextManager:
    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        return None


class ContextDecorator:
    def __call__(self, func):
        def inner(*args, **keywords):
            with self:
                return func(*args, **keywords)

        inner.__name__ = func.__name__
        inner.__wrapped__ = func
        return inner


class ExitStack:
    def __init__(self):
        self._exits = []

    def enter_context(self, context):
        generator = _enter(context)
        self._exits.append(generator)
        return next(generator)

    def push(self, exit):
        self._exits.append(_exit_of(exit) if hasattr(exit, "__exit__") else exit)
        return exit

    def callback(self, callback, /, *args, **keywords):
        self._exits.append(lambda *error: callback(*args, **keywords) and None)
        return callback

    def pop_all(self):
        moved = ExitStack()
        moved._exits = self._exits
        self._exits = []
        return moved

    def close(self):
        self.__exit__(None, None, None)

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        pending = exc_value
        while self._exits:
            leave = self._exits.pop()
            try:
                if _leave(leave, pending):
                    pending = None
            except BaseException as error:
                pending = error
        if pending is None:
            return exc_value is not None
        if pending is not exc_value:
            raise pending
        return False


# A context that is entered by the first `next`, and left by the second or by what is thrown in.
def _enter(context):
    with context as value:
        yield value


def _exit_of(context):
    return lambda *error: context.__exit__(*error)


# True: the context swallowed the error.
def _leave(leave, error):
    if not hasattr(leave, "throw"):
        return leave(type(error) if error is not None else None, error, None)
    if error is None:
        next(leave, None)
        return False
    try:
        leave.throw(error)
    except StopIteration:
        return True
    return True
