"""Weights that fit only in part are refused, not loaded in part."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch
import torchvision

from cuewise import UserError, export
from cuewise.encoders import load_encoder
from cuewise.encoders.load import load_whole
from cuewise.encoders.weights import further_blocks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("load", [load_encoder, load_whole])
def test_weights_of_a_deeper_network(load, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    torch.save(timm.create_model("resnet34").state_dict(), tmp_path / "r34.pth")
    with pytest.raises(UserError, match=r"deeper network than timm/resnet18: it also has layer1\.2\."):
        load(f"timm/resnet18:{tmp_path / 'r34.pth'}")


@pytest.mark.parametrize("name", ["alexnet", "vgg11", "mobilenet_v3_small", "resnet18"])
def test_a_classifier_is_no_further_block(name: str, tmp_path: Path) -> None:
    torch.save(getattr(torchvision.models, name)(num_classes=4).state_dict(), tmp_path / "w.pth")
    load_encoder(f"torchvision/{name}:{tmp_path / 'w.pth'}", size=64)


def test_rows_of_blocks() -> None:
    ours = ["blocks.0.attn.weight", "blocks.1.attn.weight", "norm.weight"]
    more = ["blocks.2.attn.weight", "head.mlp.0.linear.weight", "blocks.1.extra.weight", "queue"]
    assert further_blocks(ours, [*ours, *more]) == ["blocks.2.attn.weight"]


def test_a_distilled_model_has_no_single_classifier(tmp_path: Path) -> None:
    options = {"img_size": 32, "num_classes": 3}
    torch.save(
        timm.create_model("deit_tiny_distilled_patch16_224", **options).state_dict(), tmp_path / "d.pth"
    )
    encoder = load_encoder(f"timm/deit_tiny_distilled_patch16_224:{tmp_path / 'd.pth'}", size=32)
    assert encoder.head is None
    assert encoder(torch.zeros(2, 3, 32, 32)).shape == (2, encoder.dim)


def test_an_export_of_random_weights_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export("cuewise/resnet-tiny?width=8", out=tmp_path / "e.safetensors", format="safetensors")
    assert "RANDOM WEIGHTS" in capsys.readouterr().err
