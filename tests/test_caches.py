"""`cuewise clean`: shows what the cache holds, and deletes only what cuewise wrote there."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

import cuewise
from cuewise.caches import KINDS, caches
from cuewise.cli import main
from cuewise.compiled import digest_of_kernels

OWN = {
    "features": "features/" + "a1" * 20 + ".npz",
    "textures": "textures/ab/" + "ab" * 20 + ".png",
    "kernels": "kernels/" + "0" * 16 + "/cues_1f/blur_kernel.blur-40.py311.nbi",
    "indexes": "index-" + "0f" * 16 + ".npz",
    "permutations": "permutations/1-9-100.npy",
}
LEFT_BY_A_KILL = [OWN["features"] + "." + "0a" * 6 + ".tmp", "index-" + "0e" * 16 + ".images"]
FOREIGN = ["notes.txt", "features/mine.npz", "textures/ab/holiday.png", "kernels/readme.nbi", "index-1.npz"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with files of every kind, the user's own files among them, and links out of it."""
    root, outside = tmp_path / "cache", tmp_path / "outside"
    monkeypatch.setenv("CUEWISE_CACHE", str(root))
    for name in [*OWN.values(), *LEFT_BY_A_KILL, *FOREIGN]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x" * 100)
    root.chmod(0o700)
    outside.mkdir()
    (outside / Path(OWN["features"]).name).write_bytes(b"precious")
    (outside / "ab").mkdir()
    (outside / "ab" / ("cd" * 20 + ".png")).write_bytes(b"precious")
    os.symlink(outside / Path(OWN["features"]).name, root / "features" / ("b2" * 20 + ".npz"))
    os.symlink(outside / "ab", root / "textures" / "cd")
    return root


def files(root: Path) -> set[str]:
    return {f.relative_to(root).as_posix() for f in root.rglob("*") if f.is_file() and not f.is_symlink()}


def test_every_kind_is_known(cache: Path) -> None:
    found = caches(cache)
    assert set(OWN) == set(KINDS)
    assert {k: len(v.files) for k, v in found.items()} == {
        k: 2 if k in ("features", "indexes") else 1 for k in KINDS
    }
    assert found["features"].size == 200


def test_only_what_cuewise_wrote_goes_and_no_link_is_followed(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["clean", "--yes"]) == 0
    said = capsys.readouterr()
    assert "features            2 files      200 B" in said.err
    assert "deleted 7" in said.out
    assert files(cache) == set(FOREIGN)
    outside = cache.parent / "outside"
    assert (outside / Path(OWN["features"]).name).read_bytes() == b"precious"
    assert (outside / "ab" / ("cd" * 20 + ".png")).read_bytes() == b"precious"
    assert (cache / "features" / ("b2" * 20 + ".npz")).is_symlink()
    assert not (cache / "permutations").exists()
    assert cuewise.clean(yes=True)["files"] == 0


def test_nothing_goes_without_a_yes(
    cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(cache)
    assert main(["clean"]) == 0
    assert "nothing is deleted; add --yes" in capsys.readouterr().err
    answers = io.StringIO("n\nyes\n")
    answers.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", answers)
    assert cuewise.clean("features")["deleted"] == 0
    assert files(cache) == before
    assert cuewise.clean("features")["deleted"] == 2
    assert files(cache) == before - {OWN["features"], LEFT_BY_A_KILL[0]}
    assert main(["clean", "featurs"]) == 2
    assert "did you mean features?" in capsys.readouterr().err


def test_the_folder_that_this_process_compiles_into_stays(cache: Path) -> None:
    digest = digest_of_kernels(Path(cuewise.__file__).parent)
    file = cache / "kernels" / digest / "views.compiled"
    file.parent.mkdir()
    file.touch()
    cuewise.clean("kernels", yes=True)
    assert not file.exists()
    assert file.parent.is_dir()
