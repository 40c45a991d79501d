"""Known answers on models made for the purpose: a bag of patches, a network that sees layouts, one that sees outlines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import cuewise
from cuewise.audits.configuration import reliance
from cuewise.audits.ranks import random_rank, rank_of

pytestmark = pytest.mark.slow


def test_rank_by_sorting() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.random(12)
        columns = rng.choice(12, 3, replace=False).tolist()
        order = [k for k in np.argsort(-p) if k not in columns or k == max(columns, key=lambda c: p[c])]
        assert rank_of(p, columns) == 1 + order.index(max(columns, key=lambda c: p[c]))
    assert rank_of(np.array([1.0, 1.0, 0.0]), [0]) == 2  # a tie is not first
    assert rank_of(np.array([5.0]), [0]) == 1


@pytest.mark.parametrize(("labels", "own"), [(5, 1), (8, 3), (10, 2), (4, 4)])
def test_rank_of_labels_in_random_order(labels: int, own: int) -> None:
    rng = np.random.default_rng(1)
    drawn = [1 / rank_of(rng.permutation(labels).astype(float), list(range(own))) for _ in range(20_000)]
    assert abs(np.mean(drawn) - random_rank(labels, own)) < 0.01
    if own == 1:
        assert np.isclose(random_rank(labels, 1), np.mean(1 / np.arange(1, labels + 1)))


def test_reliance_on_configuration() -> None:
    whole, half = np.ones(400), np.tile([1.0, 0.0], 200)
    same = reliance(whole, whole, 0.25, "")
    lost = reliance(whole, half, 0.25, "")
    assert same is not None
    assert lost is not None
    assert same.value == 0
    assert np.isclose(lost.value, 1 - 0.25 / 0.75)
    assert lost.low < lost.value < lost.high
    assert reliance(np.tile([1.0, 0, 0, 0], 100), half, 0.25, "") is None  # nothing to lose


class Outlines(nn.Module):
    """What is dark, on a coarse grid: a network on silhouettes."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        dark = (x.mean(1, keepdim=True) < 0.5).float() * self.scale
        return nn.functional.adaptive_avg_pool2d(dark, 12).flatten(1)


def test_a_network_on_silhouettes_ranks_textures_at_chance(tmp_path: Path) -> None:
    test = ["shapes:silhouette?n=160&size=32&part=test", "shapes:texture_only?n=320&size=32&part=test"]
    found = cuewise.audit(
        Outlines(), out=tmp_path, train="shapes:silhouette?n=480&size=32", test=test, only="ranks", size=32,
        workers=0, answers="probe",
    )  # fmt: skip
    shape, texture = ({s["name"]: s for s in found["scores"]}[n] for n in NAMES)
    chance = random_rank(16, 1)
    assert shape["low"] > 2 * chance
    assert texture["low"] < chance < texture["high"]
    assert texture["n"] == 320


NAMES = ("ranks/shapes:silhouette/shape", "ranks/shapes:texture_only/texture")


def test_folders_of_refined_bias(tmp_path: Path) -> None:
    """Both folders are recognised below one, or one by one; classes are known by ImageNet's names."""
    from cuewise.audits.head import map_for
    from cuewise.audits.sets import refined, split_role

    root = tmp_path / "datasets"
    for part, name in (("refined_bias_shape", "balloon"), ("refined_bias_texture", "brain_coral")):
        (root / part / name).mkdir(parents=True)
    assert [split_role(s)[0] for s in refined(str(root))] == ["shape", "texture"]
    assert refined(f"{root}/refined_bias_shape") == [f"shape={root}/refined_bias_shape"]
    assert refined("photos") == ["photos"]
    found = map_for(("balloon", "brain_coral", "book"), 1000, None)
    assert found is not None
    outputs, how = found
    assert (list(outputs["balloon"]), list(outputs["brain_coral"])) == ([417], [109])
    assert len(outputs) == 1000  # the whole label space stays
    assert "2 of 3 classes" in how
    assert map_for(("photo", "sketch", "balloon"), 1000, None) is None


class Parts(nn.Module):
    """The mean over the image of colours: an encoder for which places do not exist."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.scale
        return torch.cat([y.mean((2, 3)), (y * y).mean((2, 3)), y.amax((2, 3))], 1)


class Places(nn.Module):
    """The image as 8×8 cells: an encoder that knows places alone."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.adaptive_avg_pool2d(x * self.scale, 8).flatten(1)


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Classes that differ in colour and in where the bright half is."""
    root = tmp_path_factory.mktemp("halves")
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for k, name in enumerate(("left", "right", "top", "bottom")):
            (root / part / name).mkdir(parents=True)
            for i in range(24):
                image = rng.integers(0, 60, (48, 48, 3)).astype(np.uint8)
                place = [np.s_[:, :24], np.s_[:, 24:], np.s_[:24], np.s_[24:]][k]
                image[place] += 120
                image[..., k % 3] += np.uint8(60 * (k < 3))
                Image.fromarray(image).save(root / part / name / f"{i}.png")
    return root / "train", root / "test"


def audited(model: nn.Module, halves: tuple[Path, Path], out: Path) -> dict[str, float]:
    found = cuewise.audit(model, out=out, train=halves[0], test=halves[1], only="configuration", size=48, workers=0,
                          answers="probe")  # fmt: skip
    return {s["name"]: s["value"] for s in found["scores"]}


def test_a_bag_of_parts_has_a_flat_curve(halves: tuple[Path, Path], tmp_path: Path) -> None:
    found = audited(Parts(), halves, tmp_path / "parts")
    curve = [found[f"configuration/{n}×{n}/accuracy"] for n in (1, 2, 3, 4, 6, 8)]
    assert min(curve) > 0.9
    assert max(curve) - min(curve) < 0.05
    assert abs(found["configuration/reliance"]) < 0.05
    assert found["configuration/8×8/similarity"] > 0.999


def test_a_network_of_places_falls(halves: tuple[Path, Path], tmp_path: Path) -> None:
    found = audited(Places(), halves, tmp_path / "places")
    assert found["configuration/1×1/accuracy"] > 0.95
    assert found["configuration/8×8/similarity"] < 0.9
