"""Known answers: a network of backgrounds, one of objects wherever they are, one that looks at the centre alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import cuewise
from cuewise.audits.change import Copies, Input, change
from cuewise.audits.changed import difference
from cuewise.audits.engine import Engine, copies
from cuewise.audits.ray_engine import Job, SentImage, judged, portable
from cuewise.audits.scenes import Scenes, scenes_of
from cuewise.data import open_data
from cuewise.data.object_masks import ObjectMasks
from cuewise.errors import UserError

CLASSES = ("red", "green", "blue")


def test_difference_of_paired_answers() -> None:
    rng = np.random.default_rng(0)
    hits = (rng.random((300, 2)) < [0.8, 0.6]).astype(float)
    b, c = (hits @ [1, -1] == 1).sum(), (hits @ [1, -1] == -1).sum()
    found = difference("gap", hits, "")
    centre = (b - c) / 302
    half = 1.959964 * np.sqrt((b + c + 1) - (b - c) ** 2 / 302) / 302  # Agresti & Min 2005
    assert np.isclose(found.value, hits[:, 0].mean() - hits[:, 1].mean())
    assert np.allclose([found.low, found.high], [centre - half, centre + half])
    same = difference("gap", np.ones((20, 2)), "")
    assert same.value == 0
    assert same.low < 0 < same.high


class Look(nn.Module):
    """Mean colour of some pixels: those of the rim, of the middle, or the colourful ones wherever they are."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.zeros_like(x[:, :1])
        if self.where == "rim":
            weight[..., :2, :] = 1
        elif self.where == "middle":
            weight[..., 22:26, 22:26] = 1
        else:
            weight = ((x.amax(1) - x.amin(1)) > 0.5 * self.scale).float()[:, None]
        return (x * weight).sum((2, 3)) / weight.sum((2, 3)).clamp_min(1)


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A coloured square somewhere near the middle; each class has a grey level of its own around it."""
    root = tmp_path_factory.mktemp("objects")
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for k, name in enumerate(CLASSES):
            for folder in (part, f"{part}-masks"):
                (root / folder / name).mkdir(parents=True)
            for i in range(8):
                image = np.full((48, 48, 3), 40 + 60 * k, np.uint8)
                mask = np.zeros((48, 48), np.uint8)
                y, x = rng.integers(16, 21, 2)
                mask[y : y + 12, x : x + 12] = 255
                image[mask > 0] = np.where(np.arange(3) == k, 255, 0)
                image = np.clip(image + rng.normal(0, 4, image.shape), 0, 255).astype(np.uint8)
                Image.fromarray(image).save(root / part / name / f"{i}.png")
                Image.fromarray(mask).save(root / f"{part}-masks" / name / f"{i}.png")
    return root


def audited(where: str, sets: Path, out: Path, **options: Any) -> dict[str, dict[str, Any]]:
    given = {"masks": str(sets / "test-masks"), "only": "background,position,size", **options}
    found = cuewise.audit(
        Look(where), out=out, train=sets / "train", test=sets / "test", size=48, workers=0, **given
    )
    return {s["name"]: s for s in found["scores"]}


@pytest.mark.slow
def test_a_network_of_backgrounds(sets: Path, tmp_path: Path) -> None:
    found = {k: s["value"] for k, s in audited("rim", sets, tmp_path / "out").items()}
    assert found["background/own/accuracy"] == found["background/same/accuracy"] == 1
    assert found["background/only/accuracy"] == 1
    assert found["background/other/accuracy"] == 0
    assert found["background/gap"] == 1
    assert found["background/removed/accuracy"] <= 0.5  # one answer for every object on grey


@pytest.mark.slow
def test_a_network_of_objects(sets: Path, tmp_path: Path) -> None:
    found = audited("objects", sets, tmp_path / "out")
    for name, score in found.items():
        assert score["value"] == (0 if name.endswith(("gap", "loss")) else found[name]["value"])
        if name not in ("background/only/accuracy", "background/gap", "position/loss", "size/loss"):
            assert score["value"] == 1, name
    assert found["background/only/accuracy"]["value"] <= 0.5
    assert found["background/gap"]["low"] < 0 < found["background/gap"]["high"]
    assert found["background/gap"]["n"] == 24
    assert "masks given" in found["size/20%/accuracy"]["protocol"]


@pytest.mark.slow
def test_a_network_of_the_middle(sets: Path, tmp_path: Path) -> None:
    found = {k: s["value"] for k, s in audited("middle", sets, tmp_path / "out").items()}
    assert found["position/own/accuracy"] == found["position/centre/accuracy"] == 1
    assert found["position/edge/accuracy"] <= 0.6
    assert found["position/loss"] >= 0.4


@pytest.mark.slow
def test_errors_are_one_line(sets: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it is not known where the objects are: give --masks"):
        audited("rim", sets, tmp_path / "a", masks=None, only="size")
    for part, prefix in (("odd", "x"), ("full", "")):
        for name in CLASSES:
            (tmp_path / part / name).mkdir(parents=True)
            for i in range(8):
                Image.new("L", (48, 48), 255).save(tmp_path / part / name / f"{prefix}{i}.png")
    with pytest.raises(UserError, match="none of its 24 files is named as an image of"):
        audited("rim", sets, tmp_path / "b", masks=str(tmp_path / "odd"), only="size")
    with pytest.raises(UserError, match=r"no mask can be used; .*covers 100.0 % of the image"):
        audited("rim", sets, tmp_path / "c", masks=str(tmp_path / "full"), only="position")
    with pytest.raises(UserError, match="--mask-value white: a whole number from 0 to 255"):
        audited("rim", sets, tmp_path / "d", mask_value="white")


@pytest.fixture
def scenes(sets: Path) -> Scenes:
    data = open_data(str(sets / "test"))
    return scenes_of(data, ObjectMasks(data, open_data(str(sets / "test-masks"))), seed=0)


def test_partners_are_of_the_class_or_not(scenes: Scenes) -> None:
    assert scenes.usable.all()
    assert scenes.has("same").all()
    assert scenes.has("other").all()
    assert np.allclose(scenes.extent, 0.25, atol=0.03)
    levels = {}
    for i in range(len(scenes.data)):
        attached = scenes.attached(i, ("same", "other"))
        assert attached is not None
        for kind in ("same", "other"):
            image, mask = attached.backgrounds[kind]
            level = round(float((image[mask[..., 0] == 0].mean() - 40) / 60))
            levels[i, kind] = scenes.data.classes.index(CLASSES[level])
            assert not np.array_equal(image, scenes.data.image(i))
    assert scenes.data.labels is not None
    assert all((scenes.data.labels[i] == level) == (kind == "same") for (i, kind), level in levels.items())
    assert len({level for (_, kind), level in levels.items() if kind == "other"}) == 3


def test_a_part_of_the_classes_without_partners(scenes: Scenes) -> None:
    labels = np.where(np.arange(24) == 0, 3, scenes.labels)
    alone = Scenes(scenes.data, scenes.masks, scenes.extent, labels)
    assert not alone.has("same")[0]
    assert alone.has("same")[1:].all()
    assert not Scenes(scenes.data, scenes.masks, scenes.extent, labels * 0).has("other").any()


def test_the_same_on_a_cluster(scenes: Scenes) -> None:
    """Nodes have no data: what the copies need travels with each image."""
    changes = (change("background", kind="other"), change("object", down=0.0, right=1.0))
    rendering = Copies((Input(48),), changes, 0, scenes)
    sent = portable(rendering)
    assert isinstance(sent, Copies)
    assert sent.scenes is None
    for i in (0, 9):
        image, name = scenes.data.image(i), scenes.data.name(i)
        here = rendering.views(image, name, i, rendering.attached(i))
        there = sent.views(image, name, i, rendering.attached(i))
        assert np.array_equal(here["48 bilinear"], there["48 bilinear"])
        assert not np.array_equal(here["48 bilinear"][0], image)
    bare = Copies((Input(48),), changes, 0)
    assert rendering.key != bare.key


class Seen:
    """A model that keeps what it was shown."""

    input, key = Input(48), "seen"

    def look(self, views: Tensor, rendering: Any) -> tuple[Any, Any]:
        return views.flatten(1).numpy().astype(np.float32), np.zeros((len(views), 0), np.int64)

    def on_cpu(self) -> Seen:
        return self


def test_the_engine_shows_the_changed_copies(scenes: Scenes) -> None:
    changes = (change("background", kind="removed"),)
    work = copies("objects", scenes.data, [Seen()], changes, 0, scenes)  # type: ignore[list-item]
    (rows,) = list(Engine(workers=0).stream(work, 0))
    shown = rows.features[0].reshape(24, 48, 48, 3)
    for i in (0, 23):
        outline = scenes.masks.outline(i)
        assert (shown[i][~outline] == 128).all()
        assert np.array_equal(shown[i][outline], scenes.data.image(i)[outline])
    pieces = [
        SentImage(i, scenes.data.name(i), scenes.data.image(i), scene=work.rendering.attached(i))
        for i in range(24)
    ]
    far = judged(Job("", portable(work.rendering), [Seen()]), 24, pieces)
    assert np.array_equal(far.features[0], rows.features[0])
