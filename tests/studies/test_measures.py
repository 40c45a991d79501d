"""Every measure against plain loops over images: on a run of two steps, and on photographs from disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from cuewise.config import merge
from cuewise.cues import patches
from cuewise.cues.corruptions import variants
from cuewise.cues.texture import Texture
from cuewise.data import Dataset, open_data
from cuewise.encoders import Encoder, load_encoder
from cuewise.probes import LinearProbe
from cuewise.studies.jobs import job_of, run_job
from cuewise.studies.labs import SHAPES, Lab, lab_of
from cuewise.studies.measures import TrainedArm, applicable, find_measure
from cuewise.studies.measures.cues import CORRUPTIONS
from cuewise.studies.measures.factors import shift_hue
from cuewise.studies.study import studies
from cuewise.train.reload import load_method
from cuewise.views import RECIPES, apply, center
from tests.conftest import photograph
from tests.studies.tiny import LAB

pytestmark = pytest.mark.slow

MASKED = ("reconstruction", "cost", "finetuned")  # of transformers alone: test_can_study.py
MASKED += ("detect", "segment")  # test_transfer_study.py
MASKED += (
    "answers",
    "error",
    "confusion",
    "own",
    "own_corrupted",
    "domains",
)  # of arms with a classifier: test_adf_studies.py, test_labels_study.py
EVERY = tuple(dict.fromkeys(m for s in studies().values() for m in s.measures if m not in MASKED))
Found = dict[str, dict[str, float]]


def small(spec: str) -> str:
    head, _, options = spec.partition("?")
    kept = [o for o in options.split("&") if not o.startswith("n=")]
    more = "part=train" in spec or "texture_only" in spec  # classes are judged by five images
    return f"{head}?{'&'.join([*kept, 'n=96' if more else 'n=64'])}"


TINY: Lab = replace(
    LAB,
    base={**LAB.base, "views": {"scale": [0.3, 0.9], "gray_p": 1.0}},
    sets={role: [small(s) for s in specs] for role, specs in SHAPES.sets.items()},
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("arm")
    config = TINY.config({"leave_out": ["color", "rotation"]}, "looc", 0, 1)
    job = job_of(merge(config, {"looc": {"queue": 64}}), place, ())
    run_job(job, TINY)
    return Path(job.folder)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Three classes of photographs, a validation set, and a domain with two of the classes in another order."""
    place, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for domain, classes in (("train", "abc"), ("val", "abc"), ("sketch", "ca")):
        for name in classes:
            (place / domain / name).mkdir(parents=True)
            for i in range(12):
                Image.fromarray(photograph(rng)).save(place / domain / name / f"{i}.png")
    train, val, sketch = (str(place / n) for n in ("train", "val", "sketch"))
    return lab_of([train], [val], [train, sketch])


@pytest.fixture(scope="module")
def found(run: Path) -> Found:
    """Every measure that the embedded lab has data for, on one arm that keeps its features."""
    arm = TrainedArm(run, TINY)
    return {name: find_measure(name).take(arm) for name in applicable(EVERY, TINY)}


@pytest.fixture(scope="module")
def of_photos(run: Path, photos: Lab) -> Found:
    arm = TrainedArm(run, photos)
    return {name: find_measure(name).take(arm) for name in applicable(EVERY, photos)}


# ------------------------------------------------------------------------------------------------------------ oracles
def embed(encoder: Encoder, images: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    encoder.eval()
    with torch.no_grad():
        return encoder(encoder.normalise(torch.from_numpy(np.stack(images)))).numpy()


def views(data: Dataset, size: int = 32) -> list[NDArray[np.uint8]]:
    return [center(data.image(i), size) for i in range(len(data))]


class Oracle:
    """The probe of a set, fitted outside of the studies."""

    def __init__(self, run: Path, lab: Lab, role: str = "probe") -> None:
        self.encoder, self.lab = load_encoder(str(run)), lab
        self.train = open_data(list(lab.sets[role]))
        self.probe = LinearProbe().fit(embed(self.encoder, views(self.train)), self.train.labels)

    def answers_to(self, role: str) -> tuple[list[str], Dataset]:
        """The class names that are answered, and the set."""
        data = open_data(list(self.lab.sets[role]))
        answers = self.probe.predict(embed(self.encoder, views(data)))
        return [self.train.classes[k] for k in answers], data


def share(right: Sequence[bool]) -> float:
    return sum(right) / len(right)


def test_clean(run: Path, found: Found) -> None:
    said, data = Oracle(run, TINY).answers_to("clean")
    assert found["clean"]["clean"] == pytest.approx(
        share([a == data.classes[k] for a, k in zip(said, data.labels)])
    )


def test_decisions_on_conflict_images(run: Path, found: Found) -> None:
    said, data = Oracle(run, TINY).answers_to("conflict")
    shape = [a == data.classes[k] for a, k in zip(said, data.columns["shape"])]
    texture = [a == data.classes[k] for a, k in zip(said, data.columns["texture"])]
    assert sum(shape) != sum(texture)  # or swapping them would not show
    assert {q: v for q, v in found["conflict"].items() if not q.startswith("draw/")} == pytest.approx(
        {"shape_accuracy": share(shape), "texture_accuracy": share(texture),
         "shape_bias": sum(shape) / (sum(shape) + sum(texture))}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("role", "column"), [("texture_only", "texture"), ("silhouette", "shape"), ("sketch", "shape")]
)
def test_one_cue(run: Path, found: Found, role: str, column: str) -> None:
    """Class k of the probe is shape k and texture k."""
    oracle = Oracle(run, TINY)
    said, data = oracle.answers_to(role)
    numbers = [oracle.train.classes.index(a) for a in said]
    expected = share([a == int(k) for a, k in zip(numbers, data.columns[column])])
    assert found["cues"][f"cue/{role}"] == pytest.approx(expected)
    if column == "texture":
        right: dict[int, list[bool]] = {}
        for a, k in zip(numbers, data.columns["texture"]):
            right.setdefault(int(k), []).append(a == int(k))
        shares = sorted(map(share, right.values()))
        assert found["texture_classes"] == pytest.approx(
            {"texture_classes/median": float(np.median(shares)), "texture_classes/highest": shares[-1],
             "texture_classes/near_chance": share([s < 2 / len(oracle.train.classes) for s in shares])}
        )  # fmt: skip


def test_texture_free_is_the_mean_of_two(found: Found) -> None:
    cues = found["cues"]
    assert cues["texture_free"] == pytest.approx((cues["cue/silhouette"] + cues["cue/sketch"]) / 2)


def test_breeds_and_kinds(run: Path, found: Found) -> None:
    said, data = Oracle(run, TINY, "fine_train").answers_to("fine")
    truth = [data.classes[k] for k in data.labels]
    fine, coarse = (
        share([f(a) == f(b) for a, b in zip(said, truth)]) for f in (str, lambda n: n.split("-")[0])
    )
    assert found["fine"] == pytest.approx({"fine": fine, "coarse": coarse})
    assert coarse > fine


def test_disjoint(run: Path, found: Found) -> None:
    said, data = Oracle(run, TINY, "disjoint_train").answers_to("disjoint")
    expected = share([a == data.classes[k] for a, k in zip(said, data.labels)])
    assert found["disjoint"]["disjoint"] == pytest.approx(expected)


def test_similarities_of_pairs(run: Path, found: Found) -> None:
    """The four pairs, drawn and pushed through encoder and projector by hand."""
    data, method = open_data(list(TINY.sets["probe"])), load_method(run).eval()
    low, high = map(int, TINY.patch["patch_size"].split(":"))
    recipe = replace(RECIPES["moco-v2"], size=32, scale=(0.3, 0.9), gray_p=1.0).scaled_blur()
    shown: dict[str, list[NDArray[np.uint8]]] = {k: [] for k in ("query", "positive", "patch", "texture")}
    for i in np.random.default_rng(0).permutation(len(data)).tolist():
        image, rng = data.image(i), np.random.default_rng((0, i))
        query, positive = recipe.sample(rng, 32, 32), recipe.sample(rng, 32, 32)
        shown["query"].append(apply(image, query, 32))
        shown["positive"].append(apply(image, positive, 32))
        cut = patches.sample(rng, 32, 32, 32, (low, high))
        shown["patch"].append(patches.apply(shown["query"][-1], cut))
        shown["texture"].append(apply(Texture()(image, rng), query, 32))
    z = {}
    for role, images in shown.items():
        with torch.no_grad():
            z[role] = method.similarity_networks()[0](torch.from_numpy(embed(method.encoder, images))).numpy()
        z[role] /= np.linalg.norm(z[role], axis=1, keepdims=True)
    z["random"] = np.roll(z["query"], 1, axis=0)
    for pair in ("positive", "random", "patch", "texture"):
        cosine = (z["query"] * z[pair]).sum(1)
        assert found["similarity"][f"similarity/{pair}"] == pytest.approx(float(cosine.mean()), abs=1e-5)
        assert found["similarity"][f"similarity/{pair}_std"] == pytest.approx(
            float(cosine.std(ddof=1)), abs=1e-5
        )


@pytest.mark.parametrize(("name", "role"), [("colour", "coloured"), ("rotation", "rotated")])
def test_factors_of_the_embedded_set(run: Path, found: Found, name: str, role: str) -> None:
    said, data = Oracle(run, TINY, f"{role}_train").answers_to(role)
    assert found[name][name] == pytest.approx(
        share([a == data.classes[k] for a, k in zip(said, data.labels)])
    )


@pytest.mark.parametrize("subset", ["z0", "z0+color", "z0+rotation", "all"])
def test_probes_on_subsets_of_heads(run: Path, found: Found, subset: str) -> None:
    """Each head's space is loaded by itself, and their features are put side by side."""
    names = ["z0", "color", "rotation"] if subset == "all" else subset.split("+")
    encoders = [load_encoder(f"{run}#{name}") for name in names]
    for task, train, test in (
        ("class", "probe", "clean"),
        ("colour", "coloured_train", "coloured"),
        ("rotation", "rotated_train", "rotated"),
    ):
        sets = [open_data(list(TINY.sets[r])) for r in (train, test)]
        X, X_test = (np.concatenate([embed(e, views(d)) for e in encoders], 1) for d in sets)
        right = LinearProbe().fit(X, sets[0].labels).predict(X_test) == sets[1].labels
        assert found["heads"][f"heads/{task}/{subset}"] == pytest.approx(right.mean(), abs=0.016)  # one image


def test_shares_of_heads(found: Found) -> None:
    """The entropy is that of the shares, which sum to one."""
    for task in ("several", "texture"):
        shares = [v for k, v in found["contributions"].items() if k.startswith(f"share/{task}/")]
        assert len(shares) == 3
        assert sum(shares) == pytest.approx(1)
        bits = -sum(s * np.log2(s) for s in shares if s)
        assert found["contributions"][f"entropy/{task}"] == pytest.approx(bits)
    assert found["contributions"]["share/several/z0"] != found["contributions"]["share/texture/z0"]


# -------------------------------------------------------------------------------------------------------- photographs
def test_domains_are_matched_by_the_names_of_classes(run: Path, photos: Lab, of_photos: Found) -> None:
    said, data = Oracle(run, photos, "ood_train").answers_to("ood/sketch")
    expected = share([a == data.classes[k] for a, k in zip(said, data.labels)])
    assert of_photos["ood"]["ood/sketch"] == of_photos["ood"]["texture_free"] == pytest.approx(expected)


def test_corrupted(run: Path, photos: Lab, of_photos: Found) -> None:
    oracle, data = Oracle(run, photos), open_data(list(photos.sets["corrupted"]))
    right = []
    for i in range(len(data)):
        made = variants(center(data.image(i), 32), seed=0, name=data.name(i), corruptions=CORRUPTIONS, severities=(3,),
                        scale_to_image=True)  # fmt: skip
        answers = oracle.probe.predict(embed(oracle.encoder, [image for _, _, image in made]))
        right += [oracle.train.classes[a] == data.classes[data.labels[i]] for a in answers]
    assert len(right) == 4 * len(data)
    assert of_photos["corrupted"]["corrupted"] == pytest.approx(share(right))


@pytest.mark.parametrize("name", ["rotation", "colour"])
def test_tasks_made_of_photographs(run: Path, photos: Lab, of_photos: Found, name: str) -> None:
    """Four versions of every photograph; the probe's own split keeps the versions of an image together."""
    encoder, sets = load_encoder(str(run)), []
    change = (lambda image, k: np.rot90(image, k).copy()) if name == "rotation" else shift_hue
    arm = TrainedArm(run, photos)
    train = arm.data("probe")
    from cuewise.studies.measures.factors import photographs

    for data in photographs(arm):
        rows = [embed(encoder, [change(v, k) for k in range(4)]) for v in views(data)]
        sets.append(
            (np.concatenate(rows), np.tile(np.arange(4), len(rows)), np.repeat(np.arange(len(rows)), 4))
        )
    (X, y, groups), (X_test, y_test, _) = sets
    assert len(X) == 4 * (len(train) - 6)  # two of each class are held out, though there is a validation set
    expected = float((LinearProbe().fit(X, y, groups).predict(X_test) == y_test).mean())
    assert of_photos[name][name] == pytest.approx(
        expected, abs=0.014
    )  # two of 144 may be ties of the arithmetic


def test_without_a_validation_set_a_fifth_is_held_out(run: Path, photos: Lab) -> None:
    lab = lab_of(list(photos.sets["probe"]), [], [])
    arm = TrainedArm(run, lab)
    data = arm.data("probe")
    X = embed(load_encoder(str(run)), views(data))
    rng, held = np.random.default_rng([0, 1]), np.zeros(len(data), bool)
    for k in range(3):
        held[rng.permutation(np.flatnonzero(data.labels == k))[:2]] = True
    expected = (LinearProbe().fit(X[~held], data.labels[~held]).predict(X[held]) == data.labels[held]).mean()
    assert find_measure("clean").take(arm)["clean"] == pytest.approx(expected)


# ------------------------------------------------------------------------------------------------------------ boundaries
@pytest.mark.parametrize("name", [m for m in EVERY if m not in ("ood", "corrupted")])
def test_each_measure_alone_on_a_finished_arm(run: Path, found: Found, name: str) -> None:
    """As after a kill between two measures: nothing was embedded or fitted before."""
    assert find_measure(name).take(TrainedArm(run, TINY)) == pytest.approx(found[name])


@pytest.mark.parametrize("name", ["clean", "ood", "corrupted", "rotation", "colour", "heads", "similarity"])
def test_each_measure_alone_on_photographs(run: Path, photos: Lab, of_photos: Found, name: str) -> None:
    assert find_measure(name).take(TrainedArm(run, photos)) == pytest.approx(of_photos[name])


def test_pairs_are_the_same_for_every_arm(run: Path, found: Found) -> None:
    """The lab's views and patches count, not what the arm was trained with."""
    other = replace(TINY, useful={"simclr": 7.0, "moco": 7.0})
    assert find_measure("similarity").take(TrainedArm(run, other)) == pytest.approx(found["similarity"])
    coarser = find_measure("similarity").take(TrainedArm(run, replace(TINY, patch={"patch_size": "2:3"})))
    assert coarser["similarity/patch"] != pytest.approx(found["similarity"]["similarity/patch"])
    assert coarser["similarity/positive"] == pytest.approx(found["similarity"]["similarity/positive"])


def test_the_protocol_names_what_is_used() -> None:
    clean = find_measure("clean")
    assert clean.protocol(TINY) != clean.protocol(replace(TINY, sets={**TINY.sets, "clean": ["shapes"]}))
    assert clean.protocol(TINY) == clean.protocol(replace(TINY, sets={**TINY.sets, "sketch": ["shapes"]}))
    similar = find_measure("similarity")
    assert similar.protocol(TINY) != similar.protocol(replace(TINY, patch={"patch_size": "2:3"}))
    assert clean.protocol(TINY) == clean.protocol(replace(TINY, patch={"patch_size": "2:3"}))
    sized = replace(clean, settings=lambda lab: {"size": lab.base["size"]})
    assert sized.protocol(TINY) != clean.protocol(TINY)
    assert sized.protocol(TINY) != sized.protocol(replace(TINY, base={**TINY.base, "size": 48}))


def test_a_lab_without_the_data_leaves_a_measure_out() -> None:
    names = set(applicable(EVERY, lab_of(["photos"], [], [])))
    assert {"clean", "similarity", "rotation", "colour", "heads"} <= names
    assert not {"conflict", "cues", "fine", "ood", "corrupted", "contributions"} & names


def test_turns_of_the_hue_circle() -> None:
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    assert len({shift_hue(image, k).tobytes() for k in range(4)}) == 4
    red = np.full((2, 2, 3), (255, 0, 0), np.uint8)
    assert shift_hue(red, 2)[0, 0].tolist() == [0, 255, 255]
