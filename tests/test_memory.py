"""Freed memory is kept: a second step takes no new pages from the system."""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuewise.data import open_data
from cuewise.errors import UserError

PROGRAM = """
import resource, sys
from cuewise.memory import keep_freed
print(keep_freed())
import numpy as np
def step():
    blocks = [np.ones(4_000_000, np.uint8) for _ in range(8)]
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
@pytest.mark.parametrize("chosen", [False, True], ids=["by cuewise", "by the user"])
def test_a_step_uses_the_memory_of_the_step_before(chosen: bool) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    env |= {"MALLOC_MMAP_THRESHOLD_": "131072"} if chosen else {}
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    kept, faults = said.stdout.split()
    pages = 5 * 8 * 4_000_000 // os.sysconf("SC_PAGE_SIZE")
    assert (kept == "True") != chosen
    assert (int(faults) < pages / 10) != chosen


def test_the_collector_is_as_before_after_a_set_is_opened(tmp_path: Path) -> None:
    module, seen = importlib.import_module("cuewise.data.open"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "open_sources", lambda spec: seen.append(gc.isenabled()) or [])
        with pytest.raises(ValueError, match="at least one"):  # no source
            module.open_data("anything")
    assert seen == [False]
    assert gc.isenabled()
    with pytest.raises(UserError):
        open_data(tmp_path / "nowhere")
    assert gc.isenabled()
    gc.disable()
    try:
        open_data("shapes?n=2")
        assert not gc.isenabled()
    finally:
        gc.enable()
