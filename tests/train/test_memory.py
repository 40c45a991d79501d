"""Training memory stays flat over epochs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import psutil, torch
torch.set_num_threads(1)
from cuewise import pretrain
from cuewise.train import pretrain as module
seen, original = [], module.EpochEnd.__call__
def note(self, run, measure=True):
    seen.append(psutil.Process().memory_info().rss)
    return original(self, run, measure)
module.EpochEnd.__call__ = note
pretrain("shapes?n=256&size=16", out="run", model="cuewise/resnet-tiny?width=8", size=16, batch_size=32, epochs=24,
         negatives=["patch"], workers="1", set=["moco.queue=64"])
print(max(seen[-6:]) - max(seen[6:12]))
"""


@pytest.mark.shell
@pytest.mark.usefixtures("warm_start")
def test_memory_is_flat(tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUEWISE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 8 * 2**20
