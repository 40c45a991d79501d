"""Similarity on models made for the purpose, whose cosines follow from the views by hand; through workers and resume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise import pretrain
from cuewise.audits import engine as passes
from cuewise.audits.engine import Engine
from cuewise.audits.measured import Measured
from cuewise.audits.pairs import (
    PAIRS,
    Embedder,
    PairSettings,
    embedder_of,
    pair_views,
    recipe_of,
    similarities,
)
from cuewise.audits.saved import Saved
from cuewise.data import open_data
from cuewise.encoders import load_encoder
from cuewise.encoders.card import Card
from cuewise.encoders.encoder import Encoder
from cuewise.train.reload import load_method
from tests.audits.small_models import photos

SIZE = 16


class Pixels(nn.Module):
    """The image itself as features: every pixel counts, and so does its place."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return (x * self.scale).flatten(1)


class Brightness(nn.Module):
    """Mean and spread of the features: two numbers that no shuffling of pixels changes."""

    def forward(self, f: Tensor) -> Tensor:
        return torch.stack([f.mean(1), f.std(1)], 1)


class Reverse(nn.Module):
    """A key network of its own: the features upside down."""

    def forward(self, x: Tensor) -> Tensor:
        return -x.flatten(1)


def encoder() -> Encoder:
    return Encoder(Pixels(), Card("pixels", SIZE, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0)))


def measured(**parts: Any) -> Measured:
    model = Measured("m", encoder(), engine=Engine(workers=0))
    model.__dict__["embedder"] = replace(Embedder(model.encoder), **parts)
    return model


def by_hand(data: Any, seed: int, features: Any) -> dict[str, NDArray[np.float64]]:
    """Cosines of each query with its partners, image by image."""
    order = np.random.default_rng(seed).permutation(len(data))
    made = [
        {role: features(view) for role, view in
         pair_views(data.image(i), recipe_of(SIZE), np.random.default_rng((seed, i))).items()}
        for i in order.tolist()
    ]  # fmt: skip
    out: dict[str, list[float]] = {pair: [] for pair in PAIRS}
    for row, views in enumerate(made):
        partners = {**views, "random": made[row - 1]["query"]}
        for pair in PAIRS:
            a, b = views["query"], partners[pair]
            out[pair].append(float(a @ b / np.sqrt((a @ a) * (b @ b))))
    return {pair: np.array(values) for pair, values in out.items()}


def flat(view: Any) -> NDArray[np.float64]:
    return np.asarray(view, np.float64).transpose(2, 0, 1).ravel() / 255


def mean_and_spread(view: Any) -> NDArray[np.float64]:
    return np.array([flat(view).mean(), flat(view).std(ddof=1)])


@pytest.fixture
def data(tmp_path: Path) -> Any:
    return open_data(str(photos(tmp_path / "set", 3)))


def test_each_pair_is_the_query_with_its_own_partner(data: Any) -> None:
    """Patch and texture differ, so swapping them, or the random image and the positive, would show."""
    names, found = similarities(measured(), data, PairSettings(seed=4))
    expected = by_hand(data, 4, flat)
    assert list(found) == list(PAIRS)
    assert names == [data.name(int(i)) for i in np.random.default_rng(4).permutation(9)]
    for pair in PAIRS:
        np.testing.assert_allclose(found[pair], expected[pair], rtol=1e-5)
    means = [expected[pair].mean() for pair in PAIRS]
    assert min(abs(a - b) for i, a in enumerate(means) for b in means[:i]) > 1e-3


def test_the_projector_is_what_is_compared(data: Any) -> None:
    _, found = similarities(measured(projector=Brightness()), data, PairSettings())
    expected = by_hand(data, 0, mean_and_spread)
    for pair in PAIRS:
        np.testing.assert_allclose(found[pair], expected[pair], rtol=1e-4)
    assert np.abs(found["patch"] - by_hand(data, 0, flat)["patch"]).max() > 1e-3


def test_the_key_network_is_on_the_partners_side_only(data: Any) -> None:
    """Reversed keys turn every cosine round; a key network on both sides would leave them as they are."""
    _, found = similarities(measured(key_network=Reverse()), data, PairSettings())
    expected = by_hand(data, 0, flat)
    for pair in PAIRS:
        np.testing.assert_allclose(found[pair], expected[pair], rtol=1e-5)
        np.testing.assert_allclose(found[f"{pair} key network"], -found[pair], rtol=1e-5)


@pytest.mark.parametrize(("method", "part"), [("byol", "target"), ("moco", "key_network")])
@pytest.mark.slow
def test_the_key_network_of_a_run_is_its_momentum_network(
    method: str, part: str, data: Any, tmp_path: Path
) -> None:
    """MoCo's keys and BYOL's targets: what the positive was compared with in training."""
    run = tmp_path / "run"
    settings = {"byol": ["byol.hidden=16", "byol.dim=8"], "moco": ["moco.queue=8", "moco.dim=8"]}[method]
    small: dict[str, Any] = {
        "model": "cuewise/resnet-tiny?width=8",
        "size": SIZE,
        "batch_size": 4,
        "workers": "0",
    }
    pretrain(str(tmp_path / "set"), out=str(run), method=method, steps=2, epochs=1, set=settings, **small)
    found = embedder_of(load_encoder(str(run)), run)
    x = torch.rand(3, 3, SIZE, SIZE)
    with torch.no_grad():
        expected = getattr(load_method(run), part)(x)
        assert found.key_network is not None
        torch.testing.assert_close(found.key_network(x), expected)
    names = similarities(
        Measured("m", load_encoder(str(run)), run, engine=Engine(workers=0)), data, PairSettings()
    )[1]
    assert {f"{pair} key network" for pair in PAIRS} <= set(names)


def test_a_smaller_patch_is_another_negative(data: Any) -> None:
    settings = [PairSettings(patch=p) for p in ((2, 2), (8, 8))]
    small, large = (similarities(measured(), data, s)[1] for s in settings)
    assert not np.allclose(small["patch"], large["patch"])
    np.testing.assert_array_equal(small["texture"].shape, large["texture"].shape)
    np.testing.assert_array_equal(small["positive"], large["positive"])


@pytest.mark.slow
def test_the_same_through_worker_processes(data: Any) -> None:
    alone = similarities(measured(), data, PairSettings())[1]
    model = measured()
    model.engine = Engine(workers=2)
    spread = similarities(model, data, PairSettings())[1]
    assert all(np.array_equal(alone[pair], spread[pair]) for pair in PAIRS)


def test_an_interrupted_pass_is_resumed(data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The views of an image follow from its number in the whole set, also when the first images are done already."""
    monkeypatch.setattr(passes, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(passes, "FORWARD", 2)
    whole = similarities(measured(), data, PairSettings())[1]
    rendered: list[str] = []

    class Stops(Engine):
        def stream(self, work: Any, start: int) -> Any:
            for k, rows in enumerate(super().stream(work, start)):
                if k == 2:
                    raise KeyboardInterrupt
                yield rows

    class Counts(Engine):
        def stream(self, work: Any, start: int) -> Any:
            rendered.append(f"from {start}")
            return super().stream(work, start)

    model = measured()
    model.engine = Stops(Saved(tmp_path / "out"), workers=0)
    with pytest.raises(KeyboardInterrupt):
        similarities(model, data, PairSettings())
    model = measured()
    model.engine = Counts(Saved(tmp_path / "out"), workers=0)
    resumed = similarities(model, data, PairSettings())[1]
    assert rendered == ["from 4"]
    assert all(np.array_equal(resumed[pair], whole[pair]) for pair in PAIRS)


def test_the_audit_gives_these_numbers(data: Any, tmp_path: Path) -> None:
    """Score, table and decisions carry each pair under its own name."""
    from cuewise.audits.similarity import similarity
    from cuewise.audits.subject import Subject

    subject = Subject(measured(), data, [], None, tmp_path)
    found, expected = similarity(subject), by_hand(data, 0, flat)
    for score in found.scores:
        pair = score.name.partition("/")[2]
        assert score.value == pytest.approx(expected[pair].mean(), rel=1e-5)
        assert score.n == 9
    rows = {r[0]: r for r in found.tables["similarity"]["rows"]}
    assert {pair: rows[pair][2] for pair in PAIRS} == pytest.approx(
        {pair: expected[pair].mean() for pair in PAIRS}, rel=1e-5
    )
    assert rows["patch"][3] == pytest.approx(expected["patch"].std(ddof=1), rel=1e-3)
    columns = found.tables["similarity/decisions"]["columns"]
    assert columns == ["image", *PAIRS]
    first = found.tables["similarity/decisions"]["rows"][0]
    assert first[1:] == pytest.approx([expected[pair][0] for pair in PAIRS], abs=2e-6)
