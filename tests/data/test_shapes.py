"""The embedded shapes: the same pixels everywhere, the label law of each split, and cues that can be read."""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import maximum_filter, minimum_filter

from cuewise.data.shapes import CONTEXTS, SHAPES, SPLITS, SUPERCLASSES, TEXTURES, ShapeSet
from cuewise.data.shapes.compose import PLACE, scene_poses, turn_steps
from cuewise.data.shapes.fields import distance_fields
from cuewise.data.shapes.hashing import draw_array, mix, mix_arrays, stream_keys
from cuewise.data.shapes.raster import POSE, SILHOUETTE, SKETCH, paint
from cuewise.data.shapes.textures import SINE, TURN
from cuewise.errors import UserError

GOLDEN = {
    "fields": "d7df9b540658f3ae",
    "aligned": ("1b9370835090498e", "c9ef7af643cc4562"),
    "conflict": ("bbca926150ee0945", "d7f5a33310a2065c"),
    "texture_only": ("33b697f1602679b2", "3e84bcdc21761b1b"),
    "silhouette": ("2cbea13c487f6252", "68e03a9c82123832"),
    "sketch": ("4d8d1d24e66d6381", "2e2518361fa98bb0"),
    "fine": ("a5b3aa0b40a4654e", "b8973d994e029f65"),
    "rotated": ("9ca4dd008f3741da", "72009e697d6bfc67"),
    "coloured": ("5942a5da11ead05f", "c0113424f14e7bdb"),
    "scenes": ("59f90182dbea64f3", "76914d27bc734500"),
    "disjoint": ("26ef8761d54735ff", "e7a59441da7e0d36"),
}


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def example(split: str, n: int = 48, size: int = 32, seed: int = 7, **options: object) -> ShapeSet:
    if split == "scenes":
        options.setdefault("odd", 0.5)
    return ShapeSet(split, n=n, size=size, seed=seed, **options)


def binomial_margin(p: float, n: int) -> float:
    return 4 * math.sqrt(p * (1 - p) / n) + 1e-12


# --- the same pixels on every machine, in any order -------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_pixels_and_labels_are_the_recorded_ones(split: str) -> None:
    made = example(split)
    assert (digest(made.batch(range(48))), digest(made.labels)) == GOLDEN[split]


def test_distance_tables_are_the_recorded_ones() -> None:
    assert digest(distance_fields().astype("<i2")) == GOLDEN["fields"]


def test_sine_table_does_not_depend_on_the_last_bit_of_the_platforms_sine() -> None:
    exact = 16384 * np.sin(2 * np.pi * np.arange(TURN) / TURN)
    assert np.abs(exact - np.floor(exact) - 0.5).min() > 1e-6
    assert np.array_equal(SINE[: TURN // 4], SINE[TURN // 4 + 1 : TURN // 2 + 1][::-1])
    assert SINE[TURN // 4] == 16384


@pytest.mark.parametrize("split", SPLITS)
def test_an_image_depends_on_its_number_only(split: str) -> None:
    made = example(split)
    whole = made.batch(range(48))
    fresh = example(split)
    assert np.array_equal(fresh.image(31), whole[31])
    assert np.array_equal(fresh.batch([40, 3, 3]), whole[[40, 3, 3]])
    for n in (5, 35, 47):
        shorter = example(split, n=n)
        assert np.array_equal(shorter.image(n - 1), whole[n - 1])
        assert np.array_equal(shorter.labels, made.labels[:n])
        assert shorter.name(n - 1) == made.name(n - 1)
    copy = pickle.loads(pickle.dumps(made))
    assert np.array_equal(copy.image(31), whole[31])
    assert copy.name(31) == fresh.name(31)


INTERPRETED = """
import sys, warnings
import numpy as np
import cuewise.data.shapes.shape_set as module
warnings.simplefilter("ignore")  # numpy reports the wrap-around that the hash wants
module.distance_fields = lambda: np.load(sys.argv[1])
sets = [module.ShapeSet(split, n=3, size=16, seed=4) for split in module.SPLITS]
np.save(sys.argv[2], np.stack([s.batch([0, 1, 2]) for s in sets]))
"""


@pytest.mark.shell
def test_compiled_kernels_equal_the_interpreted_ones(tmp_path: Path) -> None:
    """Python's integers do not overflow: nothing depends on the compiler, the word size or rounding."""
    np.save(tmp_path / "fields.npy", distance_fields())
    command = [sys.executable, "-c", INTERPRETED, str(tmp_path / "fields.npy"), str(tmp_path / "out.npy")]
    subprocess.run(command, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=True)
    compiled = [ShapeSet(split, n=3, size=16, seed=4).batch([0, 1, 2]) for split in SPLITS]
    assert np.array_equal(np.load(tmp_path / "out.npy"), np.stack(compiled))


def test_pickles_are_small_whatever_was_generated() -> None:
    made = ShapeSet("scenes", n=5000)
    assert len(made.columns["boxes"]) == 5000
    assert len(pickle.dumps(made)) < 2000


@pytest.mark.parametrize("split", SPLITS)
def test_seeds_and_parts_give_other_images(split: str) -> None:
    sets = [example(split), example(split, seed=8), example(split, part="test")]
    assert len({digest(image) for s in sets for image in s.batch(range(48))}) == 3 * 48
    assert len({s.fingerprint_hash() for s in sets}) == 3


def test_draws_are_uniform_and_array_and_kernel_agree() -> None:
    keys = stream_keys(3, 1, 20000)
    counts = np.bincount(draw_array(keys, 5, 0, 9), minlength=10)
    assert ((counts - 2000) ** 2 / 2000).sum() < 33.7  # chi², 9 degrees of freedom, p = 1e-4
    kernel = [int(mix(key, np.uint64(5))) for key in keys[:50]]
    assert kernel == mix_arrays(keys[:50], np.array([5], np.uint64)).tolist()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("size", [32, 64])
def test_another_size_shows_the_same_scene(split: str, size: int) -> None:
    small = example(split, n=32, size=size).batch(range(32)).astype(float)
    large = example(split, n=32, size=2 * size).batch(range(32)).astype(float)
    shrunk = large.reshape(32, size, 2, size, 2, 3).mean(axis=(2, 4))
    assert np.abs(small - shrunk).mean() < 0.15 * shrunk.std()


@pytest.mark.parametrize("size", [16, 17, 50, 100])
def test_any_size(size: int) -> None:
    for split in SPLITS:
        image = example(split, n=1, size=size).image(0)
        assert image.shape == (size, size, 3)
        assert image.dtype == np.uint8
        assert image.flags.c_contiguous
        assert image.std() > 5


# --- the label law of each split --------------------------------------------------------------------------------


def test_sixteen_outlines_and_as_many_textures() -> None:
    assert len(SHAPES) == len(TEXTURES) == 16
    assert sorted(sum(SUPERCLASSES.values(), ())) == sorted(SHAPES)
    assert set(sum(CONTEXTS.values(), ())) == set(SHAPES)
    assert all(re.fullmatch("[a-z]+", word) for word in SHAPES + TEXTURES)


@pytest.mark.parametrize("split", SPLITS)
def test_labels_are_balanced_and_index_the_classes(split: str) -> None:
    made = example(split, n=960)
    assert made.labels.dtype == np.int64
    counts = np.bincount(made.labels, minlength=len(made.classes))
    assert counts.min() == counts.max() == 960 // len(made.classes)
    assert len(np.unique(made.labels[: len(made.classes)])) == len(made.classes)
    assert all(len(column) == 960 for column in made.columns.values())
    names = [made.name(i) for i in range(960)]
    assert len(set(names)) == 960
    assert all(name.startswith(f"{made.classes[k]}/") for name, k in zip(names, made.labels, strict=True))


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, 1.0])
def test_aligned_pairs_shape_and_texture_with_probability_rho(rho: float) -> None:
    made = ShapeSet("aligned", n=8000, rho=rho)
    shape, texture = made.columns["shape"], made.columns["texture"]
    assert np.array_equal(made.labels, shape)
    assert abs((shape == texture).mean() - rho) <= binomial_margin(rho, 8000)
    others = np.bincount((texture - shape)[shape != texture] % 16, minlength=16)[1:]
    if rho < 0.5:
        assert others.min() > 0.7 * others.mean()


def test_conflict_never_agrees_and_its_names_identify_both() -> None:
    made = ShapeSet("conflict", n=3000)
    shape, texture = made.columns["shape"], made.columns["texture"]
    assert not (shape == texture).any()
    assert len(np.unique(16 * shape + texture)) == 240
    for i in range(0, 3000, 17):
        a, number, b, _ = re.fullmatch(r"\w+/([a-z]+)(\d+)-([a-z]+)(\d+)\.png", made.name(i)).groups()
        assert (made.classes.index(a), made.classes.index(b)) == (shape[i], texture[i])
        assert int(number) == np.count_nonzero(shape[: i + 1] == shape[i])


def test_disjoint_shares_no_texture_between_train_and_test() -> None:
    used = {
        part: set(ShapeSet("disjoint", n=2000, part=part).columns["texture"]) for part in ("train", "test")
    }
    assert not used["train"] & used["test"]
    assert len(used["train"]) == len(used["test"]) == 8
    crossed = ShapeSet("disjoint", n=2000, part="test", textures="train")
    assert set(crossed.columns["texture"]) == used["train"]
    table = np.zeros((16, 16))
    np.add.at(table, (crossed.columns["shape"], crossed.columns["texture"]), 1)
    assert (table[:, ::2] > 0).all()  # every shape wears every texture of the half


def test_fine_breeds_differ_by_texture_within_a_superclass() -> None:
    made = ShapeSet("fine", n=3200, breeds=5)
    columns = made.columns
    assert len(made.classes) == 20
    assert np.array_equal(columns["superclass"] * 5 + columns["texture"], made.labels)
    groups = list(SUPERCLASSES.values())
    assert all(SHAPES[s] in groups[g] for s, g in zip(columns["shape"], columns["superclass"], strict=True))
    assert all(len(np.unique(columns["shape"][made.labels == k])) == 4 for k in range(20))


def test_rotated_turns_the_whole_picture() -> None:
    made = ShapeSet("rotated", n=400, size=32)
    assert np.array_equal(made.columns["angle"], 90 * made.labels)
    assert made.classes == ("0", "90", "180", "270")
    upright = np.array([np.rot90(made.image(i), -made.labels[i]) for i in range(400)]).astype(float)
    legs = np.abs(upright - upright[:, :1, :1]).mean(axis=3)  # how unlike the corner's colour
    trees = legs[made.columns["shape"] == SHAPES.index("tree")].mean(axis=0)
    assert trees[18:26].mean() > 1.5 * trees[4:12].mean()  # a tree is wide at its foot, once turned back


def test_coloured_classes_have_their_own_hue() -> None:
    made = ShapeSet("coloured", n=800, size=32)
    pixels = made.batch(range(800)).astype(float).mean(axis=(1, 2))
    pixels -= pixels.mean(axis=1, keepdims=True)
    pixels /= np.linalg.norm(pixels, axis=1, keepdims=True)
    centres = np.array([pixels[:400][made.labels[:400] == k].mean(axis=0) for k in range(8)])
    guess = (pixels[400:] @ centres.T).argmax(axis=1)
    assert (guess == made.labels[400:]).mean() > 0.9
    assert abs(np.corrcoef(made.labels, made.columns["shape"])[0, 1]) < 4 / math.sqrt(800)


def test_scenes_keep_company_and_the_odd_one_does_not() -> None:
    made = ShapeSet("scenes", n=3000, odd=0.4)
    c = made.columns
    groups = list(CONTEXTS.values())
    assert abs(c["out_of_context"].mean() - 0.4) <= binomial_margin(0.4, 3000)
    assert np.array_equal(c["out_of_context"], c["odd"] >= 0)
    assert np.array_equal((c["shape"] >= 0).sum(axis=1), c["count"])
    assert set(c["count"]) == {2, 3, 4, 5}
    for i in range(3000):
        for j in range(c["count"][i]):
            at_home = SHAPES[c["shape"][i, j]] in groups[c["context"][i]]
            assert at_home == (j != c["odd"][i])
    assert np.array_equal(c["present"].sum(axis=1), [len(set(row[row >= 0])) for row in c["shape"]])
    # one kind of object occurs in many scenes, half of the kinds in more than one context
    assert c["present"].sum(axis=0).min() > 200
    calm = ShapeSet("scenes", n=500)
    assert not calm.columns["out_of_context"].any()
    homes = [len(np.unique(calm.labels[calm.columns["present"][:, k]])) for k in range(16)]
    assert sum(h == 2 for h in homes) == 8


def test_boxes_hold_their_objects_tightly() -> None:
    made = ShapeSet("scenes", n=60, size=96, seed=2)
    keys, shapes, boxes = stream_keys_of(made), made.columns["shape"], made.columns["boxes"]
    poses, nothing = np.zeros((5, POSE), np.int64), np.zeros((3, 3), np.int64)
    for i in range(60):
        count = made.columns["count"][i]
        scene_poses(np.uint64(mix(keys[i], np.uint64(PLACE))), count, turn_steps(made.options.turn), poses)
        for j in range(count):
            canvas = np.full((96, 96, 3), 255, np.uint8)
            paint(canvas, distance_fields()[shapes[i, j]], poses[j], SILHOUETTE, 0, keys[i], nothing)
            ys, xs = np.nonzero(canvas[:, :, 0] < 250)
            x0, y0, x1, y1 = boxes[i, j]
            assert x0 <= xs.min() <= x0 + 2
            assert y0 <= ys.min() <= y0 + 2
            assert x1 - 3 <= xs.max() < x1
            assert y1 - 3 <= ys.max() < y1
        assert (boxes[i, count:] == -1).all()


def test_a_scene_of_one_object_has_it_large_and_in_its_box() -> None:
    made = ShapeSet("scenes", n=80, size=64, objects=1, palette="one", rho=1)
    boxes, c = made.columns["boxes"][:, 0], made.columns
    assert (c["count"] == 1).all()
    assert (c["present"].sum(1) == 1).all()
    sides = boxes[:, 2:] - boxes[:, :2]
    assert np.median(sides.max(1)) > 40  # of 64; in scenes of several at most a third
    empty = np.median(
        made.batch(range(80)), axis=0
    )  # one palette: what is not an object is the same everywhere
    for i in range(80):
        away = np.abs(made.image(i) - empty).sum(2) > 90
        x0, y0, x1, y1 = boxes[i]
        away[y0:y1, x0:x1] = False
        assert away.mean() < 0.06, i


def stream_keys_of(made: ShapeSet) -> np.ndarray:
    return made._law[0]


# --- cues that can be read, and cues that cannot ----------------------------------------------------------------


def standardised(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, std = train.mean(axis=0), train.std(axis=0) + 1e-9
    return (train - mean) / std, (test - mean) / std


def nearest_centroid(x: np.ndarray, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    x, u = standardised(x, u)
    centres = np.array([x[y == k].mean(axis=0) for k in range(y.max() + 1)])
    guess = ((u[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    return float((guess == v).mean())


def nearest_neighbour(x: np.ndarray, y: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    distance = (u**2).sum(axis=1)[:, None] - 2 * u @ x.T + (x**2).sum(axis=1)
    return float((y[distance.argmin(axis=1)] == v).mean())


def parts(split: str, n: int, size: int, **options: object) -> tuple[np.ndarray, ...]:
    train = ShapeSet(split, n=n, size=size, **options)
    test = ShapeSet(split, n=n // 2, size=size, part="test", **options)
    return train.batch(range(n)), train.labels, test.batch(range(n // 2)), test.labels


@pytest.mark.parametrize("split", ["aligned", "texture_only", "conflict"])
def test_colour_alone_does_not_determine_the_class(split: str) -> None:
    """Neither the mean colour nor the corner's, by nearest centroid and by nearest neighbour."""
    x, y, u, v = parts(split, 4800, 16)
    chance = 1 / 16 + 0.04
    for train, test in ((x.mean(axis=(1, 2)), u.mean(axis=(1, 2))), (x[:, 0, 0] / 1.0, u[:, 0, 0] / 1.0)):
        assert nearest_centroid(train, y, test, v) < chance
        assert nearest_neighbour(train, y, test, v) < chance


def texture_statistics(images: np.ndarray) -> np.ndarray:
    """Gradient magnitudes (quantiles) and rotation-free power spectrum of the grey, contrast-normalised image."""
    grey = images.astype(float).mean(axis=3)
    grey = (grey - grey.mean(axis=(1, 2), keepdims=True)) / (grey.std(axis=(1, 2), keepdims=True) + 1e-9)
    dy, dx = np.diff(grey, axis=1)[:, :, :-1], np.diff(grey, axis=2)[:, :-1]
    slope = np.sort(np.hypot(dx, dy).reshape(len(grey), -1), axis=1)[:, ::400]
    power = np.abs(np.fft.fft2(grey)) ** 2
    frequency = np.fft.fftfreq(grey.shape[1], 1 / grey.shape[1])
    radius = np.hypot(*np.meshgrid(frequency, frequency)).astype(int)
    rings = [power[:, radius == r] for r in range(1, 28)]
    energy = np.stack([ring.mean(axis=1) for ring in rings], axis=1)
    peaks = np.stack([ring.max(axis=1) for ring in rings], axis=1)
    return np.concatenate([slope, np.log(energy + 1), np.log(peaks + 1)], axis=1)


@pytest.mark.slow
def test_texture_statistics_identify_the_texture() -> None:
    x, y, u, v = parts("texture_only", 1600, 64)
    assert nearest_centroid(texture_statistics(x), y, texture_statistics(u), v) > 0.6


@pytest.mark.slow
def test_texture_can_be_read_on_an_object_too() -> None:
    x, y, u, v = parts("aligned", 1600, 64, rho=1.0)
    assert nearest_centroid(texture_statistics(x), y, texture_statistics(u), v) > 0.2


def test_silhouettes_identify_the_shape() -> None:
    x, y, u, v = parts("silhouette", 1600, 32)

    def dark(images: np.ndarray) -> np.ndarray:
        return 1 - images[:, ::2, ::2, 0].reshape(len(images), -1) / 255.0

    assert nearest_neighbour(dark(x), y, dark(u), v) > 0.8


def test_silhouettes_are_black_on_white_and_large() -> None:
    images = ShapeSet("silhouette", n=320).batch(range(320))
    assert np.array_equal(images[..., 0], images[..., 1])
    assert np.array_equal(images[..., 0], images[..., 2])
    assert ((images > 0) & (images < 255)).mean() < 0.12  # antialiased borders only
    covered = (images[..., 0] < 128).mean(axis=(1, 2))
    assert covered.min() > 0.06
    assert covered.mean() > 0.2


@pytest.mark.slow
def test_sketches_contain_no_fill() -> None:
    """No spot of a sketch is dark further than a stroke and a half across; the interior stays white."""
    images = ShapeSet("sketch", n=320, size=128).batch(range(320))[..., 0]
    dark = np.pad(images < 128, ((0, 0), (1, 1), (1, 1)))
    assert dark.mean() < 0.2
    block = np.lib.stride_tricks.sliding_window_view(dark, (9, 9), axis=(1, 2))
    assert not block.all(axis=(3, 4)).any()


def test_sketch_strokes_follow_the_silhouette() -> None:
    """Painted at one pose, every stroke lies on the border of the silhouette."""
    pose, nothing = np.array([32768, 32768, 0, 12000, 1, 0]), np.zeros((3, 3), np.int64)
    key = stream_keys(0, 0, 1)[0]
    for field in distance_fields():
        filled, drawn = np.full((2, 384, 384, 3), 255, np.uint8)
        paint(filled, field, pose, SILHOUETTE, 0, key, nothing)
        paint(drawn, field, pose, SKETCH, 0, key, nothing)
        inside = filled[..., 0] < 128
        border = maximum_filter(inside, 13) & ~minimum_filter(inside, 13)
        assert np.count_nonzero(~border & (drawn[..., 0] < 100)) < 60  # rounded tips of sharp corners
        assert (drawn[..., 0] < 128).mean() > 0.03


# --- what a user may write --------------------------------------------------------------------------------------


def test_parse_reads_every_part() -> None:
    made = ShapeSet.parse("shapes:conflict?n=500&size=48&seed=3&rho=0.9&part=test&classes=8")
    assert (made.split, len(made), made.size, made.seed) == ("conflict", 500, 48, 3)
    assert (made.options.part, made.options.classes, made.options.rho) == ("test", 8, 0.9)
    assert ShapeSet.parse("shapes").split == "aligned"
    assert ShapeSet.parse("shapes?n=10").fingerprint_hash() == ShapeSet("aligned", n=10).fingerprint_hash()


@pytest.mark.parametrize("split", SPLITS)
def test_spec_is_read_back(split: str) -> None:
    made = example(split, classes=12)
    again = ShapeSet.parse(made.spec())
    assert again.fingerprint_hash() == made.fingerprint_hash()
    assert np.array_equal(again.image(5), made.image(5))
    assert made.columns.get("shape", np.zeros(1)).max() < 12


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("shapes:cats", "no split 'cats'.*aligned.*conflict.*scenes"),
        ("shapes:aligned?colour=3", "no option 'colour'.*n, size, seed, part, classes, turn, rho"),
        ("shapes:sketch?rho=0.5", "no option 'rho'"),
        ("shapes:aligned?n=many", "n must be a number, not 'many'"),
        ("shapes:aligned?n=0", "n must be at least 1, not 0"),
        ("shapes:aligned?size=8", "size must be 16 to 4096"),
        ("shapes:aligned?rho=1.5", "rho must be 0 to 1"),
        ("shapes:aligned?part=val", "part must be train or test, not 'val'"),
        ("shapes:scenes?classes=4", "classes must be 8 to 16"),
        ("shapes:scenes?objects=0", "objects must be 1 to 8"),
        ("shapes:scenes?objects=1&odd=0.5", "odd must be 0 where there is one object"),
        ("shapes:aligned?classes=17", "classes must be 3 to 16"),
        ("shapes:aligned?n", "name=value"),
        ("shapes:", "is not a shapes set"),
        ("photos", "is not a shapes set"),
    ],
)
def test_errors_say_what_is_legal(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        ShapeSet.parse(text)


def test_numbers_outside_the_set() -> None:
    made = ShapeSet(n=10)
    with pytest.raises(IndexError, match="images 0 to 9"):
        made.image(10)
    assert made.batch([]).shape == (0, 64, 64, 3)


@pytest.mark.parametrize("split", ["aligned", "silhouette", "sketch", "texture_only"])
def test_one_palette_leaves_shape_and_texture_as_the_only_difference(split: str) -> None:
    alike, free = (ShapeSet(split, n=64, size=48, **o) for o in ({"palette": "one"}, {}))
    a, b = alike.batch(range(64)), free.batch(range(64))
    np.testing.assert_array_equal(alike.labels, free.labels)
    assert not np.array_equal(a, b)
    border = np.concatenate([a[:, 0, 0], a[:, 0, -1], a[:, -1, 0], a[:, -1, -1]])
    if split != "texture_only":  # the background is the same everywhere: most corners are
        corners = border.reshape(4, 64, 3)
        assert all(np.unique(c, axis=0, return_counts=True)[1].max() > 0.7 * 64 for c in corners)
    means = a.mean((1, 2)).std(0)
    assert (means < 0.6 * ShapeSet("aligned", n=64, size=48).batch(range(64)).mean((1, 2)).std(0)).all()


def test_palette_is_one_or_left_out() -> None:
    with pytest.raises(UserError, match="palette must be one"):
        ShapeSet("aligned", palette="two")
