"""Shuffled tiles, coloured light, pasted words."""

from __future__ import annotations

import numpy as np
import pytest

from cuewise.cues.cast import LIGHTS, color_cast
from cuewise.cues.registry import cue
from cuewise.cues.tiles import shuffle_tiles
from cuewise.cues.word import paste_word
from cuewise.errors import UserError

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (26, 33, 3), np.uint8)


@pytest.mark.parametrize("tiles", [2, 3, 4, 8])
def test_tiles_by_a_loop(tiles: int) -> None:
    drawn = cue("tiles").having(tiles=tiles).draw(np.random.default_rng(1), 26, 33)
    order = np.array(drawn["order"])
    assert sorted(order) == list(range(tiles * tiles))
    assert (order != np.arange(tiles * tiles)).all()  # no tile stays
    found = shuffle_tiles(IMAGE, order, tiles)
    h, w = 26 // tiles, 33 // tiles
    for k, source in enumerate(order):
        (y, x), (v, u) = divmod(k, tiles), divmod(int(source), tiles)
        there = found[y * h : (y + 1) * h, x * w : (x + 1) * w]
        assert np.array_equal(there, IMAGE[v * h : (v + 1) * h, u * w : (u + 1) * w])
    assert np.array_equal(found[h * tiles :], IMAGE[h * tiles :])


def test_tiles_keep_every_pixel() -> None:
    found = cue("tiles")(IMAGE, np.random.default_rng(0))
    assert np.array_equal(np.sort(found.reshape(-1, 3), 0), np.sort(IMAGE.reshape(-1, 3), 0))
    one = cue("tiles")(IMAGE, np.random.default_rng(0), tiles=1)
    assert np.array_equal(one, IMAGE)


def test_tiles_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match="do not fit"):
        cue("tiles")(IMAGE, np.random.default_rng(0), tiles=27)
    with pytest.raises(UserError, match="give 1 or more"):
        cue("tiles").having(tiles=0)


@pytest.mark.parametrize("light", LIGHTS)
def test_cast_multiplies_linear_light(light: str) -> None:
    found = cue("cast")(IMAGE, np.random.default_rng(0), light=light)
    y, x = 3, 5
    for c in range(3):
        linear = min(1.0, (IMAGE[y, x, c] / 255) ** 2.2 * LIGHTS[light][c])
        assert abs(int(found[y, x, c]) - round(255 * linear ** (1 / 2.2))) <= 1
    assert np.isclose(np.mean(LIGHTS[light]), 1)


def test_no_cast_is_the_image() -> None:
    assert np.array_equal(color_cast(IMAGE, np.ones(3)), IMAGE)
    assert np.array_equal(cue("cast")(IMAGE, np.random.default_rng(0), strength=0.0), IMAGE)
    with pytest.raises(UserError, match="warm"):
        cue("cast").having(light="wram")


def test_words_cover_a_label_and_nothing_else() -> None:
    white = np.full((90, 120, 3), 128, np.uint8)
    found = paste_word(white, "tiger", 0.5, 0.2)
    changed = (found != white).any(-1)
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    assert len(columns) <= 60
    assert abs((rows[0] + rows[-1]) / 2 - 18) <= 3
    assert len(rows) <= 30
    assert found[changed].min() < 60  # letters
    empty = paste_word(white, " ", 0.5, 0.2)
    assert empty[(empty != white).any(-1)].min() > 200


def test_words_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(UserError, match="ASCII"):
        cue("word").having(text="Käse")
    with pytest.raises(UserError, match="between 0 and 1"):
        cue("word").having(share=0.0)
