# `string`: its constants, capwords, and templates of `$name`.
import re as _re

whitespace = " \t\n\r\v\f"
ascii_lowercase = "abcdefghijklmnopqrstuvwxyz"
ascii_uppercase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ascii_letters = ascii_lowercase + ascii_uppercase
digits = "0123456789"
hexdigits = digits + "abcdef" + "ABCDEF"
octdigits = "01234567"
punctuation = r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"""
printable = digits + ascii_letters + punctuation + whitespace


def capwords(s, sep=None):
    return (sep or " ").join(word.capitalize() for word in s.split(sep))


class Template:
    def __init__(self, template):
        self.template = template

    def _fill(self, values, strict):
        def replace(match):
            if match.group("escaped") is not None:
                return "$"
            name = match.group("named") or match.group("braced")
            if name is None:
                if strict:
                    raise ValueError("Invalid placeholder in string")
                return match.group()
            if not strict and name not in values:
                return match.group()
            return str(values[name])
        pattern = r"\$(?:(?P<escaped>\$)|(?P<named>[_a-zA-Z][_a-zA-Z0-9]*)|\{(?P<braced>[_a-zA-Z][_a-zA-Z0-9]*)\}|)"
        return _re.sub(pattern, replace, self.template)

    def substitute(self, mapping=None, /, **values):
        return self._fill({**(mapping or {}), **values}, True)

    def safe_substitute(self, mapping=None, /, **values):
        return self._fill({**(mapping or {}), **values}, False)
