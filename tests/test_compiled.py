"""Compiled kernels belong to one state of all their sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cuewise.compiled import digest_of_kernels


def test_a_change_in_any_kernel_changes_the_place(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import numba\n")
    (tmp_path / "b.py").write_text("# calls numba code in a.py\n")
    (tmp_path / "c.py").write_text("nothing compiled\n")
    first = digest_of_kernels(tmp_path)
    (tmp_path / "c.py").write_text("still nothing compiled\n")
    assert digest_of_kernels(tmp_path) == first
    (tmp_path / "a.py").write_text("import numba  # another version\n")
    assert digest_of_kernels(tmp_path) != first


def test_the_place_is_the_users_to_choose(tmp_path: Path) -> None:
    code = "import cuewise, os; print(os.environ['NUMBA_CACHE_DIR'])"
    clean = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "CUEWISE_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(told.stdout.strip()).is_relative_to(tmp_path)
