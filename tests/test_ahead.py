"""Kernels that are compiled ahead are those that a run calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuewise import compiled
from cuewise.data.shapes import ShapeSet

USED = """
import numpy as np
from cuewise import ahead
from cuewise.data.sample import Sample
from cuewise.data.shapes import ShapeSet
from cuewise.views import RECIPES, View, Views, rotate_kernel
from cuewise.views import blur_kernel, color_kernel, resize_kernel
from cuewise.data.shapes import compose, fields

kernels = (
    resize_kernel.resize, color_kernel.color, color_kernel.solarize, blur_kernel.blur, rotate_kernel.turned,
    compose.pictures, fields.polygon_distance,
)
for group in ahead.GROUPS.values():
    group()
known = [list(k.signatures) for k in kernels]
assert all(known), known
shapes = ShapeSet(n=8, size=48)
rng = np.random.default_rng(0)
views = Views((View("query", RECIPES["moco-v2"]), View("key", RECIPES["byol-2"])))
for _ in range(16):
    views(Sample(shapes.image(0)), rng)
rotate_kernel.turned(shapes.image(0), 1)
for kernel, before in zip(kernels, known):
    assert list(kernel.signatures) == before, (kernel, kernel.signatures, before)
    assert not kernel.stats.cache_misses, "nothing was read from the cache"
"""


@pytest.mark.slow
@pytest.mark.shell
def test_nothing_is_left_to_compile() -> None:
    """In the user's own cache, where `make setup` left them: compiling takes seconds."""
    environment = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "CUEWISE_CACHE")}
    command = [sys.executable, "-X", "importtime", "-m", "cuewise.ahead"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert " torch\n" not in done.stderr
    subprocess.run([sys.executable, "-c", USED], env=environment, check=True)


@pytest.mark.slow
@pytest.mark.shell
def test_a_compiled_group_leaves_its_mark(tmp_path: Path) -> None:
    code = "from cuewise import ahead; ahead.GROUPS = {'views': lambda: None, 'shapes': lambda: None}; ahead.main([])"
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    environment["CUEWISE_CACHE"] = str(tmp_path)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert sorted(f.name for f in tmp_path.rglob("*.compiled")) == ["shapes.compiled", "views.compiled"]


def test_a_group_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiled.sys, "executable", "false")
    compiled.begin()
    compiled.begin(["photos"])
    assert list(compiled._running) == ["views"]
    compiled.wait()  # it failed: the first call compiles
    assert not compiled._running
    (tmp_path / "views.compiled").touch()
    compiled.begin(["photos"])
    assert not compiled._running
    compiled.begin(["photos", "shapes:scenes?n=4"])
    assert list(compiled._running) == ["shapes"]
    ShapeSet(n=1, size=16).batch([0])
    assert not compiled._running, "an image was drawn before its kernel was ready"
