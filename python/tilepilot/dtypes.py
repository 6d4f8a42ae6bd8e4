"""Element types of the language in Python: strings that also convert, as `T.float32(x)`, and know their size."""


class DType(str):
    """`T.float32`: the string "float32", and the value of the language."""

    def __new__(cls, value):
        self = super().__new__(cls, value)
        self.__tilepilot_value__ = value
        return self

    def __call__(self, *args, **kwargs):
        return self.__tilepilot_value__(*args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("__"):  # Python asks for these itself
            raise AttributeError(name)
        return getattr(self.__tilepilot_value__, name)

    def __eq__(self, other):
        equal = self.__tilepilot_value__ == other
        return equal if isinstance(equal, bool) else False

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self):
        return f"T.{self!s}"

    def __reduce__(self):
        return _named, (str(self),)


def _named(name):
    from tilepilot.tilelang import language
    return getattr(language, name)
