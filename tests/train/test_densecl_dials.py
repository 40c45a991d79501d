"""DenseCL composes with the dials of other files: filters, crops of objects, negatives in its global branch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from cuewise import UserError
from cuewise.config import complete, resolve
from cuewise.data import open_data
from cuewise.train.fabric import Fabric
from cuewise.train.loop import optimise
from cuewise.train.pretrain import build

pytestmark = pytest.mark.slow

SCENES = "shapes:scenes?n=16&size=48"
DIALS: dict[str, dict[str, Any]] = {
    "plain": {},
    "suppress": {"suppress": {"name": "anisotropic", "pairing": "image"}},
    "crops": {"crops": {"name": "object"}},
    "negatives": {"negatives": ["patch"], "alpha": [2.0], "patch_size": "3:6"},
}
DIALS["all"] = {k: v for own in DIALS.values() for k, v in own.items()}


def step(dials: dict[str, Any], **settings: Any) -> tuple[dict[str, float], Any]:
    """One step of DenseCL: its loss and both branches'."""
    base = {
        "data": [SCENES],
        "method": "densecl",
        "model": "cuewise/resnet-tiny?width=8",
        "size": 32,
        "batch_size": 8,
        "epochs": 1,
        "workers": "0",
        "densecl": {"queue": 32, "dim": 16, **settings},
    }
    data = open_data([SCENES])
    config = complete(resolve(base, dials), len(data))
    run = build(config, Path(), data, Fabric(accelerator="cpu", devices=1))
    run.method.train()
    batch = next(iter(run.loader.batches()))
    found = optimise(run, batch)
    extra = {k: float(v) for k, v in found.extra.items()}
    return {"loss": float(found.loss), **extra}, batch


def test_every_dial_acts_on_densecl_alone_and_together() -> None:
    found = {name: step(dials) for name, dials in DIALS.items()}
    losses = {name: scores["loss"] for name, (scores, _) in found.items()}
    assert len({round(v, 6) for v in losses.values()}) == len(DIALS)
    assert all(np.isfinite(v) for v in losses.values())
    assert any(name.endswith(".region") for name in found["all"][1].facts)
    assert any("patch" in role for role in found["all"][1].views)


def test_negatives_join_the_global_branch_alone() -> None:
    plain, with_negatives = (step(DIALS[name])[0] for name in ("plain", "negatives"))
    assert with_negatives["loss_dense"] == pytest.approx(plain["loss_dense"], rel=1e-5)
    assert with_negatives["loss_global"] > plain["loss_global"]  # another term in the denominator


def test_what_was_asked_for_is_in_the_configuration() -> None:
    config = resolve({"method": "densecl"}, DIALS["all"])
    written = yaml.safe_load(config.to_yaml())
    assert written["suppress"]["pairing"] == "image"
    assert written["crops"]["name"] == "object"
    with pytest.raises(UserError, match="no setting"):
        resolve({"method": "densecl", "densecl": {"lambda": 1}})
