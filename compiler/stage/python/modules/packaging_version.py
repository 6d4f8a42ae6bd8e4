# `packaging.version` for scripts: versions that compare. Left out against Python's own: unusual spellings.


class InvalidVersion(ValueError):
    pass


# Where a version stands among those of the same release: development, alpha, beta, candidate, final, after it.
STAGES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "c": -1, "": 0, "post": 1}


def number(text):
    return int(text) if text else 0


# "3rc1" as ("3", "rc", "1")
def split_part(part):
    head = 0
    while head < len(part) and part[head].isdigit():
        head += 1
    tail = head
    while tail < len(part) and part[tail].isalpha():
        tail += 1
    return part[:head], part[head:tail], part[tail:]


class Version:
    def __init__(self, version):
        text = str(version).strip().lower()
        text, _, self.local = text.removeprefix("v").partition("+")
        epoch, bang, text = text.rpartition("!")
        self.epoch, self.text = number(epoch), version
        self.read(text.replace("-", ".").replace("_", ".").split("."))

    def read(self, parts):
        release, stages = [], []
        for part in parts:
            digits, word, count = split_part(part)
            if word not in STAGES or not (digits or word) or (count and not count.isdigit()) or (digits and stages):
                raise InvalidVersion(f"Invalid version: '{self.text}'")
            if digits:
                release.append(int(digits))
            if word:
                stages.append((STAGES[word], number(count)))
        if not release:
            raise InvalidVersion(f"Invalid version: '{self.text}'")
        self.release, self.stages = tuple(release), tuple(stages)

    def key(self):
        release = list(self.release)
        while len(release) > 1 and release[-1] == 0:
            release.pop()
        return self.epoch, tuple(release), self.stages + ((0, 0),), self.local

    @property
    def major(self):
        return self.release[0]

    @property
    def minor(self):
        return self.release[1] if len(self.release) > 1 else 0

    @property
    def micro(self):
        return self.release[2] if len(self.release) > 2 else 0

    @property
    def base_version(self):
        return ".".join(str(part) for part in self.release)

    @property
    def is_prerelease(self):
        return any(stage < 0 for stage, _ in self.stages)

    def __str__(self):
        return str(self.text)

    def __repr__(self):
        return f"<Version('{self.text}')>"

    def __hash__(self):
        return hash(self.key())

    def __eq__(self, other):
        return isinstance(other, Version) and self.key() == other.key()

    def __lt__(self, other):
        return self.key() < other.key()

    def __le__(self, other):
        return self.key() <= other.key()

    def __gt__(self, other):
        return self.key() > other.key()

    def __ge__(self, other):
        return self.key() >= other.key()


def parse(version):
    return Version(version)
