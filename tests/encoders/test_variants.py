"""ResNets with another stem or width, and pairs of encoders in other colour spaces."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn

from cuewise import UserError, export
from cuewise.encoders import load_encoder
from cuewise.encoders.lab import SPACES, LabPair, rgb_to_lab
from cuewise.encoders.load import save_encoder


@pytest.mark.slow
def test_a_3x3_stem_keeps_small_images_large(tmp_path: Path) -> None:
    encoder = load_encoder("torchvision/resnet18?stem=3x3", size=32)
    conv = encoder.backbone.conv1
    assert isinstance(conv, nn.Conv2d)
    assert (conv.kernel_size, conv.stride, conv.padding) == ((3, 3), (1, 1), (1, 1))
    x = torch.randn(1, 3, 32, 32)
    assert encoder.features(x).map.shape == (1, 512, 4, 4)  # 1×1 with the 7×7 stem and pooling
    std = (2 / (64 * 9)) ** 0.5
    assert conv.weight.std().item() == pytest.approx(std, rel=0.1)  # torchvision's own initialisation
    save_encoder(encoder, tmp_path / "encoder.safetensors")
    torch.testing.assert_close(load_encoder(str(tmp_path / "encoder.safetensors"))(x), encoder(x))
    with pytest.raises(UserError, match="stem"):
        export(str(tmp_path / "encoder.safetensors"), format="torchvision", out=str(tmp_path / "t.pth"))
    plain = load_encoder("torchvision/resnet18?stem=7x7", size=32)
    assert list(plain.backbone.state_dict()) == [
        k for k in torchvision.models.resnet18().state_dict() if not k.startswith("fc.")
    ]


@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
@pytest.mark.slow
def test_half_the_width(name: str) -> None:
    half = load_encoder(f"torchvision/{name}?width=0.5&stem=3x3", size=32)
    whole = torchvision.models.get_model(name, weights=None)
    assert half.dim == (256 if name == "resnet18" else 1024)
    ours = half.backbone.state_dict()
    theirs = {k: v for k, v in whole.state_dict().items() if not k.startswith("fc.")}
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        if value.ndim == 4 and key != "conv1.weight":
            assert [2 * n for n in ours[key].shape[:2]] == list(value.shape[:2]), key
    assert ours["conv1.weight"].shape[0] == 32


@pytest.mark.slow
def test_whole_width_equals_torchvision() -> None:
    ours = load_encoder("torchvision/resnet18?width=1", size=32)
    whole = torchvision.models.resnet18().eval()
    whole.fc = nn.Identity()
    whole.load_state_dict(ours.backbone.state_dict())
    x = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(ours(x), whole(x))


CORNERS = torch.tensor([[r, g, b] for r in (0.0, 1.0) for g in (0.0, 1.0) for b in (0.0, 1.0)])


@pytest.mark.parametrize("space", ["ycbcr", "ydbdr", "lab"])
def test_spaces_fill_their_range(space: str) -> None:
    encoder = load_encoder(f"cuewise/lab?of=cuewise/resnet-tiny&width=8&space={space}", size=16)
    pair = encoder.backbone
    assert isinstance(pair, LabPair)
    rgb = CORNERS.T.reshape(1, 3, 2, 4)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (pair.mean, pair.std))
    L, ab = pair.split((rgb - mean) / std)
    for channel in (L[:, 0], ab[:, 0], ab[:, 1]):
        assert channel.min().item() == pytest.approx(-1, abs=2e-3)
        assert channel.max().item() == pytest.approx(1, abs=2e-3)
    assert ab[:, 2].abs().max() == 0
    grey = torch.full((1, 3, 2, 2), 0.4)
    shade, none = pair.split((grey - mean) / std)
    middle = torch.tensor(SPACES[space].middle[1:]) / torch.tensor(SPACES[space].half[1:])
    torch.testing.assert_close(none[0, :2, 0, 0], -middle, atol=1e-3, rtol=0)
    assert torch.equal(shade[:, 0], shade[:, 2])


def test_an_unknown_space() -> None:
    with pytest.raises(UserError, match=r"no space 'hsv'.*ycbcr"):
        load_encoder("cuewise/lab?of=cuewise/resnet-tiny&space=hsv")


def test_lab_is_exact_under_autocast() -> None:
    x = torch.rand(2, 3, 8, 8)
    expected = rgb_to_lab(x)
    pair = load_encoder("cuewise/lab?of=cuewise/resnet-tiny&width=8", size=16).backbone
    assert isinstance(pair, LabPair)
    inputs = pair.split(x)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(rgb_to_lab(x), expected, rtol=0, atol=0)
        for ours, theirs in zip(pair.split(x), inputs):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
