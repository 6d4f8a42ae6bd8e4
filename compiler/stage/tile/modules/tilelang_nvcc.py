# `tilelang.contrib.nvcc` for scripts: facts about the device that torch.cuda stands for.
import _tilepilot_device as gpu


def get_target_compute_version(target=None):
    return f"{gpu.major}.{gpu.minor}"


def parse_compute_version(compute_version):
    major, _, minor = compute_version.partition(".")
    return int(major), int(minor or 0)


def have_tma(target=None):
    return parse_compute_version(get_target_compute_version())[0] >= 9
