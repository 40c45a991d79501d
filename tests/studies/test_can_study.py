"""The studies of CAN: every arm can be trained, and what they measure is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import cuewise
from cuewise.config import resolve
from cuewise.encoders import load_encoder
from cuewise.probes.tunings import TUNINGS
from cuewise.studies import can, can_longtail
from cuewise.studies.labs import PHOTOGRAPHS, SHAPES, Lab
from cuewise.studies.measures import TrainedArm, find_measure
from tests.studies.tiny import LAB

pytestmark = pytest.mark.slow

TINY = replace(LAB, base={**LAB.base, "optim": {"warmup_epochs": 1}})


@pytest.mark.parametrize("study", [can.STUDY, can_longtail.STUDY], ids=lambda s: s.name)
@pytest.mark.parametrize(
    "lab", [SHAPES, replace(PHOTOGRAPHS, base={**PHOTOGRAPHS.base, "data": ["p"]})], ids=lambda x: x.name
)
def test_every_arm_is_a_configuration(study, lab: Lab) -> None:  # type: ignore[no-untyped-def]
    arms = {
        arm.name: resolve(lab.config(arm.settings, arm.method or lab.main, 0, 1)) for arm in study.arms(lab)
    }
    assert {"CAN", "MAE", "SimCLR-ViT"} <= set(arms)
    for config in arms.values():
        assert config.model == "cuewise/vit-tiny?patch=4&width=64"
        assert (config.optim.name, config.batch_size, config.optim.warmup_share) == ("adamw", 64, 0.1)
    trained = [c for name, c in arms.items() if name != can.UNTRAINED]
    assert {c.optim.lr for c in trained} == {4e-3}
    assert all(("longtail=100" in c.data[0]) == (study is can_longtail.STUDY) for c in trained)
    cells = {cell for claim in study.claims for d in claim.differences(lab) for cell in d.cells}
    assert {arm for arm, _ in cells} <= set(arms)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainedArm]:
    place = tmp_path_factory.mktemp("arms")
    chosen = {arm.name: arm for arm in can.arms(TINY) if arm.name in ("CAN", "SimCLR-ViT", "MAE")}
    for name, arm in chosen.items():
        own = {**TINY.config(arm.settings, arm.method, 0, 1), "steps": 1}
        cuewise.pretrain(out=place / name, set=own, model="cuewise/vit-tiny?width=64&depth=1")
    return {name: TrainedArm(place / name, TINY) for name in chosen}


def test_images_of_another_size_are_reconstructed_as_the_encoder_takes_them(
    trained: dict[str, TrainedArm],
) -> None:
    larger = replace(TINY, sets={**TINY.sets, "clean": ["shapes?n=16&size=48&part=test"]})
    found = find_measure("reconstruction").take(TrainedArm(trained["MAE"].folder, larger))
    assert found["reconstruction"] > 0


def test_the_untrained_arm_stays_as_it_began(tmp_path: Path) -> None:
    arm = next(arm for arm in can.arms(TINY) if arm.name == can.UNTRAINED)
    config = TINY.config(arm.settings, arm.method, 0, 1)
    cuewise.pretrain(out=tmp_path / "a", set=config)
    cuewise.pretrain(out=tmp_path / "b", set=config, epochs=2)
    one, two = (load_encoder(str(tmp_path / run)).backbone.state_dict() for run in "ab")
    assert max(float((one[key] - two[key]).abs().max()) for key in one) < 1e-29  # biases begin at 0


def test_measures(trained: dict[str, TrainedArm], monkeypatch: pytest.MonkeyPatch) -> None:
    tuning = replace(TUNINGS["vit"], batch_size=32, epochs=1)
    monkeypatch.setattr("cuewise.studies.measures.masked.TUNING", tuning)
    flops = {name: find_measure("cost").take(arm)["gflops"] for name, arm in trained.items()}
    assert 0 < flops["MAE"] < flops["CAN"]
    found = find_measure("reconstruction").take(trained["MAE"])
    assert found["reconstruction"] > 0
    assert 0.5 < found["reconstruction/ratio"] < 5
    assert find_measure("reconstruction").take(trained["SimCLR-ViT"]) == {}
    grey = TrainedArm(trained["MAE"].folder, replace(TINY, base={**TINY.base, "views": {"gray_p": 1.0}}))
    assert find_measure("reconstruction").take(grey) != found  # what training never showed is not asked
    for name in ("knn", "finetuned", "clean"):
        assert 0 <= find_measure(name).take(trained["CAN"])[name] <= 1


def test_the_arms_of_the_study_cost_less_than_simclr(tmp_path: Path) -> None:
    arms = {arm.name: arm for arm in can.arms(TINY)}
    flops = {}
    for name in ("CAN", "SimCLR-ViT"):
        config = TINY.config(arms[name].settings, arms[name].method, 0, 1)
        cuewise.pretrain(out=tmp_path / name, set=config, steps=1)
        flops[name] = find_measure("cost").take(TrainedArm(tmp_path / name, TINY))["gflops"]
    assert flops["CAN"] < flops["SimCLR-ViT"]
