"""Judges all puzzles, or those whose numbers follow: `./tilepilot run examples/puzzles/all.py 4 5`. With `--solutions` it
judges the files in `solutions`. The exit code is 1 unless all of them are solved."""
import argparse
import sys

from cases import PUZZLES
from verdict import judge


# Imports stand in branches: a mistake in one puzzle's file does not keep the others from being judged.
def puzzle(number):
    if number == 1:
        from p01_copy import copy as program
    elif number == 2:
        from p02_add import add as program
    elif number == 3:
        from p03_outer_sum import outer_sum as program
    elif number == 4:
        from p04_row_sum import row_sum as program
    elif number == 5:
        from p05_softmax import softmax as program
    elif number == 6:
        from p06_matmul import matmul as program
    elif number == 7:
        from p07_linear_relu import linear_relu as program
    elif number == 8:
        from p08_pipeline import pipeline as program
    elif number == 9:
        from p09_dequantise import dequantise as program
    elif number == 10:
        from p10_attention import attention as program
    return program


def solution(number):
    if number == 1:
        from solutions.p01_copy import copy as program
    elif number == 2:
        from solutions.p02_add import add as program
    elif number == 3:
        from solutions.p03_outer_sum import outer_sum as program
    elif number == 4:
        from solutions.p04_row_sum import row_sum as program
    elif number == 5:
        from solutions.p05_softmax import softmax as program
    elif number == 6:
        from solutions.p06_matmul import matmul as program
    elif number == 7:
        from solutions.p07_linear_relu import linear_relu as program
    elif number == 8:
        from solutions.p08_pipeline import pipeline as program
    elif number == 9:
        from solutions.p09_dequantise import dequantise as program
    elif number == 10:
        from solutions.p10_attention import attention as program
    return program


def is_solved(number, load):
    try:
        return judge(number, load(number))
    except Exception as error:
        print(f"puzzle {number} ({PUZZLES[number][0]}): not solved, it fails: {error}")
        print("  run the file of the puzzle by itself to see the line")
        return False


def main():
    parser = argparse.ArgumentParser(description="Judges the puzzles.")
    parser.add_argument("numbers", nargs="*", type=int, help="those to judge; without any: all")
    parser.add_argument("--solutions", action="store_true", help="judge the solutions")
    options = parser.parse_args()
    for number in options.numbers:
        if number not in PUZZLES:
            parser.error(f"there is no puzzle {number}: they are numbered from 1 to {len(PUZZLES)}")
    numbers = options.numbers or list(PUZZLES)
    load = solution if options.solutions else puzzle
    solved = [number for number in numbers if is_solved(number, load)]
    print(f"{len(solved)} of {len(numbers)} solved")
    if len(solved) < len(numbers):
        sys.exit(1)


if __name__ == "__main__":
    main()
