"""environment.json: versions, machine and data of a run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
import time
from functools import cache
from typing import Any

import torch

PACKAGES = (
    "cuewise",
    "torch",
    "torchvision",
    "timm",
    "lightning-fabric",
    "numpy",
    "numba",
    "pillow",
    "simplejpeg",
)


def environment(**more: Any) -> dict[str, Any]:
    """Versions, git state of the working folder, machine; `more` is put beside them."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": shlex.join(sys.argv),  # can be pasted back, names with spaces too
        "versions": {"python": platform.python_version(), **{p: _version(p) for p in PACKAGES}},
        "git": _git(),
        "machine": {
            "system": platform.platform(),
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
        },
        **more,
    }


@cache
def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    """The commit of the working folder and whether its files differ; None where there is none."""
    words = ["git", "status", "--porcelain=2", "--branch", "--untracked-files=no"]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = ran.stdout.splitlines()
    commit = next((x.split()[-1] for x in lines if x.startswith("# branch.oid ")), "(initial)")
    changed = any(not x.startswith("# ") for x in lines)
    return None if commit == "(initial)" else {"commit": commit, "changed": changed}


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
