"""Object-aware crops: regions from boxes, in every mode, and with negatives, suppression and shared augmentations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuewise.config import complete, resolve
from cuewise.data import Boxes, Dataset, Facts, Sample, open_data
from cuewise.errors import UserError
from cuewise.train.shown import build_views
from cuewise.views import RECIPES, PatchNegative, TextureNegative, View, ViewParams, Views
from cuewise.views.box_sources import read_boxes
from cuewise.views.object_crops import GivenBoxes, ObjectCrops, dilated, grown, mean_area, shifted
from cuewise.views.params import Crop, Region

SCENES = "shapes:scenes?n=40&size=64"


def noise(boxes: list[list[float]], height: int = 60, width: int = 90) -> Sample:
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    corners = np.array(boxes, np.float32).reshape(-1, 4)
    return Sample(image, facts=Facts(boxes=Boxes(corners, np.zeros(len(corners), np.int64))))


def law(**changes: Any) -> ObjectCrops:
    return replace(ObjectCrops(GivenBoxes(), minimum=8), **changes)


def pair(recipe: str = "moco-v2", size: int = 16, **more: Any) -> Views:
    r = replace(RECIPES[recipe], size=size)
    return Views([View("query", r), View("key", r)], **more)


def inside(crop: Crop, region: Region) -> bool:
    return (
        region.top <= crop.top
        and region.left <= crop.left
        and crop.top + crop.height <= region.top + region.height
        and crop.left + crop.width <= region.left + region.width
    )


def drawn(views: Views, sample: Sample, seed: int) -> dict[str, ViewParams]:
    rng = np.random.default_rng(seed)
    assert views.crops is not None
    regions = views.crops.draw(sample, rng, len(views.positives))
    return views.sample(rng, *sample.image.shape[:2], regions).positives


def test_small_boxes_are_grown_around_their_centre_and_shifted_inside() -> None:
    assert grown(np.array([40, 20, 50, 30], np.float32), 60, 90, 20) == Region(15, 35, 20, 20)
    assert grown(np.array([0, 0, 5, 5], np.float32), 60, 90, 20) == Region(0, 0, 20, 20)
    assert grown(np.array([85, 50, 90, 60], np.float32), 60, 90, 200) == Region(0, 0, 60, 90)
    assert grown(np.array([10.4, 10.6, 40.2, 50.1], np.float32), 60, 90, 4) == Region(10, 10, 41, 31)


def test_dilation_is_symmetric_and_has_the_released_variant() -> None:
    box = Region(20, 30, 10, 20)
    assert dilated(box, 0.2, "image", 60, 90) == Region(14, 21, 22, 38)  # 6 and 9 pixels on each side
    assert dilated(box, 0.2, "box", 60, 90) == Region(19, 28, 12, 24)
    assert dilated(box, 0.2, "coordinate", 60, 90) == Region(16, 24, 20, 36)
    assert dilated(Region(0, 0, 10, 20), 0.2, "coordinate", 60, 90) == Region(
        0, 0, 12, 24
    )  # no growth left and top
    assert dilated(box, 0, "image", 60, 90) == Region(20, 30, 10, 20)


def test_a_shifted_box_lies_at_the_radius() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        found = shifted(Region(20, 30, 10, 20), 15, rng.random(10).tolist(), 60, 90)
        assert found is not None
        assert np.hypot(found[0] - 20, found[1] - 30) == pytest.approx(15, abs=1)
        assert 0 <= found[0] <= 50
        assert 0 <= found[1] <= 70
    assert shifted(Region(0, 0, 60, 90), 15, rng.random(10).tolist(), 60, 90) is None


@pytest.mark.parametrize("mode", ["dilate", "scene", "shift"])
def test_crops_lie_in_the_regions_of_their_mode(mode: str) -> None:
    sample, views = (
        noise([[30, 20, 60, 40]]),
        pair(crops=law(mode=mode, radius=12 if mode == "shift" else None)),
    )
    box = Region(20, 30, 20, 30)
    first, scenes = 0, 0
    for seed in range(60):
        params = drawn(views, sample, seed)
        regions = [p.region for p in params.values()]
        for p in params.values():
            assert p.region is None or inside(p.crop, p.region)
        own = [r is not None and (r.top, r.left, r.height, r.width) == (20, 30, 20, 30) for r in regions]
        assert sum(own) == 1
        first += own[0]
        object_view = list(params.values())[own.index(True)]
        other = regions[own.index(False)]
        if mode == "scene":
            assert object_view.crop == Crop(20, 30, 20, 30)  # resized as it is
            assert other is None
            scenes += list(params.values())[own.index(False)].crop.height > 30
        elif mode == "dilate":
            assert other == dilated(box, 0.2, "image", 60, 90)
        else:
            assert other is not None
            assert np.hypot(other.top - 20, other.left - 30) == pytest.approx(12, abs=1)
    assert 15 < first < 45  # which view is the object's is drawn
    assert scenes > 20 or mode != "scene"


def test_the_least_area_of_a_crop_follows_the_mean_area_of_the_boxes() -> None:
    data = open_data(SCENES)
    config = complete(resolve({"size": 32, "crops": {"name": "object", "minimum": 12}}), len(data))
    crops = build_views(config, data).crops
    assert isinstance(crops, ObjectCrops)
    area, boxed = mean_area(GivenBoxes(), data, 12)
    assert boxed == 1
    assert crops.low == pytest.approx(min(1, 0.2 / area))
    shares = []
    for seed in range(40):
        for p in drawn(
            pair(crops=law(low=0.9, mode="shift", radius=12)), noise([[30, 20, 60, 40]]), seed
        ).values():
            shares.append(p.crop.height * p.crop.width / 600)
    assert min(shares) > 0.75  # 0.9, or the central crop where the ratio does not fit


def test_an_image_without_boxes_gets_ordinary_crops() -> None:
    views = pair(crops=law())
    shown = views(noise([]), np.random.default_rng(3))
    assert (shown.facts["query.region"] == -1).all()
    assert (shown.facts["key.region"] == -1).all()
    plain = pair().sample(_after(13, 3), 60, 90).positives
    assert drawn(views, noise([]), 3) == plain


def _after(draws: int, seed: int) -> np.random.Generator:
    rng = np.random.default_rng(seed)
    rng.random(draws)
    return rng


def test_as_many_random_numbers_whatever_the_boxes() -> None:
    views = pair(crops=law(mode="shift"))
    with_box, without = drawn(views, noise([[30, 20, 60, 40]]), 5), drawn(views, noise([]), 5)
    for role in ("query", "key"):
        assert with_box[role].jitter == without[role].jitter
        assert with_box[role].flip == without[role].flip


def test_with_negatives() -> None:
    """Positives stay as they are; a texture negative is a crop at the object's place."""
    sample = noise([[30, 20, 60, 40]])
    rng = np.random.default_rng
    plain = pair(crops=law())(sample, rng(1))
    both = pair(crops=law(), negatives=[PatchNegative(), TextureNegative()])(sample, rng(1))
    for role in ("query", "key"):
        np.testing.assert_array_equal(plain.views[role], both.views[role])
    assert both.views["patch:query"].shape == both.views["texture:query"].shape == (1, 16, 16, 3)


def test_with_suppression() -> None:
    """The whole image is filtered, then the object's crop is taken: the regions are those without suppression."""
    sample, seeds = noise([[30, 20, 60, 40]]), range(20)
    recipe = replace(RECIPES["moco-v2"], size=16, suppress="gaussian", suppress_p=0.5)
    views = Views([View("query", recipe), View("key", recipe)], crops=law())
    found = [drawn(views, sample, s) for s in seeds]
    assert any(p["query"].suppress for p in found)
    assert [p["query"].region for p in found] == [
        drawn(pair(crops=law()), sample, s)["query"].region for s in seeds
    ]


def test_with_left_out_augmentations() -> None:
    """LooC: k_crop shares the query's crop and its region; the other keys have the other region."""
    data = open_data(SCENES)
    options = {"method": "looc", "leave_out": ["color", "crop"], "size": 32}
    config = complete(resolve(options, {"crops": {"name": "object", "minimum": 12}}), len(data))
    views = build_views(config, data)
    for i in range(10):
        params = drawn(views, data[i], i)
        assert params["key:crop"].crop == params["query"].crop
        assert params["key:crop"].region == params["query"].region
        assert params["key:color"].jitter == params["query"].jitter
        assert params["key:color"].region == params["key"].region != params["query"].region
    assert views(data[0], np.random.default_rng(0)).views["key:crop"].shape == (32, 32, 3)


def test_parameters_survive_json() -> None:
    params = drawn(pair(crops=law()), noise([[30, 20, 60, 40]]), 0)["query"]
    assert ViewParams.from_dict(params.to_dict()) == params


def test_boxes_from_a_table(tmp_path: Path) -> None:
    data: Dataset = open_data("shapes?n=6&size=32")
    name = data.name(2)
    table = tmp_path / "boxes.csv"
    table.write_text(
        f"image,label,xmin,ymin,xmax,ymax\n{name},object,3,4,20,21\nother.png,object,0,0,9,9\n{name},object,,,,\n"
    )
    found = read_boxes(table, data)
    assert list(found) == [name]
    np.testing.assert_array_equal(found[name], [[3, 4, 20, 21]])
    options = {"size": 32, "crops": {"name": "object", "boxes": str(table), "minimum": 8}}
    views = build_views(complete(resolve(options), 6), data)
    assert drawn(views, data[2], 0)["query"].region is not None
    assert drawn(views, data[1], 0)["query"].region is None
    table.write_text("image,xmin,ymin,xmax,ymax\nnobody.png,0,0,9,9\n")
    with pytest.raises(UserError, match="contains none of these images"):
        read_boxes(table, data)


@pytest.mark.parametrize(
    ("crops", "said"),
    [
        ({"name": "objects"}, "--crops objects: random or object"),
        ({"mode": "shift"}, "crops.mode is a setting of --crops object, which is not given"),
        ({"name": "object", "mode": "far"}, "crops.mode far: dilate, scene, shift"),
        ({"name": "object", "mode": "scene", "dilation": 0.1}, "crops.dilation is for crops.mode=dilate"),
        ({"name": "object", "radius": 9}, "crops.radius is for crops.mode=shift"),
        ({"name": "object", "boxes": "given"}, "crops.boxes=given: DATA has no annotated objects"),
        ({"name": "object", "boxes": "nowhere.csv"}, "nowhere.csv cannot be read"),
    ],
)
def test_settings_without_a_meaning_are_refused(crops: dict[str, Any], said: str) -> None:
    data = open_data("shapes?n=6&size=32")
    with pytest.raises(UserError, match=said):
        build_views(complete(resolve({"crops": crops, "size": 32}), 6), data)
