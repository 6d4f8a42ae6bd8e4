import argparse
from argparse import ArgumentParser, BooleanOptionalAction, Namespace


def tried(parser, text):
    try:
        print(parser.parse_args(text.split()))
    except SystemExit as stop:
        print("exit", stop.code)


sizes = ArgumentParser(prog="sizes", description="Sizes of a product.")
sizes.add_argument("--m", type=int, default=256, help="rows")
sizes.add_argument("-n", "--num-columns", type=int, default=128)
sizes.add_argument("--scale", type=float, default="0.5")
sizes.add_argument("--name", "-N")
sizes.add_argument("--causal", action="store_true", help="mask the future")
sizes.add_argument("--no-check", action="store_false", dest="check")
sizes.add_argument("--tune", action=BooleanOptionalAction, default=False)
sizes.add_argument("-v", action="count", default=0)
sizes.add_argument("-q", "--quiet", action="store_const", const="quiet")
for text in ["", "--m 3", "--m=4 -n5", "-n=6", "-n 7 --scale 2", "--num-columns 8 --causal --no-check", "--tune", "--no-tune",
             "-vvq", "-vvn 9", "--na x --ca", "--m -3", "-N a=b", "-vv --quiet -v"]:
    tried(sizes, text)
for text in ["--m", "--m x", "--m 1 2", "--unknown", "--n 3", "--causal=1", "-vx", "--scale 1,5", "stray", "--m=", "--name -x"]:
    tried(sizes, text)
print(sizes.format_usage(), end="")

lists = ArgumentParser(prog="lists", add_help=False)
lists.add_argument("mode", choices=["fast", "exact"])
lists.add_argument("shape", type=int, nargs=2)
lists.add_argument("rest", nargs="*")
lists.add_argument("--blocks", type=int, nargs="+", default=[64])
lists.add_argument("--stage", type=int, nargs="?", const=2)
lists.add_argument("--tag", action="append")
lists.add_argument("--pair", nargs=2, metavar=("LOW", "HIGH"))
lists.add_argument("--more", action="extend", nargs="*", default=["a"])
for text in ["fast 1 2", "exact 1 2 a b", "fast 1 2 --blocks 16 32", "--stage -- fast 1 2 -x", "--stage 3 fast 4 5",
             "--tag a --tag b fast 1 2", "fast --pair 1 2 3 4", "fast 1 2 --more b c --more d", "fast -1 2"]:
    tried(lists, text)
for text in ["", "fast", "fast 1", "slow 1 2", "fast 1 x", "fast 1 2 --blocks", "fast 1 2 --pair 1", "fast 1 2 --help"]:
    tried(lists, text)
print(lists.format_usage(), end="")

choice = ArgumentParser(prog="choice")
group = choice.add_mutually_exclusive_group(required=True)
group.add_argument("--left", action="store_true")
group.add_argument("--right", type=int)
more = choice.add_argument_group("more", "and more")
more.add_argument("--dtype", choices=("float16", "bfloat16"), default="float16", required=False)
more.add_argument("--must", required=True)
for text in ["--left --must 1", "--right 0 --must 1", "--left", "--must 1", "--left --right 2 --must 3", "--right 1 --must 2 --dtype int8"]:
    tried(choice, text)


def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


class Doubled(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values * 2)


special = ArgumentParser(prog="special", argument_default=argparse.SUPPRESS, formatter_class=argparse.RawTextHelpFormatter)
special.add_argument("--count", type=positive)
special.add_argument("--twice", type=int, action=Doubled)
special.add_argument("--flag", type=lambda text: text.lower() == "true")
special.set_defaults(extra=[1, 2])
for text in ["", "--count 3", "--count -3", "--count=-3", "--twice 4", "--flag TRUE", "--flag no"]:
    tried(special, text)
print(special.parse_known_args(["--count", "1", "--other", "x", "-y", "z"]))

print(special.parse_args([], Namespace(count=5)), special.get_default("extra"))
args = sizes.parse_args(["--m", "1"])
print(args.m, vars(args)["num_columns"], "m" in args, "k" in args, args == sizes.parse_args(["--m=1"]))
print(Namespace(a=1) == Namespace(a=1), Namespace(a=1) != Namespace(a=2), Namespace(x="y"))
print(ArgumentParser().prog, ArgumentParser().parse_args())
for bad in [lambda: sizes.add_argument("--m"), lambda: sizes.add_argument("--z", action="store_five")]:
    try:
        bad()
    except (argparse.ArgumentError, ValueError) as error:
        print(type(error).__name__, error)
