"""Views by role: picklable, repeatable, and positives that do not notice the negatives."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from pillow_views import photo

from cuewise.cues import patches
from cuewise.errors import UserError
from cuewise.views import RECIPES, PatchNegative, View, Views, apply

MOCO = replace(RECIPES["moco-v2"], size=64)
PAIR = [View("query", MOCO), View("key", MOCO)]


def test_roles_shapes_and_repeatability() -> None:
    views = Views(PAIR, [PatchNegative(count=2)])
    image = photo(80, 100)
    one = views(image, np.random.default_rng(3), 0)
    again = pickle.loads(pickle.dumps(views))(image, np.random.default_rng(3), 0)
    assert tuple(one) == views.roles == ("query", "key", "negative1", "negative2")
    for role, view in one.items():
        assert view.shape == (64, 64, 3)
        assert view.dtype == np.uint8
        np.testing.assert_array_equal(view, again[role])
    assert np.any(one["query"] != one["key"])
    assert np.any(one["negative1"] != one["negative2"])


@pytest.mark.parametrize(
    "negatives",
    [
        [PatchNegative()],
        [PatchNegative(count=5, augment=("rot90",))],
        [PatchNegative(overlap="avoid"), PatchNegative(role="other", source="key", patch_size=(3, 9))],
        [PatchNegative(source="raw")],
    ],
)
def test_negatives_leave_positives_as_they_were(negatives: list[PatchNegative]) -> None:
    for i in range(5):  # every image has a generator of its own, as in the loader
        image = photo(80, 100, i)
        plain = Views(PAIR)(image, np.random.default_rng((3, i)), i)
        views = Views(PAIR, negatives)(image, np.random.default_rng((3, i)), i)
        for role in ("query", "key"):
            np.testing.assert_array_equal(views[role], plain[role])


def test_negatives_are_cut_from_the_view_of_their_source() -> None:
    image = photo(80, 100)
    for source in ("query", "key", "raw"):
        views = Views(PAIR, [PatchNegative(source=source, patch_size=(8, 12))])
        params = views.sample(np.random.default_rng(1), 80, 100)
        made = views.render(image, params)
        whole = image if source == "raw" else made[source]
        cut = params.negatives["negative"]
        expected = whole[cut.tops[0] : cut.tops[0] + cut.patch, cut.lefts[0] : cut.lefts[0] + cut.patch]
        assert made["negative"].shape == (64, 64, 3)
        np.testing.assert_array_equal(made["negative"][: cut.patch, : cut.patch], expected)


def test_the_default_patch_range_follows_the_size() -> None:
    views = Views(PAIR, [PatchNegative()])
    sizes = {views.sample(np.random.default_rng(i), 80, 100).negatives["negative"].patch for i in range(400)}
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
    called = views(image, np.random.default_rng(9), 7)
    for role, view in views.render(image, params).items():
        np.testing.assert_array_equal(view, called[role])
    np.testing.assert_array_equal(called["key"], apply(image, params.positives["key"], 64))


def test_mistakes_are_named() -> None:
    with pytest.raises(UserError, match="same role"):
        Views([View("query", MOCO), View("query", MOCO)])
    with pytest.raises(UserError, match="cut from 'kay'"):
        Views(PAIR, [PatchNegative(source="kay")])
    with pytest.raises(UserError, match="must come before"):
        Views([View("key", MOCO, copy=("jitter",)), View("query", MOCO)])
    with pytest.raises(UserError, match="'colour'"):
        Views([*PAIR, View("third", MOCO, copy=("colour",))])
    with pytest.raises(UserError, match="count"):
        PatchNegative(count=0)
