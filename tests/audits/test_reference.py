"""The reference that says whether conflict images can be read: fitted on other images, at a loss where there is nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuewise.audits import reference
from cuewise.audits.reference import guessing, layout, texture, validity
from cuewise.audits.stimuli import Conflicts, conflicts_of
from cuewise.data import Dataset, open_data

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def photos() -> Dataset:
    return open_data("shapes:aligned?n=160&size=48&rho=1&palette=one")


@pytest.fixture(scope="module")
def stimuli(photos: Dataset) -> Conflicts:
    found = conflicts_of(photos, 24, seed=0)
    assert found is not None
    return found


def test_sources_are_recognised_and_noise_is_not(stimuli: Conflicts, monkeypatch: pytest.MonkeyPatch) -> None:
    found = validity(stimuli, None, seed=0)
    assert found is not None
    assert found.sources.value > 0.8
    assert found.named.n == 24
    assert found.named.low > guessing(len(stimuli.classes))
    assert found.named.value <= sum(found.cues) <= 2 * found.named.value
    assert str(found).startswith(
        "a reference (pair of linear probes on hand-made layout and texture, fitted on "
    )
    assert found.fitted + len({j for pair in stimuli.rows for j in pair}) == len(stimuli.data)
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    monkeypatch.setattr(Conflicts, "image", lambda self, i: noise)
    blind = validity(stimuli, None, seed=0)
    assert blind is not None
    assert blind.sources == found.sources
    assert blind.named.value < 0.3 < found.named.value


def test_no_stimulus_is_made_of_what_it_was_fitted_on(
    stimuli: Conflicts, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    plain = reference._look
    monkeypatch.setattr(
        reference, "_look", lambda data, rows, labels: read.append(rows) or plain(data, rows, labels)
    )
    validity(stimuli, None, seed=0)
    assert not set(read[0]) & {j for pair in stimuli.rows for j in pair}


def test_training_images_of_the_same_classes_help(photos: Dataset) -> None:
    few = photos.select(np.arange(32))
    stimuli = conflicts_of(few, 120, seed=0)
    assert stimuli is not None
    assert validity(stimuli, None, seed=0) is None  # every image was used
    found = validity(stimuli, photos.select(np.arange(32, 160)), seed=0)
    assert found is not None
    assert found.fitted >= 128
    assert found.sources.value > 0.6


def test_layout_sees_places_and_texture_does_not() -> None:
    rng = np.random.default_rng(0)
    plain = np.full((64, 64, 3), 60, np.uint8)
    left, right, red = plain.copy(), plain.copy(), plain.copy()
    left[8:40, 8:24], right[8:40, 40:56], red[..., 0] = 200, 200, 200
    fine = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    assert np.isfinite([layout(plain), layout(fine)]).all()
    assert (layout(plain) == 0).all()
    assert np.abs(layout(left) - layout(right)).max() > 0.5
    assert np.allclose(texture(left), texture(right))
    assert np.allclose(layout(plain), layout(red), atol=1e-4)  # colour alone is no layout
    assert np.abs(texture(plain) - texture(red)).max() > 0.5
    assert np.abs(texture(plain) - texture(fine)).max() > 0.5
    assert texture(fine).shape == (256 + 3 * 3 + 3 * 9 + 64,)


def test_two_guesses() -> None:
    assert guessing(2) == 0.75
    assert guessing(16) == pytest.approx(1 / 16 + 15 / 16 / 16)
