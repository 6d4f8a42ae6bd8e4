# The parts of `functools` that are written in Python.
class cached_property:
    def __init__(self, func):
        self.func = func
        self.attrname = None
        self.__doc__ = func.__doc__

    def __set_name__(self, owner, name):
        self.attrname = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = self.func(instance)
        object.__setattr__(instance, self.attrname, value)
        return value


class partialmethod:
    def __init__(self, func, /, *args, **keywords):
        self.func = func
        self.args = args
        self.keywords = keywords

    def __get__(self, instance, owner=None):
        def method(*args, **keywords):
            return self.func(instance, *self.args, *args, **{**self.keywords, **keywords})

        return method


def total_ordering(cls):
    def less(a, b):
        return type(a).__lt__(a, b)

    def less_equal(a, b):
        return type(a).__le__(a, b)

    def greater(a, b):
        return type(a).__gt__(a, b)

    def greater_equal(a, b):
        return type(a).__ge__(a, b)

    own = {name: name in cls.__dict__ for name in ("__lt__", "__le__", "__gt__", "__ge__")}
    if own["__lt__"]:
        made = {"__gt__": lambda a, b: not less(a, b) and a != b, "__le__": lambda a, b: less(a, b) or a == b,
                "__ge__": lambda a, b: not less(a, b)}
    elif own["__le__"]:
        made = {"__ge__": lambda a, b: not less_equal(a, b) or a == b, "__lt__": lambda a, b: less_equal(a, b) and a != b,
                "__gt__": lambda a, b: not less_equal(a, b)}
    elif own["__gt__"]:
        made = {"__lt__": lambda a, b: not greater(a, b) and a != b, "__ge__": lambda a, b: greater(a, b) or a == b,
                "__le__": lambda a, b: not greater(a, b)}
    elif own["__ge__"]:
        made = {"__le__": lambda a, b: not greater_equal(a, b) or a == b,
                "__gt__": lambda a, b: greater_equal(a, b) and a != b, "__lt__": lambda a, b: not greater_equal(a, b)}
    else:
        raise ValueError("must define at least one ordering operation: < > <= >=")
    for name, function in made.items():
        if not own[name]:
            setattr(cls, name, function)
    return cls


def singledispatch(func):
    registry = {object: func}

    def dispatch(cls):
        for each in cls.__mro__:
            if each in registry:
                return registry[each]
        return func

    def register(cls, function=None):
        if function is not None:
            registry[cls] = function
            return function
        if isinstance(cls, type):
            return lambda decorated: register(cls, decorated)
        hints = [hint for name, hint in cls.__annotations__.items() if name != "return"]
        if not hints:
            raise TypeError("Invalid first argument to `register()`: use either `@register(some_class)` or annotate "
                            "the first parameter")
        return register(hints[0], cls)

    @wraps(func)
    def wrapper(*args, **keywords):
        if not args:
            raise TypeError(f"{func.__name__} requires at least 1 positional argument")
        return dispatch(type(args[0]))(*args, **keywords)

    wrapper.register = register
    wrapper.dispatch = dispatch
    wrapper.registry = registry
    return wrapper


def update_wrapper(wrapper, wrapped, assigned=(), updated=()):
    return wraps(wrapped)(wrapper)
