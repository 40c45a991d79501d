"""Views by role: picklable, repeatable, and positives that do not notice the negatives."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from pillow_views import photo

from cuewise.cues import patches
from cuewise.data import Boxes, Facts, Sample
from cuewise.errors import UserError
from cuewise.views import RECIPES, PatchNegative, View, Views, apply

MOCO = replace(RECIPES["moco-v2"], size=64)
PAIR = [View("query", MOCO), View("key", MOCO)]


def test_roles_shapes_and_repeatability() -> None:
    views = Views(PAIR, [PatchNegative(count=2)])
    image = photo(80, 100)
    one = views(Sample(image), np.random.default_rng(3)).views
    again = pickle.loads(pickle.dumps(views))(Sample(image), np.random.default_rng(3)).views
    assert tuple(one) == views.roles == ("query", "key", "patch:query")
    for role, view in one.items():
        assert view.shape == ((2, 64, 64, 3) if role == "patch:query" else (64, 64, 3))
        assert view.dtype == np.uint8
        np.testing.assert_array_equal(view, again[role])
    assert np.any(one["query"] != one["key"])
    assert np.any(one["patch:query"][0] != one["patch:query"][1])


@pytest.mark.parametrize(
    "negatives",
    [
        [PatchNegative()],
        [PatchNegative(count=5, augment=("rot90",))],
        [PatchNegative(overlap="avoid"), PatchNegative(source="key", patch_size=(3, 9))],
    ],
)
def test_negatives_leave_positives_as_they_were(negatives: list[PatchNegative]) -> None:
    for i in range(5):  # every image has a generator of its own, as in the loader
        image = photo(80, 100, i)
        plain = Views(PAIR)(Sample(image), np.random.default_rng((3, i))).views
        views = Views(PAIR, negatives)(Sample(image), np.random.default_rng((3, i))).views
        for role in ("query", "key"):
            np.testing.assert_array_equal(views[role], plain[role])


def test_negatives_are_cut_from_the_view_of_their_source() -> None:
    image = photo(80, 100)
    for source in ("query", "key"):
        views = Views(PAIR, [PatchNegative(source=source, patch_size=(8, 12))])
        params = views.sample(np.random.default_rng(1), 80, 100)
        made = views.render(Sample(image), params).views
        (cut,) = params.negatives[f"patch:{source}"]
        expected = made[source][
            cut.tops[0] : cut.tops[0] + cut.patch, cut.lefts[0] : cut.lefts[0] + cut.patch
        ]
        assert made[f"patch:{source}"].shape == (1, 64, 64, 3)
        np.testing.assert_array_equal(made[f"patch:{source}"][0, : cut.patch, : cut.patch], expected)


def test_the_default_patch_range_follows_the_size() -> None:
    views = Views(PAIR, [PatchNegative()])
    drawn = [views.sample(np.random.default_rng(i), 80, 100).negatives["patch:query"] for i in range(400)]
    sizes = {cut.patch for (cut,) in drawn}
    assert (min(sizes), max(sizes)) == patches.default_range(64)


def test_a_key_can_copy_parameters_from_the_query() -> None:
    views = Views([*PAIR, View("same color", MOCO, copy=("jitter", "gray"))])
    independent = 0
    for i in range(40):
        drawn = views.sample(np.random.default_rng(i), 80, 100).positives
        copy, query = drawn["same color"], drawn["query"]
        assert (copy.jitter, copy.gray) == (query.jitter, query.gray)
        independent += copy.crop != query.crop
    assert independent == 40


def test_sample_and_render_are_the_call() -> None:
    views, image = Views(PAIR, [PatchNegative()]), photo(80, 100)
    params = views.sample(np.random.default_rng(9), 80, 100)
    called = views(Sample(image), np.random.default_rng(9)).views
    for role, view in views.render(Sample(image), params).views.items():
        np.testing.assert_array_equal(view, called[role])
    np.testing.assert_array_equal(called["key"], apply(image, params.positives["key"], 64))


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="same role"):
        Views([View("query", MOCO), View("query", MOCO)])
    with pytest.raises(UserError, match="made of 'kay'"):
        Views(PAIR, [PatchNegative(source="kay")])
    with pytest.raises(UserError, match="must come before"):
        Views([View("key", MOCO, copy=("jitter",)), View("query", MOCO)])
    with pytest.raises(UserError, match="'colour'"):
        Views([*PAIR, View("third", MOCO, copy=("colour",))])
    with pytest.raises(UserError, match="must be at least 1"):
        PatchNegative(count=0)


def painted(boxes: Boxes, height: int, width: int) -> np.ndarray:
    """An image whose colours say which box a pixel is in; later boxes cover earlier ones."""
    image = np.zeros((height, width, 3), np.uint8)
    for i, (left, top, right, bottom) in enumerate(boxes.corners.astype(int)):
        image[top:bottom, left:right] = 80 * (i + 1)
    return image


def test_boxes_and_masks_follow_crop_flip_and_rotation() -> None:
    """The oracle is the picture: after any view, each box is where its colour is."""
    recipe = replace(RECIPES["supervised"], size=96, rotation_p=0.75, scale=(0.3, 1.0))
    corners = np.array([[8, 12, 40, 60], [60, 20, 110, 50]], np.float32)
    boxes = Boxes(corners, np.array([3, 5]), {"difficult": np.array([False, True])})
    image = painted(boxes, 80, 120)
    sample = Sample(image, facts=Facts(boxes=boxes, masked=lambda: image[..., 0]))
    views = Views([View("query", recipe), View("key", recipe)], follows=("boxes", "mask"))
    seen = 0
    for seed in range(60):
        shown = views(sample, np.random.default_rng(seed))
        for role in ("query", "key"):
            found, mask, view = shown.facts[f"{role}.boxes"], shown.facts[f"{role}.mask"], shown.views[role]
            assert (
                np.mean(np.abs(mask.astype(int) - view[..., 0]) > 40) < 0.05
            )  # edges are mixed in the view alone
            for row, kind in enumerate(found.classes):
                value = 80 * (1 + [3, 5].index(kind))
                assert found.flags["difficult"][row] == (kind == 5)
                where = np.argwhere(mask == value)
                if len(where) == 0:  # less than a pixel of it is shown
                    continue
                left, top, right, bottom = found.corners[row]
                y, x = where.min(0), where.max(0)
                assert (
                    np.abs(np.array([left, top, right, bottom]) - [y[1], y[0], x[1] + 1, x[0] + 1]).max()
                    <= 1.5
                )
                seen += 1
            assert set(np.unique(mask)) - {0} <= {80 * (1 + [3, 5].index(k)) for k in found.classes}
    assert seen > 100


def test_facts_that_are_unknown_stay_unknown() -> None:
    shown = Views(PAIR, follows=("boxes",))(Sample(photo(80, 100)), np.random.default_rng(0))
    assert shown.facts == {"query.boxes": None, "key.boxes": None}
    assert Views(PAIR)(Sample(photo(80, 100)), np.random.default_rng(0)).facts == {}
