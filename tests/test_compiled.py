"""Compiled kernels belong to one state of all their sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.shell
def test_the_place_is_the_users_to_choose(tmp_path: Path) -> None:
    code = "import cuewise, os; print(os.environ['NUMBA_CACHE_DIR'])"
    clean = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "CUEWISE_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)


CODE = "import cuewise, os; print(os.environ['NUMBA_CACHE_DIR'])"


def place_of_kernels(cache: Path) -> tuple[Path, str]:
    clean = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env={**clean, "CUEWISE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(done.stdout.strip()), done.stderr


@pytest.mark.shell
def test_the_cache_is_the_users_alone(tmp_path: Path) -> None:
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        place, said = place_of_kernels(tmp_path / "cache")
    finally:
        os.umask(before)
    assert said == ""
    for folder in (place, place.parent, tmp_path / "cache"):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert place_of_kernels(tmp_path / "cache") == (place, "")


@pytest.mark.shell
@pytest.mark.parametrize("level", ["cache", "cache/kernels", "digest"])
def test_a_cache_that_others_can_write_to_is_ignored(tmp_path: Path, level: str) -> None:
    place, _ = place_of_kernels(tmp_path / "cache")
    (place if level == "digest" else tmp_path / level).chmod(0o775)
    other, said = place_of_kernels(tmp_path / "cache")
    assert not other.is_relative_to(tmp_path)
    assert "is not used as a cache" in said
    assert not other.parents[1].exists()  # removed at the end


@pytest.mark.shell
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_cache_that_belongs_to_somebody_else_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o755)
    os.chown(tmp_path / "cache", 12345, 12345)
    place, said = place_of_kernels(tmp_path / "cache")
    assert not place.is_relative_to(tmp_path)
    assert "others own it" in said
