"""What goes wrong with a model file, as data that the caller prints."""

import traceback


class ExportError(Exception):
    def __init__(self, kind, message, line=0, hint="", code=2):
        super().__init__(message)
        self.kind, self.message, self.line, self.hint, self.code = kind, message, line, hint, code


def first_line(error):
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def line_in(path, error):
    """The line of `path` that was running when `error` was raised; 0 if none was."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == path), 0)
