"""Each clue holds its own cue and is blind to the others."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from cuewise.data import Boxes, Facts, Sample
from cuewise.data.sample import NOTHING
from cuewise.inspection.clue import CLUES, SIDE, Look
from cuewise.inspection.clues.texture import PATCH

Pixels = np.ndarray


def look(image: Pixels, content: bytes | None = None, facts: Facts = NOTHING) -> Look:
    return Look(Sample(image, facts=facts), lambda: content)


def numbers(name: str, image: Pixels, **more: object) -> np.ndarray:
    found = CLUES.get(name)().numbers(look(image, **more))  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.fixture
def photo() -> Pixels:
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (8, 8, 3), np.uint8)
    return np.asarray(Image.fromarray(small).resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def test_color_does_not_see_places(photo: Pixels) -> None:
    mixed = np.random.default_rng(1).permutation(photo.reshape(-1, 3)).reshape(photo.shape)
    assert np.array_equal(numbers("color", photo), numbers("color", mixed))
    assert not np.allclose(numbers("color", photo), numbers("color", photo[..., ::-1]))
    assert np.isclose((numbers("color", photo) ** 2).sum(), 1)


def test_brightness_is_mean_spread_and_quantiles(photo: Pixels) -> None:
    grey = photo @ np.array([0.299, 0.587, 0.114])
    expected = [grey.mean(), grey.std(), *np.quantile(grey, [0.05, 0.25, 0.5, 0.75, 0.95])]
    assert np.allclose(numbers("brightness", photo), expected, atol=1e-2)


def test_size_does_not_see_pixels() -> None:
    wide = np.zeros((30, 60, 3), np.uint8)
    assert np.allclose(numbers("size", wide), [np.log(60), np.log(30), np.log(2), 0])
    assert np.array_equal(numbers("size", wide), numbers("size", wide + 9))


def test_texture_by_a_loop(photo: Pixels) -> None:
    from cuewise.inspection.clues import texture

    grey = look(photo).grey[:20, :24]
    counts = np.zeros(2**texture.BITS + 1)
    for y in range(20 - PATCH + 1):
        for x in range(24 - PATCH + 1):
            patch = grey[y : y + PATCH, x : x + PATCH]
            if patch.max() - patch.min() < texture.FLAT:
                counts[-1] += 1
            else:
                signs = [float((patch.ravel() * c).sum()) > 0 for c in texture.CONTRASTS.T]
                counts[sum(1 << k for k, s in enumerate(signs) if s)] += 1
    # a patch at a sign's border may round either way
    assert np.abs(texture.words(grey) ** 2 - counts / counts.sum()).sum() < 0.01


def test_texture_sees_neither_colour_nor_brightness_nor_places(photo: Pixels) -> None:
    grey = np.repeat((photo @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)[..., None] // 2, 3, 2)
    apart = np.abs(numbers("texture", grey) ** 2 - numbers("texture", grey + 40) ** 2).sum()
    assert apart < 0.02
    stripes = np.zeros((SIDE, SIDE, 3), np.uint8)
    stripes[::4] = stripes[1::4] = 200
    assert np.abs(numbers("texture", grey) - numbers("texture", stripes)).sum() > 1


def test_border_does_not_see_the_middle(photo: Pixels) -> None:
    changed = photo.copy()
    changed[SIDE // 4 : -SIDE // 4, SIDE // 4 : -SIDE // 4] = 0
    assert np.array_equal(numbers("border", photo), numbers("border", changed))
    changed[:4] = 0
    assert not np.array_equal(numbers("border", photo), numbers("border", changed))


def test_layout_is_the_mean_of_cells(photo: Pixels) -> None:
    grey = look(photo).grey
    assert np.allclose(numbers("layout", photo)[9], grey[8:16, 8:16].mean(), atol=1e-3)


def test_silhouette_sees_the_mask_alone(photo: Pixels) -> None:
    mask = np.zeros(photo.shape[:2], np.uint8)
    mask[:32] = 3
    mask[32:36] = 255  # not labelled
    found = numbers("silhouette", photo, facts=Facts(masked=lambda: mask)).reshape(16, 16)
    assert np.array_equal(found, np.repeat([1.0, 0.0], 8)[:, None] * np.ones(16))
    assert CLUES.get("silhouette")().numbers(look(photo)) is None


def test_position_is_that_of_the_largest_box(photo: Pixels) -> None:
    corners = np.array([[0, 0, 8, 8], [16, 0, 48, 32]], np.float32)
    facts = Facts(boxes=Boxes(corners, np.zeros(2, np.int64)))
    assert np.allclose(numbers("position", photo, facts=facts), [0.5, 0.25, 0.5, 0.5, 0.5, np.log(3)])
    none = replace(facts, boxes=Boxes(corners[:0], np.zeros(0, np.int64)))
    assert np.isfinite(numbers("position", photo, facts=none)).all()


def encoded(image: Pixels, **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, **options)  # type: ignore[arg-type]
    return out.getvalue()


def test_file_sees_format_and_quality(photo: Pixels) -> None:
    found = [
        numbers("file", photo, content=encoded(photo, **o))
        for o in ({"format": "PNG"}, {"format": "JPEG", "quality": 95}, {"format": "JPEG", "quality": 40})
    ]
    assert found[0][2:].tolist() != found[1][2:].tolist()
    assert found[1][2:].tolist() != found[2][2:].tolist()
    assert CLUES.get("file")().numbers(look(photo)) is None
    assert np.isfinite(numbers("file", photo, content=b"not an image")).all()


@pytest.mark.parametrize("name", sorted(CLUES.summaries()))
def test_every_clue_is_deterministic_and_draws_a_picture(name: str, photo: Pixels) -> None:
    facts = Facts(masked=lambda: np.ones(photo.shape[:2], np.uint8),
                  boxes=Boxes(np.array([[4, 4, 40, 50]], np.float32), np.zeros(1, np.int64)))  # fmt: skip
    seen = look(photo, encoded(photo, format="PNG"), facts)
    clue = CLUES.get(name)()
    first, second = clue.numbers(seen), clue.numbers(look(photo, encoded(photo, format="PNG"), facts))
    assert first is not None
    assert second is not None
    assert first.ndim == 1
    assert np.isfinite(first).all()
    assert np.array_equal(first, second)
    picture = clue.picture(seen)
    assert picture is None or (picture.shape == (SIDE, SIDE, 3) and picture.dtype == np.uint8)
