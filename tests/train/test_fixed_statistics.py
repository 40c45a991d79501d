"""supervised.statistics=fixed: the batch norm of an encoder that brings weights keeps its statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from cuewise import UserError, pretrain
from cuewise.encoders.batch_norm import fix_statistics
from cuewise.train.reload import load_method

DATA = "shapes:aligned?n=64&size=32"
SMALL: dict[str, Any] = {
    "method": "supervised",
    "model": "cuewise/resnet-tiny?width=8",
    "size": 32,
    "batch_size": 16,
    "epochs": 1,
    "workers": 0,
}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("first") / "run"
    pretrain(DATA, out=str(out), **SMALL)
    return out


def test_fixed_statistics_normalise_as_in_evaluation() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    x = torch.randn(8, 3, 6, 6)
    network(x)
    with torch.no_grad():
        wanted = network.eval()(x)
        fix_statistics(network.train())
        assert torch.equal(network(x), wanted)
    assert network[0].training
    assert not network[1].training


@pytest.mark.slow
def test_weights_learn_and_statistics_stay(first: Path, tmp_path: Path) -> None:
    kept, moved = tmp_path / "fixed", tmp_path / "batch"
    start = {**SMALL, "model": str(first)}
    pretrain(DATA, out=str(kept), set=["supervised.statistics=fixed"], **start)
    pretrain(DATA, out=str(moved), **start)
    before, fixed, batch = (load_file(f / "encoder.safetensors") for f in (first, kept, moved))
    statistics = [k for k in before if "running_" in k]
    assert statistics
    assert all(torch.equal(fixed[k], before[k]) for k in statistics)
    assert not any(torch.equal(batch[k], before[k]) for k in statistics)
    assert all(not torch.equal(fixed[k], before[k]) for k in before if k.endswith("conv1.weight"))
    # the run that is read back for evaluation answers as it did in training, whatever the batch
    method = load_method(kept)
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(4, 3, 32, 32)).astype(np.float32))
    with torch.no_grad():
        assert torch.equal(method.train().encoder(x), method.eval().encoder(x))


def test_random_weights_have_no_statistics_to_keep(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"supervised\.statistics=fixed is for a model that brings weights"):
        pretrain(DATA, out=str(tmp_path / "run"), set=["supervised.statistics=fixed"], **SMALL)
    with pytest.raises(UserError, match=r"supervised\.statistics 'shared': batch or fixed"):
        pretrain(DATA, out=str(tmp_path / "run"), set=["supervised.statistics=shared"], **SMALL)
