# `textwrap`: dedent and indent. Left out: filling paragraphs.
def dedent(text):
    lines = [line if line.strip(" \t") else "" for line in text.split("\n")]
    margin = None
    for line in lines:
        if not line:
            continue
        own = line[:len(line) - len(line.lstrip(" \t"))]
        if margin is None:
            margin = own
            continue
        same = 0
        while same < min(len(margin), len(own)) and margin[same] == own[same]:
            same += 1
        margin = margin[:same]
    return "\n".join(line[len(margin or ""):] for line in lines)


def indent(text, prefix, predicate=None):
    def wanted(line):
        return predicate(line) if predicate is not None else line.strip()
    return "".join(prefix + line if wanted(line) else line for line in text.splitlines(True))

