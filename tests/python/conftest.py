import os
import subprocess
import sys

import pytest
import torch

sys.dont_write_bytecode = True


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


@pytest.fixture
def python(tmp_path):
    """Runs a program in a process of its own, from a file, so that its functions have a source."""

    def run(text, *arguments, timeout=120, **environment):
        file = tmp_path / "program.py"
        file.write_text(text)
        return subprocess.run([sys.executable, str(file), *map(str, arguments)], capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **environment}, cwd=tmp_path)

    return run


@pytest.fixture
def author(tmp_path, monkeypatch):
    import stand_in_author  # which loads Inductor

    return stand_in_author.installed(tmp_path, monkeypatch)


@pytest.fixture
def x():
    return torch.randn(512, 2048)
