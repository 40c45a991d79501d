"""Parts of sets: by distinct objects, by images per class, as a long tail, at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from object_files import write_voc

from cuewise.data import open_data
from cuewise.data.selection import presence
from cuewise.errors import UserError


def test_images_with_several_classes(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    data = open_data(f"{root}?objects=2")
    assert [data.name(i) for i in range(len(data))] == ["a.jpg", "d.jpg"]
    assert data.object_classes == ("bird", "cat", "dog")
    assert [p["selection"] for p in data.fingerprint()["sources"]] == ["objects=2"]


def test_classes_with_enough_images(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    data = open_data(f"{root}?per_class=2")
    assert data.object_classes == ("cat", "dog")
    assert [data.name(i) for i in range(len(data))] == ["a.jpg", "b.jpg", "d.jpg"]
    boxes = data.facts(2).boxes
    assert boxes is not None
    np.testing.assert_array_equal(boxes.classes, [1, 1])  # the bird is gone, dog is number 1 now
    (tmp_path / "one.txt").write_text("dog\n")
    only = open_data(f"{root}?classes={tmp_path}/one.txt")
    assert only.object_classes == ("dog",)
    assert len(only) == 2


def test_a_long_tail_has_the_ratio_that_was_asked_for() -> None:
    data = open_data("shapes?n=2000&size=16&classes=8&longtail=20")
    counts = sorted(Counter(np.asarray(data.labels).tolist()).values(), reverse=True)
    assert counts[0] / counts[-1] == pytest.approx(20, rel=0.05)
    assert len(counts) == 8
    np.testing.assert_allclose(np.diff(np.log(counts)), -np.log(20) / 7, atol=0.1)  # falls exponentially
    again = open_data("shapes?n=2000&size=16&classes=8&longtail=20")
    assert again.fingerprint() == data.fingerprint()
    scenes = open_data("shapes:scenes?n=2000&size=16&longtail=10")
    found = presence(scenes).sum(0)
    assert found.max() / found.min() == pytest.approx(10, rel=0.15)
    assert scenes.fingerprint()["sources"][0]["ratio"] == pytest.approx(found.max() / found.min())


def test_some_images_at_random(write: Callable[..., Path], tmp_path: Path) -> None:
    for i in range(12):
        write(f"set/{'ab'[i % 2]}/{i:02d}.jpg")
    names = [open_data(f"{tmp_path}/set?n=5&seed={s}") for s in (1, 1, 2)]
    first, same, other = ([d.name(i) for i in range(5)] for d in names)
    assert first == same != other
    assert names[0].classes == ("a", "b")
    for query, said in {
        "n=99": "there are 12 images",
        "n=x": "n must be a number",
        "objects=2": "no image is left",
        "seed=3": "seed has a meaning with n or longtail only",
        "longtail=0": "longtail must be 1 or more",
    }.items():
        with pytest.raises(UserError, match=said):
            open_data(f"{tmp_path}/set?{query}")
