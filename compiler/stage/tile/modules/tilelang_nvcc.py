# `tilelang.contrib.nvcc` for scripts: facts about the device that torch.cuda stands for.
import torch


def get_target_compute_version(target=None):
    major, minor = torch.cuda.get_device_capability()
    return f"{major}.{minor}"


def parse_compute_version(compute_version):
    major, _, minor = compute_version.partition(".")
    return int(major), int(minor or 0)


def have_tma(target=None):
    return parse_compute_version(get_target_compute_version())[0] >= 9
