# The help and the usage that `argparse` prints for a parser.

SUPPRESS = "==SUPPRESS=="


def is_suppressed(value):
    return isinstance(value, str) and value == SUPPRESS


def wrapped(text, width):
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] += (" " if lines[-1] else "") + word
    return lines


class HelpFormatter:
    wraps_description = True
    wraps_help = True
    shows_defaults = False

    def __init__(self, prog, indent_increment=2, max_help_position=24, width=None):
        self.prog = prog
        self.indent = " " * indent_increment
        self.max_help_position = max_help_position
        self.width = width or 78

    def usage(self, parser):
        if parser.usage is not None:
            return "usage: " + parser.usage % {"prog": self.prog} + "\n"
        shown = [action for action in parser.actions if not is_suppressed(action.help)]
        options = [self.option_usage(action) for action in shown if action.option_strings]
        positionals = [action.shown_values() for action in shown if not action.option_strings]
        start = f"usage: {self.prog} "
        if len(start + " ".join(options + positionals)) <= self.width:
            return (start + " ".join(options + positionals)).rstrip() + "\n"
        lines = [start.rstrip()]
        for parts in (options, positionals):
            fresh = parts is positionals
            for part in parts:
                if fresh or len(lines[-1]) + 1 + len(part) > self.width:
                    lines.append(" " * (len(start) - 1))
                    fresh = False
                lines[-1] += " " + part
        return "\n".join(lines) + "\n"

    def option_usage(self, action):
        return action.shown_option() if action.required else f"[{action.shown_option()}]"

    def invocation(self, action):
        if not action.option_strings:
            return self.indent + str(action.placeholder())
        return self.indent + ", ".join(f"{option} {action.shown_values()}".rstrip() for option in action.option_strings)

    def explanation(self, action):
        text = action.help
        takes_default = action.option_strings or action.nargs in ("?", "*")
        if self.shows_defaults and takes_default and "%(default)" not in text and not is_suppressed(action.default):
            text += " (default: %(default)s)"
        values = dict(vars(action), prog=self.prog)
        values["type"] = getattr(action.type, "__name__", action.type)
        if action.choices is not None:
            values["choices"] = ", ".join(str(choice) for choice in action.choices)
        return text % values

    def entry(self, action, position):
        start = self.invocation(action)
        if not action.help:
            return start + "\n"
        text = self.explanation(action)
        lines = wrapped(text, max(self.width - position, 11)) if self.wraps_help else text.splitlines()
        if len(start) > position - 2:
            lines = [start] + [" " * position + line for line in lines]
        else:
            lines = [start.ljust(position) + lines[0]] + [" " * position + line for line in lines[1:]]
        return "\n".join(lines) + "\n"

    def paragraph(self, text):
        text = text % {"prog": self.prog} if "%(prog)" in text else text
        return ("\n".join(wrapped(text, self.width)) if self.wraps_description else text.strip("\n")) + "\n"

    def help(self, parser):
        parts = [self.usage(parser)]
        if parser.description:
            parts.append(self.paragraph(parser.description))
        shown = [action for group in parser.groups for action in group.actions if not is_suppressed(action.help)]
        longest = max([len(self.invocation(action)) for action in shown], default=0)
        position = min(longest + 2, self.max_help_position)
        for group in parser.groups:
            entries = [self.entry(action, position) for action in group.actions if not is_suppressed(action.help)]
            if entries:
                about = self.indent + self.paragraph(group.description) + "\n" if group.description else ""
                parts.append(f"{group.title}:\n" + about + "".join(entries))
        if parser.epilog:
            parts.append(self.paragraph(parser.epilog))
        return "\n".join(parts)


class RawDescriptionHelpFormatter(HelpFormatter):
    wraps_description = False


class RawTextHelpFormatter(RawDescriptionHelpFormatter):
    wraps_help = False


class ArgumentDefaultsHelpFormatter(HelpFormatter):
    shows_defaults = True


class MetavarTypeHelpFormatter(HelpFormatter):
    pass
