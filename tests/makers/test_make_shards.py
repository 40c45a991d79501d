"""Tar shards: readable as DATA, the same bytes in every run, whole or absent."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from make_files import as_bytes, photo, put, rows, tree

import cuewise
from cuewise.data import open_data
from cuewise.errors import UserError

Photos = Callable[..., Path]


def members(path: Path) -> list[str]:
    with tarfile.open(path, encoding="utf-8") as tar:
        return tar.getnames()


@pytest.mark.slow
def test_shards_hold_what_the_tree_would(photos: Photos, tmp_path: Path) -> None:
    source = photos(6)
    (source / "cat" / "003.jpg").write_bytes(as_bytes(photo(3))[:400])
    put(source / "dog" / ("名" * 60 + "\n.jpg"))
    cuewise.make("anisotropic", source, tmp_path / "tree", workers=0)
    result = cuewise.make("anisotropic", source, tmp_path / "out", workers=2, shards=5)
    assert len(result["broken"]) == 1
    assert sorted(p.name for p in (tmp_path / "out").glob("*.tar")) == [f"shards-00{i}.tar" for i in range(3)]
    shards = open_data(str(tmp_path / "out" / "shards-{000..002}.tar"))
    files = open_data(str(tmp_path / "tree"))
    assert shards.classes == files.classes
    assert [shards.name(i) for i in range(len(shards))] == [files.name(i) for i in range(len(files))]
    for i in range(len(files)):
        np.testing.assert_array_equal(shards.image(i), files.image(i))
    listed = {(row["name"], row["shard"]) for row in rows(tmp_path / "out") if row["name"]}
    found = {(name, path.name) for path in (tmp_path / "out").glob("*.tar") for name in members(path)}
    assert listed == found


@pytest.mark.slow
def test_shards_of_any_run_are_equal(photos: Photos, tmp_path: Path) -> None:
    source = photos(7)
    cuewise.make("patch", source, tmp_path / "a", workers=0, shards=4)
    cuewise.make("patch", source, tmp_path / "b", workers=3, shards=4)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    again = cuewise.make("patch", source, tmp_path / "a", workers=0, shards=4)
    assert (again["made"], again["skipped"]) == (0, 14)
    with pytest.raises(UserError, match=r"limit = null, now it is 3"):
        cuewise.make("patch", source, tmp_path / "a", shards=4, limit=3)


def test_a_lost_shard_is_made_again(photos: Photos, tmp_path: Path) -> None:
    source = photos(4)
    cuewise.make("patch", source, tmp_path / "a", workers=0, shards=3)
    before = tree(tmp_path / "a")
    (tmp_path / "a" / "shards-001.tar").unlink()
    assert cuewise.make("patch", source, tmp_path / "a", workers=0, shards=3)["made"] == 3
    assert tree(tmp_path / "a") == before


def test_the_files_of_one_image_stay_together(photos: Photos, tmp_path: Path) -> None:
    cuewise.make("gaussian", photos(3), tmp_path / "a", workers=0, shards=4, both=True)
    names = members(tmp_path / "a" / "shards-001.tar")
    assert names == ["cat/002.jpg", "cat/002.gaussian.png", "dog/000.jpg", "dog/000.gaussian.png"]
