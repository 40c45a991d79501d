"""Modules from Python: their classifier is found and taken off, the user's own module stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import torchvision
from torch import Tensor, nn

from cuewise import embed
from cuewise.encoders import load_encoder

NAMES = (
    "fc",
    "classifier",
    "head",
    "heads",
    "logits",
    "last_linear",
    "linear",
)  # that people give a classifier


class Net(nn.Module):
    def __init__(self, last: str, outputs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 4, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.last = last
        self.add_module(last, nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, outputs)))

    def forward(self, x: Tensor) -> Tensor:
        return self.get_submodule(self.last)(self.body(x))


@pytest.mark.parametrize(
    ("model", "dim", "classes"),
    [
        (torchvision.models.resnet18, 512, 1000),
        (lambda: timm.create_model("resnet10t"), 512, 1000),
        *((lambda name=name: Net(name, 7), 5, 7) for name in NAMES),
        (lambda: Net("tail", 1000), 5, 1000),
    ],
)
def test_a_classifier_is_taken_off(model, dim: int, classes: int, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    torch.manual_seed(0)
    module = model().eval()
    before = list(module.state_dict())
    encoder = load_encoder(module, size=32, head=True)
    x = torch.randn(2, 3, 32, 32)
    expected = module(x)
    assert expected.shape == (2, classes)  # the user's module answers as before
    assert list(module.state_dict()) == before
    assert encoder.dim == dim
    assert encoder(x).shape == (2, dim)
    torch.testing.assert_close(encoder.logits(x), expected)
    if not hasattr(module, "forward_head"):
        assert f"({classes} outputs)" in capsys.readouterr().err
    assert next(encoder.backbone.parameters()) is next(module.parameters())
    assert load_encoder(module, size=32).head is None
    assert encoder.card.weights == {"code": type(module).__name__}


def test_a_projection_is_kept_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    encoder = load_encoder(Net("projection", 9), size=32)
    assert encoder.dim == 9
    assert "'projection.2' (9 numbers), which is taken for features" in capsys.readouterr().err


@pytest.mark.slow
def test_features_of_a_module_and_of_a_factory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    module = torchvision.models.resnet18()
    result = embed(module, str(folder), out=str(tmp_path / "e.npz"), size=32)  # type: ignore[arg-type]
    assert result["dim"] == 512
    (tmp_path / "models_of_mine.py").write_text("from torchvision.models import resnet18 as make\n")
    monkeypatch.chdir(tmp_path)
    result = embed("models_of_mine:make", str(folder), out=str(tmp_path / "f.npz"), size=32)
    assert (result["dim"], result["weights"]) == (512, {"code": "models_of_mine:make"})
    with np.load(tmp_path / "f.npz") as file:
        assert file["features"].shape == (48, 512)


def test_timm_modules_bring_mean_and_std() -> None:
    card = load_encoder(timm.create_model("vit_tiny_patch16_224", depth=1)).card
    assert (card.mean, card.size, card.pool) == ((0.5, 0.5, 0.5), 224, "token")


@pytest.mark.slow
def test_an_audit_of_a_module(tmp_path: Path) -> None:
    from cuewise import audit

    torch.manual_seed(0)
    data = {"train": ["shapes:aligned?n=60&size=32"], "test": ["shapes:aligned?n=40&size=32&part=test"]}
    audit(Net("fc", 10), out=str(tmp_path / "a"), only="accuracy", size=32, **data)  # type: ignore[arg-type]
    document = json.loads((tmp_path / "a" / "audit.json").read_text())
    assert document["model"]["spec"] == "Net"
    assert document["model"]["weights"] == {"code": "Net"}
    assert document["scores"]
