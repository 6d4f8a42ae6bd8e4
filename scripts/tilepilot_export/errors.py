"""What goes wrong with a model file, as data that the caller prints."""


class ExportError(Exception):
    def __init__(self, kind, message, line=0, hint="", code=2):
        super().__init__(message)
        self.kind, self.message, self.line, self.hint, self.code = kind, message, line, hint, code


def first_line(error):
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
