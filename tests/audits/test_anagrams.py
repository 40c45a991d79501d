"""Pairs of the same parts: a bag of parts gets one of two right at most, a network of places both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cuewise
from cuewise.audits.anagrams import both_right, pairs_of
from cuewise.data import open_data
from cuewise.errors import UserError
from tests.audits.test_ranks_configuration import Parts, Places


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tiles, bright ones at the left or at the top; `alone` has no partner."""
    root = tmp_path_factory.mktemp("pairs")
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for i in range(12):
            dark, bright = rng.integers(0, 60, (2, 24, 24, 3)), rng.integers(140, 200, (2, 24, 24, 3))
            rows = {
                "left": [[bright[0], dark[0]], [bright[1], dark[1]]],
                "top": [[bright[0], bright[1]], [dark[0], dark[1]]],
            }
            for name, tiles in rows.items():
                (root / part / name).mkdir(parents=True, exist_ok=True)
                image = np.concatenate([np.concatenate(row, 1) for row in tiles]).astype(np.uint8)
                Image.fromarray(image).save(root / part / name / f"{i}.png")
    Image.fromarray(image).save(root / "test" / "top" / "alone.png")
    return root


def test_pairs_by_name_and_scores_by_hand(pairs: Path) -> None:
    data = open_data(str(pairs / "test"))
    assert data.labels is not None
    found = pairs_of(data, data.labels)
    names = [tuple(sorted(data.name(i) for i in pair)) for pair in found.tolist()]
    assert sorted(names) == sorted((f"left/{i}.png", f"top/{i}.png") for i in range(12))
    both, single = both_right("", np.array([[True, True], [True, False], [False, False]]), "p")
    assert (both.value, both.n, single.value, single.n) == (1 / 3, 3, 0.5, 6)


@pytest.mark.slow
def test_a_bag_of_parts_and_a_network_of_places(pairs: Path, tmp_path: Path) -> None:
    found = {}
    for model in (Parts(), Places()):
        scores = cuewise.audit(
            model, out=tmp_path / type(model).__name__, train=pairs / "train", test=f"anagrams={pairs / 'test'}",
            only="anagrams", size=48, workers=0, answers="probe",
        )["scores"]  # fmt: skip
        found[type(model).__name__] = {s["name"]: s for s in scores}
    assert found["Parts"]["anagrams/both"]["value"] == 0  # the two of a pair get the same answer
    assert found["Parts"]["anagrams/accuracy"]["value"] == 0.5
    assert found["Places"]["anagrams/both"]["value"] == 1
    assert "1 images without a partner left out" in found["Places"]["anagrams/both"]["protocol"]
    assert found["Places"]["anagrams/both"]["n"] == 12


@pytest.mark.slow
def test_errors_are_one_line(pairs: Path, tmp_path: Path) -> None:
    common = {"train": pairs / "train", "only": "anagrams", "size": 48, "workers": 0, "answers": "probe"}
    with pytest.raises(UserError, match="no pairs: give --test anagrams=DATA"):
        cuewise.audit(Parts(), out=tmp_path / "a", test=pairs / "test", **common)
    for name in ("left", "top"):
        (tmp_path / "odd" / name).mkdir(parents=True)
        Image.new("RGB", (48, 48)).save(tmp_path / "odd" / name / f"{name}.png")
    with pytest.raises(UserError, match="no two classes have an image of the same name"):
        cuewise.audit(Parts(), out=tmp_path / "b", test=f"anagrams={tmp_path / 'odd'}", **common)
