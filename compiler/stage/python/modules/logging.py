# `logging` for scripts: messages by level to standard error. Left out: files, and filters.
import sys
import time

NOTSET, DEBUG, INFO, WARNING, ERROR, CRITICAL = 0, 10, 20, 30, 40, 50
WARN, FATAL = WARNING, CRITICAL
BASIC_FORMAT = "%(levelname)s:%(name)s:%(message)s"
_names = {DEBUG: "DEBUG", INFO: "INFO", WARNING: "WARNING", ERROR: "ERROR", CRITICAL: "CRITICAL", NOTSET: "NOTSET"}


def getLevelName(level):
    if isinstance(level, str):
        return _number(level)
    return _names.get(level, f"Level {level}")


def addLevelName(level, name):
    _names[level] = name


def _number(level):
    if isinstance(level, int):
        return level
    for number, name in _names.items():
        if name == level:
            return number
    raise ValueError(f"Unknown level: {level!r}")


class LogRecord:
    def __init__(self, name, level, message):
        self.name, self.levelno, self.levelname = name, level, getLevelName(level)
        self.message, self.created = message, time.time()

    def getMessage(self):
        return self.message


class Formatter:
    def __init__(self, fmt=None, datefmt=None, style="%"):
        self.fmt = fmt or "%(message)s"

    def format(self, record):
        return self.fmt % {
            "name": record.name, "levelname": record.levelname, "levelno": record.levelno,
            "message": record.message, "asctime": f"{record.created:.3f}", "created": record.created,
            "filename": "", "module": "", "funcName": "", "pathname": "", "lineno": 0, "process": 0,
        }


class Handler:
    def __init__(self, level=NOTSET):
        self.level, self.formatter = _number(level), Formatter()

    def setLevel(self, level):
        self.level = _number(level)

    def setFormatter(self, formatter):
        self.formatter = formatter

    def emit(self, record):
        pass


class NullHandler(Handler):
    pass


class StreamHandler(Handler):
    def __init__(self, stream=None):
        super().__init__()
        self.stream = stream or sys.stderr

    def emit(self, record):
        self.stream.write(self.formatter.format(record) + "\n")


class Logger:
    def __init__(self, name, parent=None):
        self.name, self.parent, self.level, self.handlers, self.propagate = name, parent, NOTSET, [], True

    def setLevel(self, level):
        self.level = _number(level)

    def addHandler(self, handler):
        if handler not in self.handlers:
            self.handlers.append(handler)

    def removeHandler(self, handler):
        if handler in self.handlers:
            self.handlers.remove(handler)

    def hasHandlers(self):
        return len(self._reached_handlers()) > 0

    def getEffectiveLevel(self):
        logger = self
        while logger.level == NOTSET and logger.parent is not None:
            logger = logger.parent
        return logger.level

    def isEnabledFor(self, level):
        return level >= self.getEffectiveLevel()

    def _reached_handlers(self):
        reached, logger = [], self
        while logger is not None:
            reached += logger.handlers
            logger = logger.parent if logger.propagate else None
        return reached

    def log(self, level, msg, *args, **options):
        if not self.isEnabledFor(level):
            return
        values = args[0] if len(args) == 1 and isinstance(args[0], dict) else args
        record = LogRecord(self.name, level, str(msg) % values if args else str(msg))
        handlers = self._reached_handlers()
        if not handlers and level >= WARNING:
            sys.stderr.write(record.message + "\n")
        for handler in handlers:
            if level >= handler.level:
                handler.emit(record)

    def debug(self, msg, *args, **options):
        self.log(DEBUG, msg, *args)

    def info(self, msg, *args, **options):
        self.log(INFO, msg, *args)

    def warning(self, msg, *args, **options):
        self.log(WARNING, msg, *args)

    def error(self, msg, *args, **options):
        self.log(ERROR, msg, *args)

    def critical(self, msg, *args, **options):
        self.log(CRITICAL, msg, *args)

    warn, exception, fatal = warning, error, critical


root = Logger("root")
root.level = WARNING
_loggers = {}


def getLogger(name=None):
    if not name or name == "root":
        return root
    if name not in _loggers:
        _loggers[name] = Logger(name, getLogger(name.rpartition(".")[0]))
    return _loggers[name]


def basicConfig(*, level=None, format=None, datefmt=None, stream=None, handlers=None, force=False, style="%"):
    if root.handlers and not force:
        return
    root.handlers = list(handlers) if handlers else [StreamHandler(stream)]
    for handler in root.handlers:
        handler.setFormatter(Formatter(format or BASIC_FORMAT))
    if level is not None:
        root.setLevel(level)


def _through_root(method):
    def report(msg, *args, **options):
        if not root.handlers:
            basicConfig()
        method(msg, *args)
    return report


debug, info, warning = _through_root(root.debug), _through_root(root.info), _through_root(root.warning)
error, critical, exception = _through_root(root.error), _through_root(root.critical), _through_root(root.error)
warn = warning


def disable(level=CRITICAL):
    root.setLevel(_number(level) + 1)


def captureWarnings(capture):
    pass
