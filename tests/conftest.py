"""What every test may use: one thread, small real images, small encoders."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # tests are many small tensors: more threads only wait on each other
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import pytest
import torch
from lightning_fabric.utilities import registry as plugins
from PIL import Image

from cuewise.data import workers
from tests.warm import Template, warm_popen

torch.set_num_threads(1)
MEMORY = "/dev/shm"  # tests write some gigabytes of small files; in memory where there is room for them
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 8 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)
# tests run side by side: a loader process that yields would wait for the other tests as well
YIELDING, workers.YIELDING = workers.YIELDING, 0
# Fabric looks through all installed packages for plugins whenever a run begins
plugins.entry_points = cache(plugins.entry_points)  # type: ignore[attr-defined]
# a shell that starts the tests in the background has them ignore Ctrl-C, and their children would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What is imported and collected stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # else libraries report what they think has leaked


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are cached below a folder of the test session, not in the user's home."""
    monkeypatch.setenv("CUEWISE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def photograph(rng: np.random.Generator, size: int = 40) -> np.ndarray:
    """A smooth, coloured picture that JPEG keeps well."""
    coarse = rng.integers(0, 256, (5, 5, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 real JPEGs in three class folders."""
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for name in ("ant", "bee", "cat"):
        (root / name).mkdir()
        for i in range(16):
            Image.fromarray(photograph(rng)).save(root / name / f"{name} {i}.jpg", quality=90)
    return root


@pytest.fixture(scope="session")
def template() -> Template:
    return Template()


@pytest.fixture(scope="module")
def warm_start(request: pytest.FixtureRequest) -> Iterator[None]:
    """Interpreters that tests of the module start have imported torch already; see warm.py."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.platform == "linux":
            patch.setattr(subprocess, "Popen", warm_popen(request.getfixturevalue("template")))
        yield
