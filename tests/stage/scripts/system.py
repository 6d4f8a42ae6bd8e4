import os
import os.path as osp
import sys
import time
from os.path import join, splitext

print(len(sys.argv), os.path.basename(sys.argv[0]), sys.maxsize, sys.platform)
print(sys.version_info >= (3, 8), sys.version_info[0], sys.version_info.major, isinstance(sys.executable, str))
sys.stdout.write("written\n")
sys.stdout.flush()
sys.stderr.write("")
print("to a stream", 1, sep="-", end=".\n", file=sys.stdout, flush=True)
print("as usual", file=None)


class Collector:
    def __init__(self):
        self.parts = []

    def write(self, text):
        self.parts.append(text)


collector = Collector()
print("a", 2, file=collector)
print("".join(collector.parts).strip())

for path in ["", "/", "a", "a/", "/a", "a/b.py", "/a/b/", "a//b", "../x.tar.gz", ".hidden", "a/.hidden.txt", "a.b/c", "..."]:
    print(repr(path), osp.dirname(path), osp.basename(path), splitext(path), osp.split(path), osp.normpath(path))
print(join("a", "b", "c.py"), join("a/", "b"), join("a", "/b"), join("a", ""), join("a"))
print(osp.abspath("x/../y") == join(osp.abspath("."), "y"), osp.basename(osp.realpath(__file__)))
here = osp.dirname(osp.abspath(__file__))
print(osp.basename(here), osp.exists(join(here, "system.py")), osp.exists(join(here, "absent")), osp.isdir(here), osp.isfile(here))
print(sys.path[0] == here, os.sep)
print(os.environ.get("TILEPILOT_ABSENT"), os.environ.get("TILEPILOT_ABSENT", "7"), os.getenv("TILEPILOT_ABSENT", "8"))
os.environ["TILEPILOT_ABSENT"] = "set"
print(os.environ["TILEPILOT_ABSENT"], os.getenv("TILEPILOT_ABSENT"), "TILEPILOT_ABSENT" in os.environ)

start = time.perf_counter()
print(time.perf_counter() >= start, time.time() > 1e9, time.time_ns() > 0, time.monotonic() >= 0)


def leaves(*arguments):
    try:
        sys.exit(*arguments)
    except Exception:
        print("no Exception")
    except SystemExit as stop:
        print(repr(stop), stop.code, stop.args)


leaves()
leaves(3)
leaves("message")
try:
    raise SystemExit(4)
except BaseException as stop:
    print(stop.code)
try:
    exit(5)
except SystemExit as stop:
    print(stop.code)
