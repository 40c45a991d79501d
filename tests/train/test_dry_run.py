"""pretrain --dry-run: the same checks and numbers as a run, and nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import cuewise
from cuewise import UserError
from cuewise.results import settings_text
from cuewise.train import cost, dry_run

SMALL: dict[str, Any] = {
    "model": "cuewise/resnet-tiny?width=8",
    "size": 16,
    "batch_size": 16,
    "epochs": 2,
    "workers": 0,
    "set": {"moco": {"queue": 32}},
}
MODEL_KEYS = {"parameters", "training_flops", "training_images_per_s", "training_peak_memory"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cost, "SECONDS", 0.01)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.slow
def test_it_says_what_the_run_will_do_and_leaves_none(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    found = cuewise.pretrain(folder, out=out, negatives="patch", dry_run=True, **SMALL)
    assert not out.exists()
    assert found["steps"] == 2 * (48 // 16)
    assert found["config"]["negatives"] == ["patch"]
    assert found["config"]["moco"]["queue"] == 32
    assert found.keys() >= MODEL_KEYS
    assert found["seconds"] > 0
    assert json.loads(json.dumps(found)) == found
    assert settings_text(found["config"]) in repr(found)
    cuewise.pretrain(folder, out=out, negatives="patch", steps=1, **SMALL)
    with Image.open(found["picture"]) as shown, Image.open(out / "views.png") as real:
        np.testing.assert_array_equal(np.asarray(shown), np.asarray(real))  # the views of the run itself
    saved = (out / "config.yaml").read_text()
    assert saved.replace("steps: 1\n", "steps: null\n") == settings_text(found["config"])
    measured = cuewise.cost(out, batch_size=16)
    assert found["parameters"] == measured["parameters"]
    assert found["training_flops"] == measured["training_flops"]
    assert found["training_peak_memory"] == pytest.approx(measured["training_peak_memory"], rel=0.35)


@pytest.mark.slow
def test_it_refuses_what_the_run_would_refuse(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    with pytest.raises(UserError, match="is not empty"):
        cuewise.pretrain(folder, out=tmp_path / "full", dry_run=True, **SMALL)
    with pytest.raises(UserError, match="must be a multiple of 3"):
        cuewise.pretrain(folder, out=tmp_path / "run", devices="cpu:3", dry_run=True, **SMALL)
    with pytest.raises(UserError, match="no method"):
        cuewise.pretrain(folder, out=tmp_path / "run", method="moko", dry_run=True, **SMALL)
    assert [p.name for p in tmp_path.iterdir()] == ["full"]


def test_memory_is_that_of_the_whole_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two measured sizes give the part that grows with the batch and the part that does not."""
    assert dry_run.parts_of(256) == [8, 16]
    assert dry_run.parts_of(50) == [5, 10]
    assert dry_run.parts_of(12) == [6, 12]
    assert dry_run.parts_of(17) == [17]
    assert dry_run.parts_of(34) == [2]
    assert dry_run.seconds_per_image(0.5, 0.2, "cpu") == pytest.approx(0.7)
    assert dry_run.seconds_per_image(0.5, 0.2, "cuda") == 0.5
    weights = [torch.nn.Parameter(torch.zeros(10))]
    optimizer = torch.optim.SGD(weights, lr=0.1, momentum=0.9)
    weights[0].grad = torch.ones(10)
    optimizer.step()
    assert dry_run.state_bytes(optimizer) == 40
