# `logging` for candidates: the calls are accepted and nothing is written.
NOTSET, DEBUG, INFO, WARNING, ERROR, CRITICAL = 0, 10, 20, 30, 40, 50
WARN, FATAL = WARNING, CRITICAL


class Handler:
    def __init__(self, level=NOTSET):
        self.level = level

    def setLevel(self, level):
        self.level = level

    def setFormatter(self, fmt):
        pass


class NullHandler(Handler):
    pass


class StreamHandler(Handler):
    def __init__(self, stream=None):
        super().__init__()


class Formatter:
    def __init__(self, fmt=None, datefmt=None, style="%", validate=True, *, defaults=None):
        pass


class Logger:
    def __init__(self, name, level=NOTSET):
        self.name, self.level, self.handlers, self.propagate = name, level, [], True

    def setLevel(self, level):
        self.level = level

    def addHandler(self, hdlr):
        self.handlers.append(hdlr)

    def removeHandler(self, hdlr):
        if hdlr in self.handlers:
            self.handlers.remove(hdlr)

    def hasHandlers(self):
        return len(self.handlers) > 0

    def isEnabledFor(self, level):
        return False

    def getEffectiveLevel(self):
        return self.level or WARNING

    def log(self, level, msg, *args, exc_info=None, stack_info=False, stacklevel=1, extra=None):
        if not isinstance(level, int):
            raise TypeError("level must be an integer")

    def debug(self, msg, *args, exc_info=None, stack_info=False, stacklevel=1, extra=None):
        pass

    info = warning = warn = error = critical = fatal = exception = debug


root = Logger("root", WARNING)
_loggers = {}


def getLogger(name=None):
    if not name or name == "root":
        return root
    if not isinstance(name, str):
        raise TypeError("A logger name must be a string")
    return _loggers.setdefault(name, Logger(name))


def basicConfig(*, level=None, format=None, datefmt=None, stream=None, handlers=None, force=False, style="%"):
    if level is not None:
        root.setLevel(level)


log, debug, info, warning = root.log, root.debug, root.info, root.warning
warn, error, critical, fatal, exception = root.warn, root.error, root.critical, root.fatal, root.exception


def disable(level=CRITICAL):
    pass


def captureWarnings(capture):
    pass
