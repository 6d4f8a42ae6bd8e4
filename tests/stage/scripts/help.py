# What --help prints differs between versions of Python in its details: only the words are compared.
import argparse

parser = argparse.ArgumentParser(
    prog="product",
    description="Multiplies two matrices of the sizes that are given here, in the element type that is given, and compares.",
    epilog="Sizes are in elements.",
    formatter_class=argparse.ArgumentDefaultsHelpFormatter,
)
parser.add_argument("target", help="where %(prog)s runs")
parser.add_argument("--rows", type=int, default=1024, help="rows, a %(type)s of at least 100%% of the block")
parser.add_argument("--dtype", choices=["float16", "bfloat16"], default="float16", help="element type")
parser.add_argument("--a-rather-long-option-name", action="store_true", help="help that stands on a line of its own, and wraps where it is longer")
parser.add_argument("--hidden", help=argparse.SUPPRESS)
parser.print_usage()
print(parser.format_help().split("usage:")[1].split())
try:
    parser.parse_args(["--help"])
except SystemExit as stop:
    print("exit", stop.code)
