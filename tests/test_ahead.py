"""Kernels that are compiled ahead are those that a run calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuewise import ahead

USED = """
import numpy as np
from cuewise.data.sample import Sample
from cuewise.data.shapes import ShapeSet
from cuewise.views import RECIPES, View, Views, rotate_kernel
from cuewise.views import blur_kernel, color_kernel, resize_kernel
from cuewise.data.shapes import compose, fields

shapes = ShapeSet(n=8, size=48)
rng = np.random.default_rng(0)
views = Views((View("query", RECIPES["moco-v2"]), View("key", RECIPES["byol-2"])))
for _ in range(16):
    views(Sample(shapes.image(0)), rng)
rotate_kernel.turned(shapes.image(0), 1)
assert blur_kernel.blur.stats.cache_hits, "nothing was read from the cache"
for kernel in (
    resize_kernel.resize, color_kernel.color, color_kernel.solarize, blur_kernel.blur, rotate_kernel.turned,
    compose.pictures, fields.polygon_distance,
):
    assert not kernel.stats.cache_misses, (kernel, kernel.stats)
"""


@pytest.mark.slow
@pytest.mark.shell
def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment["CUEWISE_CACHE"] = str(tmp_path)
    command = [sys.executable, "-X", "importtime", "-m", "cuewise.ahead"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert " torch\n" not in done.stderr
    assert len(list(tmp_path.rglob("*.compiled"))) == len(ahead.GROUPS)
    subprocess.run([sys.executable, "-c", USED], env=environment, check=True)


def test_a_group_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ahead.sys, "executable", "false")
    ahead.begin("views")
    ahead.begin("views")
    assert list(ahead._running) == ["views"]
    ahead.wait("views")  # it failed: the first call compiles
    assert not ahead._running
    (tmp_path / "views.compiled").touch()
    ahead.begin("views")
    assert not ahead._running
