"""Nearest neighbours under growing exclusion: a plain loop, and models that go by shape, by colour, by texture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import cuewise
from cuewise.audits.matching import Attribute, described, levels, matched
from cuewise.data import open_data
from cuewise.errors import UserError
from tests.audits.small_models import ENCODER, conflicts, photos


def drawn(seed: int, n: int = 60) -> tuple[np.ndarray, np.ndarray, list[Attribute]]:
    rng = np.random.default_rng(seed)
    attributes = [
        Attribute("texture", rng.integers(0, 4, n)),
        Attribute("angle", rng.integers(0, 4, n) * 90, 360, ((90, " 90°"), (180, " 180°"))),
    ]
    return rng.normal(size=(n, 6)).astype(np.float32), rng.integers(0, 5, n), attributes


def test_levels_grow() -> None:
    _, _, attributes = drawn(0)
    assert [name for name, _ in levels(attributes)] == [
        "anything", "texture", "texture, angle 90°", "texture, angle 180°",
    ]  # fmt: skip


@pytest.mark.parametrize("level", range(4))
def test_matching_by_a_loop(level: int) -> None:
    features, shapes, attributes = drawn(1)
    chosen = levels(attributes)[level]
    z = features / np.linalg.norm(features, axis=1, keepdims=True)
    hits, guesses = [], []
    for i in range(60):
        candidates = []
        for j in range(60):
            turned = abs(int(attributes[1].values[i] - attributes[1].values[j]))
            turned = min(turned, 360 - turned)
            textured = attributes[0].values[i] != attributes[0].values[j]
            far = [True, textured, textured and turned >= 90, textured and turned >= 180][level]
            if j != i and (shapes[j] != shapes[i] or far):
                candidates.append(j)
        matches = [j for j in candidates if shapes[j] == shapes[i]]
        if matches:
            hits.append(bool(shapes[max(candidates, key=lambda j: z[i] @ z[j])] == shapes[i]))
            guesses.append(len(matches) / len(candidates))
    found, guess = matched(features, shapes, chosen)
    assert found.tolist() == hits
    assert np.isclose(guess, np.mean(guesses))


def test_a_model_of_shape_and_one_of_texture() -> None:
    _, shapes, attributes = drawn(2)
    curves = {
        what: [
            matched(np.eye(6, dtype=np.float32)[v], shapes, level)[0].mean() for level in levels(attributes)
        ]
        for what, v in (("shape", shapes), ("texture", attributes[0].values))
    }
    assert curves["shape"] == [1, 1, 1, 1]
    assert curves["texture"][1:] == [
        0,
        0,
        0,
    ]  # every match of another texture is farther than another shape in this one


def test_what_is_known_of_a_set(tmp_path: Path) -> None:
    shapes, attributes = described(open_data("shapes:coloured?n=40&size=32"))
    assert [a.name for a in attributes] == ["texture", "colour"]
    assert attributes[1].period == 8
    shapes, attributes = described(open_data(str(conflicts(tmp_path / "conflicts"))))
    assert [a.name for a in attributes] == ["texture", "drawing"]
    assert len(np.unique(shapes)) == 3


class Colours(nn.Module):
    """Mean colour: what a shape looks like does not matter."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.scale
        return torch.cat([y.mean((2, 3)), y.amax((2, 3)), y.amin((2, 3))], 1)


@pytest.mark.slow
def test_without_a_head_on_the_embedded_shapes(tmp_path: Path) -> None:
    found = cuewise.audit(Colours(), out=tmp_path / "out", only="matching", size=32, workers=0)
    scores = {s["name"]: s for s in found["scores"]}
    near, far = (scores[f"matching/shapes:coloured/{k}"] for k in ("anything", "texture, colour 180°"))
    assert (
        far["value"] < near["value"] < 0.3
    )  # colours do not find shapes, and less so when the colour must differ
    assert far["high"] < 0.06
    assert "matching/shapes:rotated/texture, angle 180°" in scores


@pytest.mark.slow
def test_stimuli_of_a_user_and_sets_without_shapes(tmp_path: Path) -> None:
    root = conflicts(tmp_path / "conflicts")
    for file in list(root.rglob("*.png")):  # a second drawing of every shape
        shape, texture = file.stem.split("-")
        Image.open(file).save(file.with_name(f"{shape[:-1]}{int(shape[-1]) + 3}-{texture}.png"))
    found = cuewise.audit(ENCODER, out=tmp_path / "a", test=root, only="matching", size=32, workers=0)
    names = [s["name"].removeprefix("matching/") for s in found["scores"]]
    assert names == ["conflicts/anything", "conflicts/texture", "conflicts/texture, drawing"]
    plain = photos(tmp_path / "photos", 3)
    with pytest.raises(UserError, match="no set says which shape"):
        cuewise.audit(ENCODER, out=tmp_path / "b", test=plain, only="matching", size=32, workers=0)
