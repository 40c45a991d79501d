"""The studies of objects and scenes: every arm can be trained at equal steps, and what they measure is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import cuewise
from cuewise.audits.regions import space_of
from cuewise.config import resolve
from cuewise.data import open_data
from cuewise.encoders.embed import embed_dataset
from cuewise.probes.average_precision import mean_average_precision
from cuewise.probes.multilabel import MultiLabelProbe
from cuewise.studies import hcl, oac
from cuewise.studies.labs import PHOTOGRAPHS, SHAPES, Lab
from cuewise.studies.measures import TrainedArm, find_measure
from cuewise.views import ViewParams, apply
from cuewise.views.params import Crop
from tests.studies.tiny import LAB

pytestmark = pytest.mark.slow

SMALL = "size=48&palette=one&rho=1"
TINY = replace(
    LAB,
    scenes={"data": [f"shapes:scenes?n=64&objects=3&{SMALL}"]},
    single={"data": [f"shapes:scenes?n=64&objects=1&{SMALL}"]},
    sets={
        "scenes_train": [f"shapes:scenes?n=48&objects=3&{SMALL}"],
        "scenes": [f"shapes:scenes?n=32&objects=3&part=test&{SMALL}"],
        "single_train": [f"shapes:scenes?n=48&objects=1&{SMALL}"],
        "single": [f"shapes:scenes?n=32&objects=1&part=test&{SMALL}"],
        "odd": [f"shapes:scenes?n=32&odd=0.5&part=test&{SMALL}"],
    },
)


@pytest.mark.parametrize("study", [oac.STUDY, hcl.STUDY], ids=lambda s: s.name)
@pytest.mark.parametrize(
    "lab", [SHAPES, replace(PHOTOGRAPHS, base={**PHOTOGRAPHS.base, "data": ["p"]})], ids=lambda x: x.name
)
def test_arms_differ_in_their_crops_or_weight_alone(study, lab: Lab) -> None:  # type: ignore[no-untyped-def]
    arms = {a.name: resolve(lab.config(a.settings, a.method, 0, 1)).as_dict() for a in study.arms(lab)}
    on_scenes = [c for name, c in arms.items() if not name.startswith("single")]
    for config in on_scenes:
        config.pop("crops", None)
        config.get("hcl", {}).pop("weight", None)
    assert all(config == on_scenes[0] for config in on_scenes)  # equal data, batches, epochs: equal steps
    assert any("single" in name for name in arms) == (lab is SHAPES and study is oac.STUDY)
    decided = study.claims if lab is SHAPES else study.claims[:1]
    assert {arm for c in decided for d in c.differences(lab) for arm, _ in d.cells} <= set(arms)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainedArm]:
    place, found = tmp_path_factory.mktemp("arms"), {}
    arms = {a.name: a for a in (*oac.arms(TINY), *hcl.arms(TINY))}
    for name in ("dilate", "λ = 0.1"):
        config = {**TINY.config(arms[name].settings, arms[name].method, 0, 1), "steps": 1}
        cuewise.pretrain(out=place / name, set=config)
        found[name] = TrainedArm(place / name, TINY)
    return found


@pytest.mark.slow
def test_map_is_that_of_a_probe_over_the_whole_set(trained: dict[str, TrainedArm]) -> None:
    arm = trained["dilate"]
    for name, quantity, train, test in (
        ("multilabel", "map", "scenes_train", "scenes"),
        ("single", "map/single", "single_train", "single"),
    ):
        sets = [open_data(list(TINY.sets[role])) for role in (train, test)]
        X, X_test = (embed_dataset(arm.model.encoder, d, workers=0, label=None).features for d in sets)
        y, y_test = (np.stack([d.facts(i).labels for i in range(len(d))]).astype(np.int8) for d in sets)
        p = MultiLabelProbe().fit(X, y).predict_proba(X_test)
        expected = mean_average_precision(p, y_test, "map", "p", resamples=0).value
        assert find_measure(name).take(arm)[quantity] == pytest.approx(expected, abs=1e-6)


def test_without_objects_there_is_no_map(trained: dict[str, TrainedArm]) -> None:
    lab = replace(
        TINY, sets={"scenes_train": ["shapes?n=20&size=32"], "scenes": ["shapes?n=20&size=32&seed=1"]}
    )
    arm = TrainedArm(trained["dilate"].folder, lab)
    assert find_measure("multilabel").take(arm) == {}
    assert find_measure("norms").take(arm) == {}


def test_norms_and_distances_by_hand(trained: dict[str, TrainedArm]) -> None:
    arm = trained["λ = 0.1"]
    space, encoder = space_of(arm.model), arm.model.encoder.eval()
    assert space.curvature == 0.05

    def vector(image: np.ndarray, box: np.ndarray | None) -> np.ndarray:
        height, width = image.shape[:2]
        left, top, right, bottom = (0, 0, width, height) if box is None else (int(v) for v in box)
        view = apply(image, ViewParams(Crop(top, left, bottom - top, right - left)), 32)
        with torch.no_grad():
            x = encoder(encoder.normalise(torch.from_numpy(view[None])))
        return space.vectors(x.numpy())

    data = open_data(list(TINY.sets["scenes"]))
    scenes, objects = [], []
    for i in range(len(data)):
        image = data.image(i)
        scenes.append(np.linalg.norm(vector(image, None)))
        objects += [np.linalg.norm(vector(image, box)) for box in data.facts(i).boxes.corners]  # type: ignore[union-attr]
    found = find_measure("norms").take(arm)
    assert found["norm/scene"] == pytest.approx(np.mean(scenes), rel=1e-4)
    assert found["norm/object"] == pytest.approx(np.mean(objects), rel=1e-4)
    assert found["norm/log_ratio"] == pytest.approx(np.log(np.mean(scenes) / np.mean(objects)), abs=1e-4)
    odd = open_data(list(TINY.sets["odd"]))
    distances, out = [], []
    for i in range(len(odd)):
        boxes, whole = odd.facts(i).boxes, vector(odd.image(i), None)
        assert boxes is not None
        distances += [space.distances(whole, vector(odd.image(i), box))[0] for box in boxes.corners]
        out += boxes.flags["out_of_context"].tolist()
    pairs = [a > b for a, x in zip(distances, out) if x for b, y in zip(distances, out) if not y]
    assert find_measure("context").take(arm)["auroc"] == pytest.approx(np.mean(pairs), abs=1e-3)
