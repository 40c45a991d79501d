"""The study of noisy labels: every arm is a configuration, arms of a seed share split and noise, what is measured is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import cuewise
from cuewise.config import resolve
from cuewise.data import open_data
from cuewise.studies import adf_labels
from cuewise.studies.labs import SHAPES
from cuewise.studies.measures import TrainedArm, find_measure
from cuewise.train.labels import source_of, with_labels
from cuewise.train.reload import load_method
from cuewise.views import center
from tests.studies.tiny import LAB


@pytest.mark.slow
def test_arms_of_a_seed_share_split_and_noise() -> None:
    arms = {a.name: resolve(SHAPES.config(a.settings, a.method, 3, 1)) for a in adf_labels.arms(SHAPES)}
    assert len(arms) == 10
    assert all(
        c.data == ["shapes:aligned?rho=1&n=800&classes=8&part=train&size=32&palette=one"]
        for c in arms.values()
    )
    data = open_data(arms["p = 0.6, gold 0.05"].data)
    found = {name: source_of(with_labels(c, data)) for name, c in arms.items()}
    plain = found["p = 0.6, gold 0.05"]
    assert plain is not None
    for other in (found["p = 0.6, gold 0.05, filtered"], found["p = 0.6, not corrected"]):
        assert other is not None
        assert np.array_equal(plain.labels, other.labels)
        assert np.array_equal(plain.trusted, other.trusted)
    assert (arms["p = 1, gold 0.05, filtered"].suppress or {})["kappa"] == 60.0
    assert arms["p = 1, gold 0.05, filtered"].views.blur_p == 0.0


@pytest.mark.slow
def test_measures(tmp_path: Path) -> None:
    lab = replace(LAB, base={**LAB.base, "optim": {"warmup_epochs": 1}})
    arms = {a.name: a for a in adf_labels.arms(lab)}
    for name in ("p = 0.6, gold 0.1", "p = 0.6, not corrected"):
        own = lab.config(arms[name].settings, "supervised", 0, 1)
        cuewise.pretrain(*lab.base["data"], out=tmp_path / name, set=own, batch_size=16)
        found = find_measure("error").take(TrainedArm(tmp_path / name, lab))
        method, data = load_method(tmp_path / name).eval(), open_data(list(lab.sets["clean"]))
        images = torch.from_numpy(np.stack([center(data.image(i), 32) for i in range(len(data))]))
        with torch.no_grad():
            logits = method.classifier(method.encoder(method.encoder.normalise(images)))  # type: ignore[operator]
        assert data.classes == open_data(lab.base["data"]).classes
        wrong = logits.argmax(1).numpy() != data.labels
        assert 0 < wrong.mean() < 1
        assert found["error"] == pytest.approx(wrong.mean())
        distance = find_measure("confusion").take(TrainedArm(tmp_path / name, lab))
        assert set(distance) == ({"confusion/error"} if "gold" in name else set())
