# `pytest` for scripts: marks, `raises`, and main(), which runs the test functions of the script itself. Left out:
# fixtures, collecting from files, and plug-ins.
import itertools


class Skipped(Exception):
    """Ends a test that cannot be run."""


def skip(reason="", *, allow_module_level=False):
    raise Skipped(reason)


def fail(reason=""):
    raise AssertionError(reason)


class Param:
    def __init__(self, values, marks, id):
        self.values = values
        self.marks = marks
        self.id = id


def param(*values, marks=(), id=None):
    return Param(values, list(marks) if isinstance(marks, (list, tuple)) else [marks], id)


class Mark:
    """A decorator that notes itself on the function."""

    def __init__(self, name, args=(), kwargs=None):
        self.name = name
        self.args = args
        self.kwargs = kwargs or {}

    def __call__(self, *args, **kwargs):
        only = len(args) == 1 and not kwargs
        if only and callable(args[0]) and not isinstance(args[0], type):
            args[0].pytestmark = [*getattr(args[0], "pytestmark", []), self]
            return args[0]
        return Mark(self.name, self.args + args, {**self.kwargs, **kwargs})


class MarkMaker:
    def __getattr__(self, name):
        return Mark(name)


mark = MarkMaker()


class raises:
    """The block must raise that exception, whose text must hold `match`."""

    def __init__(self, expected, match=None):
        self.expected = expected
        self.match = match
        self.value = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            raise AssertionError(f"DID NOT RAISE {self.expected}")
        if not issubclass(kind, self.expected):
            return False
        self.value = value
        if self.match is not None and self.match not in str(value):
            raise AssertionError(f"`{self.match}` is not in `{value}`")
        return True


def skip_reason(marks):
    """Why the test is left out; None: it is not."""
    for each in marks:
        if each.name == "skip":
            return each.kwargs.get("reason", each.args[0] if each.args else "unconditional skip")
        if each.name == "skipif" and each.args[0]:
            return each.kwargs.get("reason", "")
    return None


def cases_of(mark):
    """The argument values of one `parametrize`: (name of the case, arguments, marks)."""
    names = mark.kwargs.get("argnames", mark.args[0] if mark.args else None)
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    rows = mark.kwargs.get("argvalues", mark.args[1] if len(mark.args) > 1 else [])
    for row in rows:
        marks = row.marks if isinstance(row, Param) else []
        values = row.values if isinstance(row, Param) else row if len(names) > 1 else (row,)
        title = row.id if isinstance(row, Param) and row.id else "-".join(str(value) for value in values)
        yield title, dict(zip(names, values)), marks


def expand(name, function):
    """All tests that a function stands for: (name, arguments, marks)."""
    marks = getattr(function, "pytestmark", [])
    sets = [list(cases_of(each)) for each in marks if each.name == "parametrize"]
    for chosen in itertools.product(*sets):
        arguments, case_marks = {}, []
        for _, values, extra in chosen:
            arguments.update(values)
            case_marks.extend(extra)
        title = "-".join(case[0] for case in chosen)
        yield f"{name}[{title}]" if chosen else name, arguments, [*marks, *case_marks]


def run_test(function, arguments, marks):
    """The outcome, and what to say about it."""
    reason = skip_reason(marks)
    if reason is not None:
        return "skipped", reason
    try:
        function(**arguments)
    except Skipped as skipped:
        return "skipped", str(skipped)
    except Exception as error:
        if any(each.name == "xfail" for each in marks):
            return "xfailed", ""
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


def main(args=None, plugins=None):
    """Runs the `test_*` functions of the script in order; 0 if none failed."""
    import __main__
    counts = {}
    for name, function in list(vars(__main__).items()):
        if not name.startswith("test") or not callable(function):
            continue
        for title, arguments, marks in expand(name, function):
            outcome, message = run_test(function, arguments, marks)
            counts[outcome] = counts.get(outcome, 0) + 1
            print(f"{title}: {outcome}{': ' if message else ''}{message}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "no tests ran")
    return 1 if counts.get("failed") else 0 if counts else 5
