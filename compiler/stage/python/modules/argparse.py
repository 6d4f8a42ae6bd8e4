# `argparse` for scripts: reads sys.argv into a Namespace. The evaluator runs it when a script imports it. Left out
# against Python's own: sub-commands, argument files, parents, and values that begin with a dash.
import sys

from _argparse_help import (SUPPRESS, ArgumentDefaultsHelpFormatter, HelpFormatter, MetavarTypeHelpFormatter,
                            RawDescriptionHelpFormatter, RawTextHelpFormatter, is_suppressed)

OPTIONAL, ZERO_OR_MORE, ONE_OR_MORE = "?", "*", "+"
ENDLESS = 1 << 30
# How many values an argument takes, at least and at most, and how an error says so.
COUNTS = {
    None: (1, 1, "expected one argument"),
    OPTIONAL: (0, 1, "expected at most one argument"),
    ZERO_OR_MORE: (0, ENDLESS, ""),
    ONE_OR_MORE: (1, ENDLESS, "expected at least one argument"),
}


def count_of(nargs):
    if isinstance(nargs, int):
        return nargs, nargs, f"expected {nargs} argument{'' if nargs == 1 else 's'}"
    if nargs not in COUNTS:
        raise ValueError(f"nargs {nargs!r} is not supported")
    return COUNTS[nargs]


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


class ArgumentTypeError(Exception):
    """What a `type` function raises to choose the message."""


class ArgumentError(Exception):
    def __init__(self, argument, message):
        super().__init__(message)
        self.argument_name = argument.shown_name() if argument is not None else None
        self.message = message

    def __str__(self):
        return f"argument {self.argument_name}: {self.message}" if self.argument_name else self.message


class Namespace:
    def __init__(self, **values):
        for name, value in values.items():
            setattr(self, name, value)

    def __eq__(self, other):
        return vars(self) == vars(other) if isinstance(other, Namespace) else NotImplemented

    def __contains__(self, name):
        return name in vars(self)

    def __repr__(self):
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"


class Action:
    """One argument. Called with its values when it was given."""

    def __init__(self, option_strings, dest, nargs=None, const=None, default=None, type=None, choices=None,
                 required=False, help=None, metavar=None):
        self.option_strings = option_strings
        self.dest = dest
        self.nargs = nargs
        self.const = const
        self.default = default
        self.type = type
        self.choices = choices
        self.required = required
        self.help = help
        self.metavar = metavar
        self.least, self.most, self.expected = count_of(nargs)

    def shown_name(self):
        return "/".join(self.option_strings) or self.metavar or self.dest

    # What stands for its value in the help.
    def placeholder(self):
        if self.metavar is not None:
            return self.metavar
        if self.choices is not None:
            return "{" + ",".join(str(choice) for choice in self.choices) + "}"
        return self.dest.upper() if self.option_strings else self.dest

    def shown_values(self):
        name = self.placeholder()
        names = list(name) if isinstance(name, tuple) else [name]
        if isinstance(self.nargs, int):
            return " ".join(names if len(names) == self.nargs else names[:1] * self.nargs)
        first, last = names[0], names[-1]
        return {None: first, OPTIONAL: f"[{first}]", ZERO_OR_MORE: f"[{first} ...]",
                ONE_OR_MORE: f"{first} [{last} ...]"}[self.nargs]

    def shown_option(self):
        return f"{self.option_strings[0]} {self.shown_values()}".rstrip()


class Store(Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


class Flag(Action):
    """Takes no value."""

    def __init__(self, option_strings, dest, **more):
        super().__init__(option_strings, dest, nargs=0, **more)

    def shown_values(self):
        return ""


class StoreConst(Flag):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.const)


class StoreTrue(StoreConst):
    def __init__(self, option_strings, dest, default=False, **more):
        super().__init__(option_strings, dest, const=True, default=default, **more)


class StoreFalse(StoreConst):
    def __init__(self, option_strings, dest, default=True, **more):
        super().__init__(option_strings, dest, const=False, default=default, **more)


class BooleanOptionalAction(Flag):
    """`--x` and `--no-x`."""

    def __init__(self, option_strings, dest, **more):
        negated = ["--no-" + option[2:] for option in option_strings if option.startswith("--")]
        super().__init__(option_strings + negated, dest, **more)

    def shown_option(self):
        return " | ".join(self.option_strings)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, not option_string.startswith("--no-"))


class Count(Flag):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, (getattr(namespace, self.dest, None) or 0) + 1)


class Append(Action):
    def added(self, values):
        return [values]

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, list(getattr(namespace, self.dest, None) or []) + self.added(values))


class Extend(Append):
    def added(self, values):
        return list(values)


class AppendConst(Append):
    def __init__(self, option_strings, dest, **more):
        super().__init__(option_strings, dest, nargs=0, **more)

    def added(self, values):
        return [self.const]


class Help(Flag):
    def __call__(self, parser, namespace, values, option_string=None):
        parser.print_help()
        parser.exit()


class Version(Flag):
    def __init__(self, option_strings, dest, version=None, default=SUPPRESS, **more):
        super().__init__(option_strings, dest, default=default, **more)
        self.version = version

    def __call__(self, parser, namespace, values, option_string=None):
        print(self.version % {"prog": parser.prog})
        parser.exit()


ACTIONS = {
    None: Store,
    "store": Store,
    "store_const": StoreConst,
    "store_true": StoreTrue,
    "store_false": StoreFalse,
    "append": Append,
    "append_const": AppendConst,
    "extend": Extend,
    "count": Count,
    "help": Help,
    "version": Version,
}


class Group:
    """Arguments under a title of their own in the help."""

    def __init__(self, parser, title=None, description=None):
        self.parser = parser
        self.title = title
        self.description = description
        self.actions = []

    def add_argument(self, *names, **options):
        action = self.parser.make_action(names, options)
        self.actions.append(action)
        return action

    def add_mutually_exclusive_group(self, required=False):
        return self.parser.add_exclusive(self, required)


class ExclusiveGroup:
    """Arguments of which at most one may be given; shown in the help of another group."""

    def __init__(self, shown_in, required):
        self.shown_in = shown_in
        self.required = required
        self.actions = []

    def add_argument(self, *names, **options):
        action = self.shown_in.add_argument(*names, **options)
        self.actions.append(action)
        return action


class ArgumentParser:
    def __init__(self, prog=None, usage=None, description=None, epilog=None, formatter_class=HelpFormatter,
                 argument_default=None, add_help=True, allow_abbrev=True, exit_on_error=True):
        self.prog = prog if prog is not None else sys.argv[0].rpartition("/")[2]
        self.usage = usage
        self.description = description
        self.epilog = epilog
        self.formatter_class = formatter_class
        self.argument_default = argument_default
        self.allow_abbrev = allow_abbrev
        self.exit_on_error = exit_on_error
        self.actions = []
        self.options = {}  # the action of each option string
        self.defaults = {}
        self.positionals_group = Group(self, "positional arguments")
        self.options_group = Group(self, "options")
        self.groups = [self.positionals_group, self.options_group]
        self.exclusive_groups = []
        if add_help:
            self.add_argument("-h", "--help", action="help", default=SUPPRESS, help="show this help message and exit")

    # What may be given.

    def add_argument(self, *names, **options):
        is_option = bool(names) and names[0].startswith("-")
        return (self.options_group if is_option else self.positionals_group).add_argument(*names, **options)

    def add_argument_group(self, title=None, description=None):
        self.groups.append(Group(self, title, description))
        return self.groups[-1]

    def add_mutually_exclusive_group(self, required=False):
        return self.add_exclusive(self, required)

    def add_exclusive(self, shown_in, required):
        self.exclusive_groups.append(ExclusiveGroup(shown_in, required))
        return self.exclusive_groups[-1]

    def make_action(self, names, options):
        kind = options.pop("action", None)
        if isinstance(kind, str) and kind not in ACTIONS:
            raise ValueError(f'unknown action "{kind}"')
        action_class = ACTIONS[kind] if kind is None or isinstance(kind, str) else kind
        if self.argument_default is not None:
            options.setdefault("default", self.argument_default)
        if names and names[0].startswith("-"):
            action = self.make_option(action_class, list(names), options)
        else:
            action = self.make_positional(action_class, names, options)
        if action.dest in self.defaults:
            action.default = self.defaults[action.dest]
        self.actions.append(action)
        return action

    def make_option(self, action_class, names, options):
        longest = [name for name in names if name.startswith("--")] or names
        dest = options.pop("dest", None) or longest[0].lstrip("-").replace("-", "_")
        action = action_class(names, dest, **options)
        for name in action.option_strings:
            if name in self.options:
                raise ArgumentError(action, f"conflicting option string: {name}")
            self.options[name] = action
        return action

    def make_positional(self, action_class, names, options):
        if "required" in options:
            raise TypeError("'required' is an invalid argument for positionals")
        dest = names[0] if names else options.pop("dest")
        action = action_class([], dest, **options)
        action.required = action.least > 0
        return action

    def set_defaults(self, **values):
        self.defaults.update(values)
        for action in self.actions:
            if action.dest in values:
                action.default = values[action.dest]

    def get_default(self, dest):
        for action in self.actions:
            if action.dest == dest and action.default is not None:
                return action.default
        return self.defaults.get(dest)

    # What was given.

    def parse_args(self, args=None, namespace=None):
        namespace, extras = self.parse_known_args(args, namespace)
        if extras:
            self.error(f"unrecognized arguments: {' '.join(extras)}")
        return namespace

    def parse_known_args(self, args=None, namespace=None):
        args = list(sys.argv[1:] if args is None else args)
        namespace = Namespace() if namespace is None else namespace
        for action in self.actions:
            if not is_suppressed(action.default) and not hasattr(namespace, action.dest):
                setattr(namespace, action.dest, action.default)
        for name, value in self.defaults.items():
            if not hasattr(namespace, name):
                setattr(namespace, name, value)
        try:
            return namespace, self.read(args, namespace)
        except ArgumentError as error:
            if not self.exit_on_error:
                raise
            self.error(str(error))

    # Fills the namespace; returns what no argument takes, in order.
    def read(self, args, namespace):
        seen, extras, values = [], [], []  # extras and values: (position, text)
        position = 0
        while position < len(args):
            if args[position] == "--":
                values += list(enumerate(args))[position + 1:]
                break
            found = self.find_option(args[position])
            if found is None:
                values.append((position, args[position]))
                position += 1
            elif found[0] is None:
                extras.append((position, args[position]))
                position += 1
            else:
                position = self.read_option(found, args, position + 1, namespace, seen)
        extras += self.read_positionals(values, namespace, seen)
        self.finish(namespace, seen)
        return [text for _, text in sorted(extras)]

    # (action, option string, value behind `=`) of an option; its action is None if nobody knows it. None for a value.
    def find_option(self, text):
        if not text.startswith("-") or text == "-":
            return None
        if text in self.options:
            return self.options[text], text, None
        name, equals, value = text.partition("=")
        value = value if equals else None
        if name in self.options:
            return self.options[name], name, value
        if text.startswith("--") and self.allow_abbrev:
            matches = [option for option in self.options if option.startswith(name)]
            if len(matches) > 1:
                raise ArgumentError(None, f"ambiguous option: {text} could match {', '.join(matches)}")
            if matches:
                return self.options[matches[0]], matches[0], value
        if text[1] != "-" and text[:2] in self.options:
            return self.options[text[:2]], text[:2], text[2:]
        if " " in text or is_number(text) and not any(is_number(option) for option in self.options):
            return None
        return None, text, None

    # Returns the position behind what the option took.
    def read_option(self, found, args, position, namespace, seen):
        action, name, value = found
        while value is not None and action.nargs == 0:  # -xyz: one flag after another
            following = "-" + value[:1]
            if name.startswith("--") or following not in self.options:
                raise ArgumentError(action, f"ignored explicit argument {value!r}")
            self.apply(action, [], namespace, seen, name)
            action, name, value = self.options[following], following, value[1:] or None
        texts = [] if value is None else [value]
        while value is None and len(texts) < action.most and position < len(args):
            if args[position] == "--" or self.find_option(args[position]) is not None:
                break
            texts.append(args[position])
            position += 1
        if not action.least <= len(texts) <= action.most:
            raise ArgumentError(action, action.expected)
        self.apply(action, texts, namespace, seen, name)
        return position

    # Each argument takes as many values as the others can spare, the first ones first. Returns what is left over.
    def read_positionals(self, values, namespace, seen):
        positionals = [action for action in self.actions if not action.option_strings]
        spare = len(values) - sum(action.least for action in positionals)
        for action in positionals:
            if len(values) < action.least:
                break
            taken = min(action.most, action.least + max(spare, 0))
            spare -= taken - action.least
            self.apply(action, [text for _, text in values[:taken]], namespace, seen)
            values = values[taken:]
        return values

    def apply(self, action, texts, namespace, seen, option_string=None):
        for group in self.exclusive_groups:
            for other in group.actions:
                if action in group.actions and other is not action and other in seen and (option_string or texts):
                    raise ArgumentError(action, f"not allowed with argument {other.shown_name()}")
        seen.append(action)
        action(self, namespace, self.converted(action, texts), option_string)

    def converted(self, action, texts):
        if action.nargs == OPTIONAL and not texts:
            value = action.const if action.option_strings else action.default
            return self.one_value(action, value) if isinstance(value, str) else value
        if action.nargs == ZERO_OR_MORE and not texts and not action.option_strings:
            return action.default if action.default is not None else []
        values = [self.one_value(action, text) for text in texts]
        for value in values:
            if action.choices is not None and value not in action.choices:
                choices = ", ".join(repr(choice) for choice in action.choices)
                raise ArgumentError(action, f"invalid choice: {value!r} (choose from {choices})")
        return values[0] if action.nargs in (None, OPTIONAL) else values

    def one_value(self, action, text):
        if action.type is None:
            return text
        try:
            return action.type(text)
        except ArgumentTypeError as error:
            raise ArgumentError(action, str(error))
        except (TypeError, ValueError):
            kind = getattr(action.type, "__name__", repr(action.type))
            raise ArgumentError(action, f"invalid {kind} value: {text!r}")

    # Complains of what is missing; gives what was not given its default, converted if it is text.
    def finish(self, namespace, seen):
        absent = [action for action in self.actions if action not in seen]
        missing = [action.shown_name() for action in absent if action.required]
        if missing:
            raise ArgumentError(None, f"the following arguments are required: {', '.join(missing)}")
        for group in self.exclusive_groups:
            if group.required and not any(action in seen for action in group.actions):
                names = " ".join(action.shown_name() for action in group.actions)
                raise ArgumentError(None, f"one of the arguments {names} is required")
        for action in absent:
            default = action.default
            if isinstance(default, str) and default != SUPPRESS and getattr(namespace, action.dest, None) == default:
                setattr(namespace, action.dest, self.one_value(action, default))

    # What it says.

    def format_usage(self):
        return self.formatter_class(prog=self.prog).usage(self)

    def format_help(self):
        return self.formatter_class(prog=self.prog).help(self)

    def print_usage(self, file=None):
        (file or sys.stdout).write(self.format_usage())

    def print_help(self, file=None):
        (file or sys.stdout).write(self.format_help())

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n")

    def exit(self, status=0, message=None):
        if message:
            sys.stderr.write(message)
        sys.exit(status)
