"""Runs the tests of the Python package for ctest: counts and reasons of skipped tests are told as GoogleTest tells them,
which scripts/test reads. usage: run.py PACKAGE_FOLDER [ARGUMENTS OF PYTEST...]"""

import importlib.util
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def skip(reason):
    print(f"{FOLDER}:1: Skipped\n{reason}")
    sys.exit(0)


class Teller:
    """Of pytest's reports, what GoogleTest would print."""

    def __init__(self):
        self.passed = 0

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed
        if report.skipped:
            file, line, reason = report.longrepr
            print(f"\n{file}:{line}: Skipped\n{reason.removeprefix('Skipped: ')}")

    def pytest_sessionfinish(self):
        print(f"\n[  PASSED  ] {self.passed} tests.")


def main():
    package, *arguments = sys.argv[1:]
    package = os.path.abspath(package)
    built = os.path.join(package, "tilepilot")
    if not os.path.isdir(built) or not any(name.startswith("_core.") for name in os.listdir(built)):
        skip("the Python package is not built: `scripts/setup --tests` builds it")
    for module in ("pytest", "torch"):
        if importlib.util.find_spec(module) is None:
            skip(f"{module} is not installed: `scripts/setup --tests` installs what the tests need")
    sys.path.insert(0, package)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    import pytest
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", FOLDER, *arguments], plugins=[Teller()]))


if __name__ == "__main__":
    main()
