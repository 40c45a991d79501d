"""The study of transfer: equal steps in all arms, and what it measures is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import cuewise
from cuewise.config import merge, resolve
from cuewise.studies import transfer
from cuewise.studies.labs import SHAPES
from cuewise.studies.measures import TrainedArm, find_measure
from cuewise.studies.measures import downstream as measured
from tests.studies.tiny import LAB

SCENES = "shapes:scenes?n=16&size=32"
TINY = replace(
    LAB, scenes={}, sets={**LAB.sets, "objects_train": [SCENES], "objects": [f"{SCENES}&part=test"]}
)


@pytest.mark.slow
def test_all_arms_make_the_same_steps_on_the_same_images() -> None:
    arms = {a.name: resolve(SHAPES.config(a.settings, a.method, 0, 6)) for a in transfer.arms(SHAPES)}
    assert set(arms) == {
        "MoCo",
        "MoCo smooth",
        "DenseCL",
        "DenseCL smooth",
        "object crops",
        "HCL",
        "patch",
        "supervised",
        "random",
    }
    assert {(tuple(c.data), c.batch_size, c.epochs) for c in arms.values()} == {
        ((SHAPES.scenes["data"][0],), 64, 6)
    }
    assert arms["random"].optim.lr == 1e-12
    cells = {cell for claim in transfer.STUDY.claims for d in claim.differences(SHAPES) for cell in d.cells}
    assert {arm for arm, _ in cells} <= set(arms)


@pytest.mark.slow
def test_arms_train_and_measures_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "EPOCHS", 1)
    monkeypatch.setattr(measured, "SIZE", 32)
    for arm in transfer.arms(TINY):
        own = {"data": [SCENES], "batch_size": 8, "steps": 1, arm.method: {}}
        if arm.method in ("moco", "densecl", "hcl"):
            own[arm.method] = {"queue": 64}
        config = merge(TINY.config(arm.settings, arm.method, 0, 1), own)
        cuewise.pretrain(out=tmp_path / arm.name, set=config)
    trained = TrainedArm(tmp_path / "MoCo", TINY)
    found = {k: v for n in ("detect", "segment") for k, v in find_measure(n).take(trained).items()}
    assert set(found) == {"detect/ap50", "detect/ap", "segment/miou"}
    assert all(0 <= v <= 1 for v in found.values())
