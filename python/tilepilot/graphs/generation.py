"""Programs for models: the command `tilepilot generate` writes and judges them, in processes of its own.

What came of a model's text is kept in the cache, so that it is asked for once on a machine: a program, or that there
is none worth having. A command that failed is asked again, and so is one whose time was spent where there is more of
it now."""

import atexit
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import threading

import torch

from tilepilot.errors import ToolchainError
from tilepilot.graphs.devices import target_of

# A program is taken if it is faster by this, and certainly not slower.
LEAST_SPEEDUP = 1.03
_LEAST_MINUTES = 0.25  # in less the command comes to no verdict

_running = set()
_running_lock = threading.Lock()


@dataclasses.dataclass
class Options:
    """`options` of torch.compile, and arguments of `tilepilot.optimize`."""

    minutes: float = 2.0  # for the programs of a graph
    attempts: int = 6
    versions: int = 8  # sets of sizes that a graph is compiled for; others run as they are
    command: str | None = None  # the file `tilepilot`
    inductor: bool = True  # may compute what no program does
    background: bool = False  # torch's operators run until a program is there


@dataclasses.dataclass
class Outcome:
    program: pathlib.Path | None  # verified and faster; its certificate and model lie beside it
    speedup: float | None = None  # against eager, as the judge measured
    why: str = ""  # where there is no program
    parts_may_gain: bool = True  # where there is none: false where the author plans no kernel, not even for a part
    enough_minutes: float = 0.0  # where there is none: those in which this was found; infinite: more would not help


def not_sought(why):
    return Outcome(None, None, why, parts_may_gain=False)


def find_command(options):
    """The command's file. Raises where there is none: without the author and the judge nothing can be generated."""
    named = options.command or os.environ.get("TILEPILOT_COMMAND")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ToolchainError(f"`{named}`, which should be the command `tilepilot`, is no program that can be run")
        return found
    built = pathlib.Path(__file__).parents[3] / "tilepilot"  # of a build folder
    if built.is_file() and os.access(built, os.X_OK):
        return str(built)
    found = shutil.which("tilepilot")
    if found is None:
        raise ToolchainError("the command `tilepilot`, which writes and verifies programs, is not found: build it "
                             "(`scripts/setup`) and name its file in `TILEPILOT_COMMAND` or options={\"command\": ...}")
    return found


def generated(text, device, options, minutes):
    """What the command makes of a model's text for tensors on `device` in this time."""
    command, target = find_command(options), target_of(device)
    folder = _folder_for(text, target, device, command)
    if (kept := _kept(folder, minutes)) is not None:
        return kept
    if minutes < _LEAST_MINUTES:
        return not_sought(f"the {options.minutes:g} minutes for programs of its graph are spent")
    if device.type == "cuda":
        torch.cuda.empty_cache()  # the judge, a process of its own, needs memory there, too
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = pathlib.Path(tempfile.mkdtemp(prefix=".graph-", dir=folder.parent))
    except OSError:  # a cache that cannot be written: kept while this process lives
        work = pathlib.Path(tempfile.mkdtemp(prefix="tilepilot-graph-"))
        atexit.register(shutil.rmtree, work, ignore_errors=True)
        folder = None
    try:
        outcome = _run_command(command, work, text, target, options, minutes)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    if folder is None:
        return outcome
    return _moved(work, folder, outcome, minutes)


def _folder_for(text, target, device, command):
    stamp = os.stat(command)
    machine = torch.get_num_threads() if device.type == "cpu" else torch.cuda.get_device_name(device)
    facts = [text, target, torch.__version__, machine, platform.node(), stamp.st_size, stamp.st_mtime_ns]
    return _cache() / "graphs" / hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _cache():
    named = os.environ.get("TILEPILOT_CACHE")
    if named:
        return pathlib.Path(named)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tilepilot"


def _kept(folder, minutes):
    """An earlier outcome, unless it is that nothing was found in a shorter time."""
    try:
        facts = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
        program = folder / "fast.py" if facts["program"] else None
        if program is not None and not program.exists():
            return None
        if program is None and facts["enough_minutes"] < minutes * 0.9:
            return None
        return Outcome(program, facts["speedup"], facts["why"], facts["parts_may_gain"], facts["enough_minutes"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _moved(work, folder, outcome, minutes):
    """Into the cache, at once. Where another process was first, its outcome holds."""
    facts = {**dataclasses.asdict(outcome), "program": outcome.program is not None}
    (work / "outcome.json").write_text(json.dumps(facts), encoding="utf-8")
    for _ in range(2):
        try:
            os.rename(work, folder)
            return dataclasses.replace(outcome, program=outcome.program and folder / "fast.py")
        except OSError:
            if (kept := _kept(folder, minutes)) is not None:
                shutil.rmtree(work, ignore_errors=True)
                return kept
        shutil.rmtree(folder, ignore_errors=True)  # one that found nothing in a shorter time
    return outcome


def _run_command(command, work, text, target, options, minutes):
    (work / "model.py").write_text(text, encoding="utf-8")
    line = [command, "generate", "model.py", "-o", "fast.py", "--json", "--quiet", "--author", "builtin", "--no-corpus",
            "--target", target, "--minutes", str(minutes), "--attempts", str(options.attempts),
            "--threads", str(torch.get_num_threads()), "--python", sys.executable]
    process = subprocess.Popen(line, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    with _running_lock:
        _running.add(process)
    try:
        said, errors = process.communicate()
    finally:
        with _running_lock:
            _running.discard(process)
        if process.poll() is None:
            process.kill()
            process.wait()
    try:
        answer = json.loads(said)
    except ValueError:
        raise ToolchainError(f"`{command} generate` ended with code {process.returncode} and no answer: "
                             f"{errors.strip()[-300:]}") from None
    if told := answer.get("errors"):
        if told[0]["kind"] != "model_invalid":
            raise ToolchainError(f"`{command} generate` failed: {told[0]['message']}")
        return Outcome(None, None, told[0]["message"], enough_minutes=math.inf)
    outcome = _outcome(answer, work / "fast.py")
    outcome.enough_minutes = minutes if answer.get("ending") == "time spent" else math.inf
    return outcome


def _outcome(answer, program):
    if not answer.get("ok") or not program.exists():
        plans_nothing = answer.get("ending") == "nothing left to try" and not answer.get("attempts")
        return Outcome(None, None, answer.get("reason") or "no verified program", not plans_nothing)
    verdict = answer.get("verdict") or {}
    speedup = verdict.get("speedup") or 0.0
    low = (verdict.get("speedup_interval") or [0.0])[0]
    if verdict.get("degenerate"):
        return Outcome(None, speedup, "the verdict is `degenerate`: a constant or a copy would pass for its results")
    if verdict.get("outcome") != "verified":
        return Outcome(None, speedup, f"the verdict is `{verdict.get('outcome')}`")
    if speedup < LEAST_SPEEDUP or low < 1.0:
        return Outcome(None, speedup, f"the program is not faster ({speedup:.2f}x of eager, at least {low:.2f}x)")
    return Outcome(program, speedup)


def _end_running():
    """At the end of the interpreter nobody waits for a program any more."""
    with _running_lock:
        for process in _running:
            process.terminate()


atexit.register(_end_running)
