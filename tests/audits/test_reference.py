"""The reference that says whether conflict images can be read: fitted on other images, at a loss where there is nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuewise.audits import reference
from cuewise.audits.reference import features, validity
from cuewise.audits.stimuli import Conflicts, conflicts_of
from cuewise.data import Dataset, open_data


@pytest.fixture(scope="module")
def photos() -> Dataset:
    return open_data("shapes:aligned?n=240&size=64&rho=1&palette=one")


@pytest.fixture(scope="module")
def stimuli(photos: Dataset) -> Conflicts:
    found = conflicts_of(photos, 30, seed=0)
    assert found is not None
    return found


def test_sources_are_recognised_and_noise_is_not(stimuli: Conflicts, monkeypatch: pytest.MonkeyPatch) -> None:
    found = validity(stimuli, None, seed=0)
    assert found is not None
    assert found.sources.value > 0.9
    assert found.named.n == 30
    assert found.fitted + len({j for pair in stimuli.rows for j in pair}) == len(stimuli.data)
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    monkeypatch.setattr(Conflicts, "image", lambda self, i: noise)
    blind = validity(stimuli, None, seed=0)
    assert blind is not None
    assert blind.sources == found.sources
    assert blind.named.value < 0.5 * found.sources.value


def test_no_stimulus_is_made_of_what_it_was_fitted_on(
    stimuli: Conflicts, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    plain = reference._read
    monkeypatch.setattr(
        reference, "_read", lambda data, rows, labels: read.append(rows) or plain(data, rows, labels)
    )
    validity(stimuli, None, seed=0)
    assert not set(read[0]) & {j for pair in stimuli.rows for j in pair}


def test_training_images_of_the_same_classes_help(photos: Dataset) -> None:
    few = photos.select(np.arange(40))
    stimuli = conflicts_of(few, 200, seed=0)
    assert stimuli is not None
    assert validity(stimuli, None, seed=0) is None  # every image was used
    found = validity(stimuli, photos.select(np.arange(40, 240)), seed=0)
    assert found is not None
    assert found.fitted >= 200
    assert found.sources.value > 0.9


def test_features_see_edges_their_place_and_colours() -> None:
    image = np.full((48, 64, 3), 90, np.uint8)
    left, red = image.copy(), image.copy()
    left[:, 20:] = 180
    red[..., 0] = 200
    a, b, c = features(image), features(left), features(red)
    assert a.shape == b.shape == (8 * 8 * 9 + 3 * 9 + 64,)
    assert np.isfinite(b).all()
    assert (a[: 8 * 8 * 9] == 0).all()
    assert b[: 8 * 8 * 9].max() > 0.5
    assert not np.array_equal(a[-64:], c[-64:])
    assert np.array_equal(a[: 8 * 8 * 9], c[: 8 * 8 * 9])
