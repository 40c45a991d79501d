"""Freed memory is kept: a second step takes no new pages from the system."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
