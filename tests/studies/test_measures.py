"""What is measured of a trained arm, on a run of two steps: names, ranges, and the definitions in plain loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cuewise.config import merge
from cuewise.data import open_data
from cuewise.studies.factor_measures import shift_hue, turn
from cuewise.studies.jobs import job_of, run_job
from cuewise.studies.labs import SHAPES, Lab, lab_of
from cuewise.studies.measures import applicable, find_measure
from cuewise.studies.similarities import pair_views
from cuewise.studies.study import studies
from cuewise.studies.trained import Trained
from tests.conftest import photograph
from tests.studies.tiny import LAB

EVERY = tuple(dict.fromkeys(m for s in studies().values() for m in s.measures))


def small(spec: str) -> str:
    head, _, options = spec.partition("?")
    kept = [o for o in options.split("&") if not o.startswith("n=")]
    return f"{head}?{'&'.join([*kept, 'n=96' if 'part=train' in spec else 'n=64'])}"


TINY: Lab = replace(LAB, sets={role: [small(s) for s in specs] for role, specs in SHAPES.sets.items()})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    place = tmp_path_factory.mktemp("arm")
    config = TINY.config({"leave_out": ["color", "rotation"]}, "looc", 0, 1)
    job = job_of(merge(config, {"looc": {"queue": 64}}), place, ())
    run_job(job, TINY)
    return Trained(Path(job.folder), TINY.sets)


@pytest.fixture(scope="module")
def found(trained: Trained) -> dict[str, dict[str, float]]:
    """Every measure of the lab, taken once."""
    return {m.name: m.take(trained, TINY) for m in applicable(EVERY, TINY)}


@pytest.mark.parametrize("name", [m for m in EVERY if m not in ("ood", "corrupted")])
def test_values(found: dict[str, dict[str, float]], name: str) -> None:
    assert found[name]
    low, high = (-1, 1) if name == "similarity" else (0, 2 if name == "contributions" else 1)
    assert all(low <= v <= high for v in found[name].values()), found[name]


def test_decisions_on_conflict_images(trained: Trained, found: dict[str, dict[str, float]]) -> None:
    data = open_data(list(TINY.sets["conflict"]))
    said = trained.probe().predict(trained.features("conflict").features)
    shape = sum(int(a == b) for a, b in zip(said, data.columns["shape"]))
    texture = sum(int(a == b) for a, b in zip(said, data.columns["texture"]))
    assert found["conflict"]["shape_accuracy"] == pytest.approx(shape / len(data))
    assert found["conflict"]["texture_accuracy"] == pytest.approx(texture / len(data))
    assert found["conflict"]["shape_bias"] == pytest.approx(shape / max(1, shape + texture))


def test_coarse_is_never_below_fine(found: dict[str, dict[str, float]]) -> None:
    assert found["fine"]["coarse"] >= found["fine"]["fine"]


def test_heads_cover_tasks_and_subsets(found: dict[str, dict[str, float]]) -> None:
    subsets = {"z0", "z0+color", "z0+rotation", "all"}
    assert set(found["heads"]) == {f"heads/{t}/{s}" for t in ("class", "colour", "rotation") for s in subsets}


def test_shares_of_heads_sum_to_one(found: dict[str, dict[str, float]]) -> None:
    for task in ("several", "texture"):
        shares = [v for k, v in found["contributions"].items() if k.startswith(f"share/{task}/")]
        assert len(shares) == 3
        assert sum(shares) == pytest.approx(1)


def test_pairs_are_the_same_for_every_arm(trained: Trained) -> None:
    find_measure("similarity").take(trained, TINY)
    before = pair_views.cache_info().misses
    other = replace(TINY, useful={"simclr": 7.0, "moco": 7.0})
    find_measure("similarity").take(trained, other)
    assert pair_views.cache_info().misses == before


def test_the_protocol_names_what_is_used() -> None:
    clean = find_measure("clean")
    assert clean.protocol(TINY) != clean.protocol(replace(TINY, sets={"probe": TINY.sets["probe"]}))
    assert clean.protocol(TINY) == clean.protocol(replace(TINY, sets={**TINY.sets, "sketch": ["shapes"]}))
    similar = find_measure("similarity")
    assert similar.protocol(TINY) != similar.protocol(replace(TINY, patch={"patch_size": "2:3"}))


def test_a_lab_without_the_data_leaves_a_measure_out() -> None:
    lab = lab_of(["photos"], [], [])
    names = {m.name for m in applicable(EVERY, lab)}
    assert {"clean", "similarity", "rotation", "colour", "heads"} <= names
    assert not {"conflict", "cues", "fine", "ood", "corrupted", "contributions"} & names


def test_photographs(trained: Trained, tmp_path: Path) -> None:
    """A probe on one domain is tested on the others by the names of the classes; rotation and hue are made tasks."""
    rng = np.random.default_rng(0)
    for domain, classes in (("train", "abc"), ("val", "abc"), ("sketch", "ca")):
        for name in classes:
            (tmp_path / domain / name).mkdir(parents=True)
            for i in range(12):
                Image.fromarray(photograph(rng)).save(tmp_path / domain / name / f"{i}.png")
    folders = {n: str(tmp_path / n) for n in ("train", "val", "sketch")}
    lab = lab_of([folders["train"]], [folders["val"]], [folders["train"], folders["sketch"]])
    assert lab.main == "moco"
    t = Trained(trained.folder, lab.sets)
    found: dict[str, float] = {}
    for measure in applicable(("clean", "ood", "corrupted", "rotation", "colour"), lab):
        found |= measure.take(t, lab)
    expected = {"clean", "ood/sketch", "ood_train", "texture_free", "corrupted", "rotation", "colour"}
    assert set(found) == expected
    assert found["texture_free"] == found["ood/sketch"]
    assert all(0 <= v <= 1 for v in found.values())


def test_four_versions() -> None:
    image = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    assert np.array_equal(turn(turn(image, 1), 3), image)
    assert len({shift_hue(image, k).tobytes() for k in range(4)}) == 4
    red = np.full((2, 2, 3), (255, 0, 0), np.uint8)
    assert shift_hue(red, 2)[0, 0].tolist() == [0, 255, 255]
