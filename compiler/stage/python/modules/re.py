# `re` around the matcher, which gives the spans of matches. Left out: patterns of bytes, and Scanner.
A = ASCII = 256
I = IGNORECASE = 2
M = MULTILINE = 8
S = DOTALL = 16
U = UNICODE = 32
X = VERBOSE = 64
NOFLAG = 0
_SEARCH, _MATCH, _FULLMATCH = 0, 1, 2
_SPECIAL = "()[]{}?*+-|^$\\.&~# \t\n\r\v\f"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}
_FLAG_NAMES = ((2, "IGNORECASE"), (8, "MULTILINE"), (16, "DOTALL"), (64, "VERBOSE"), (256, "ASCII"))
_compiled = {}


class error(Exception):
    def __init__(self, msg, pattern=None, pos=None):
        super().__init__(msg)
        self.msg, self.pattern, self.pos = msg.rpartition(" at position ")[0] or msg, pattern, pos


class Match:
    def __init__(self, pattern, string, pos, endpos, found):
        self.re, self.string, self.pos, self.endpos = pattern, string, pos, endpos
        last, self.regs = found
        self.lastindex = last or None

    @property
    def lastgroup(self):
        for name, index in self.re.groupindex.items():
            if index == self.lastindex:
                return name
        return None

    def span(self, group=0):
        if isinstance(group, str):
            if group not in self.re.groupindex:
                raise IndexError("no such group")
            group = self.re.groupindex[group]
        if not 0 <= group < len(self.regs):
            raise IndexError("no such group")
        return self.regs[group]

    def start(self, group=0):
        return self.span(group)[0]

    def end(self, group=0):
        return self.span(group)[1]

    def _text(self, group, default=None):
        start, end = self.span(group)
        return default if start < 0 else self.string[start:end]

    def group(self, *groups):
        if len(groups) <= 1:
            return self._text(groups[0] if groups else 0)
        return tuple(self._text(each) for each in groups)

    def __getitem__(self, group):
        return self._text(group)

    def groups(self, default=None):
        return tuple(self._text(each, default) for each in range(1, len(self.regs)))

    def groupdict(self, default=None):
        return {name: self._text(index, default) for name, index in self.re.groupindex.items()}

    def expand(self, template):
        return _template(template, self.re)(self)

    def __repr__(self):
        return f"<re.Match object; span={self.span()}, match={self._text(0)!r}>"


class Pattern:
    def __init__(self, pattern, flags):
        try:
            self._program, self.flags, self.groups, self.groupindex = _compile(pattern, flags)
        except ValueError as problem:
            raise error(str(problem), pattern) from None
        self.pattern = pattern

    def _matches(self, string, pos, endpos, anchor, most):
        if not isinstance(string, str):
            raise TypeError(f"expected string or bytes-like object, got '{type(string).__name__}'")
        pos, endpos = min(max(pos, 0), len(string)), max(len(string) if endpos is None else min(endpos, len(string)), 0)
        if pos > endpos:
            return []
        return [Match(self, string, pos, endpos, found)
                for found in _scan(self._program, string, pos, endpos, anchor, most)]

    def _first(self, string, pos, endpos, anchor):
        matches = self._matches(string, pos, endpos, anchor, 1)
        return matches[0] if matches else None

    def search(self, string, pos=0, endpos=None):
        return self._first(string, pos, endpos, _SEARCH)

    def match(self, string, pos=0, endpos=None):
        return self._first(string, pos, endpos, _MATCH)

    def fullmatch(self, string, pos=0, endpos=None):
        return self._first(string, pos, endpos, _FULLMATCH)

    def finditer(self, string, pos=0, endpos=None):
        return iter(self._matches(string, pos, endpos, _SEARCH, 0))

    def findall(self, string, pos=0, endpos=None):
        matches = self._matches(string, pos, endpos, _SEARCH, 0)
        if self.groups <= 1:
            return [match._text(self.groups, "") for match in matches]
        return [match.groups("") for match in matches]

    def split(self, string, maxsplit=0):
        if maxsplit < 0:
            return [string]
        pieces, at = [], 0
        for match in self._matches(string, 0, None, _SEARCH, maxsplit):
            pieces.append(string[at:match.start()])
            pieces.extend(match.groups())
            at = match.end()
        pieces.append(string[at:])
        return pieces

    def subn(self, repl, string, count=0):
        fill = repl if callable(repl) else _template(repl, self)
        pieces, at, made = [], 0, 0
        for match in self._matches(string, 0, None, _SEARCH, max(count, 0)) if count >= 0 else ():
            pieces.append(string[at:match.start()])
            pieces.append(fill(match))
            at = match.end()
            made += 1
        pieces.append(string[at:])
        return "".join(pieces), made

    def sub(self, repl, string, count=0):
        return self.subn(repl, string, count)[0]

    def __eq__(self, other):
        return isinstance(other, Pattern) and (self.pattern, self.flags) == (other.pattern, other.flags)

    def __hash__(self):
        return hash((self.pattern, self.flags))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        names = [f"re.{name}" for flag, name in _FLAG_NAMES if self.flags & flag]
        return f"re.compile({self.pattern!r}{', ' + '|'.join(names) if names else ''})"


def _template(template, pattern):
    """A function of a match: the template with its groups put in."""
    parts, at = [], 0

    def digits(most, allowed):
        nonlocal at
        begin = at
        while at < len(template) and at - begin < most and template[at] in allowed:
            at += 1
        return template[begin:at]

    def add_group(index):
        if index > pattern.groups:
            raise error(f"invalid group reference {index}")
        parts.append(index)

    while at < len(template):
        found = template.find("\\", at)
        if found < 0:
            parts.append(template[at:])
            break
        parts.append(template[at:found])
        if found + 1 == len(template):
            raise error("bad escape (end of pattern)")
        letter, at = template[found + 1], found + 1
        if letter == "g":
            close = template.find(">", at)
            if template[at + 1:at + 2] != "<" or close < 0:
                raise error("missing <" if close >= 0 else "missing >, unterminated name")
            name, at = template[at + 2:close], close + 1
            if name.isdigit():
                add_group(int(name))
            elif name in pattern.groupindex:
                parts.append(pattern.groupindex[name])
            elif not name:
                raise error("missing group name")
            elif not name.isidentifier():
                raise error(f"bad character in group name {name!r}")
            else:
                raise IndexError(f"unknown group name {name!r}")
        elif letter == "0":
            parts.append(chr(int(digits(3, "01234567"), 8)))
        elif letter.isdigit():
            octal = template[at:at + 3]
            if len(octal) == 3 and all(each in "01234567" for each in octal):
                at += 3
                parts.append(chr(int(octal, 8)))
            else:
                add_group(int(digits(2, "0123456789")))
        elif letter in _ESCAPES:
            parts.append(_ESCAPES[letter])
            at += 1
        elif "a" <= letter.lower() <= "z":
            raise error(f"bad escape \\{letter}")
        else:
            parts.append("\\" + letter)
            at += 1
    return lambda match: "".join(part if isinstance(part, str) else match._text(part, "") for part in parts)


def compile(pattern, flags=0):
    if isinstance(pattern, Pattern):
        if flags:
            raise ValueError("cannot process flags argument with a compiled pattern")
        return pattern
    if not isinstance(pattern, str):
        raise TypeError("first argument must be string or compiled pattern")
    key = (pattern, int(flags))
    if key not in _compiled:
        _compiled[key] = Pattern(pattern, int(flags))
    return _compiled[key]


def search(pattern, string, flags=0):
    return compile(pattern, flags).search(string)


def match(pattern, string, flags=0):
    return compile(pattern, flags).match(string)


def fullmatch(pattern, string, flags=0):
    return compile(pattern, flags).fullmatch(string)


def findall(pattern, string, flags=0):
    return compile(pattern, flags).findall(string)


def finditer(pattern, string, flags=0):
    return compile(pattern, flags).finditer(string)


def split(pattern, string, maxsplit=0, flags=0):
    return compile(pattern, flags).split(string, maxsplit)


def sub(pattern, repl, string, count=0, flags=0):
    return compile(pattern, flags).sub(repl, string, count)


def subn(pattern, repl, string, count=0, flags=0):
    return compile(pattern, flags).subn(repl, string, count)


def escape(pattern):
    return "".join("\\" + each if each in _SPECIAL else each for each in pattern)


def purge():
    _compiled.clear()
