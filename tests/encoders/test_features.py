"""One pass gives the feature map and the pooled features; patch tokens of transformers; input sizes and positions."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import timm
import torch
from torch import Tensor, nn

from cuewise import UserError, export
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.load import save_encoder
from cuewise.encoders.vit_tiny import sine_cosine

NETWORKS = [
    ("cuewise/resnet-tiny?width=8", 32, (64, 4, 4)),
    ("cuewise/vit-tiny?depth=1", 32, (192, 8, 8)),
    ("cuewise/lab?of=cuewise/resnet-tiny&width=8", 32, (128, 4, 4)),
    ("cuewise/lab?of=torchvision/resnet18", 32, (1024, 1, 1)),
    ("torchvision/resnet18", 32, (512, 1, 1)),  # 1×1 is still the last map
    ("torchvision/resnet18", 64, (512, 2, 2)),
    ("torchvision/mobilenet_v3_small", 64, (576, 2, 2)),
    ("torchvision/vit_b_16", 64, (768, 4, 4)),
    ("timm/resnet10t", 64, (512, 2, 2)),
    ("timm/vit_tiny_patch16_224", 64, (192, 4, 4)),
    ("timm/swin_tiny_patch4_window7_224", 64, (768, 2, 2)),
]


def passes(encoder: Encoder) -> list[int]:
    """Counts forward passes by the calls of the first convolution."""
    calls: list[int] = []
    first = next(m for m in encoder.modules() if isinstance(m, nn.Conv2d))
    first.register_forward_hook(lambda *_: calls.append(1))
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "size", "shape"), NETWORKS, ids=[f"{s}-{n}" for s, n, _ in NETWORKS])
def test_one_pass_gives_map_and_pooled(spec: str, size: int, shape: tuple[int, int, int]) -> None:
    encoder = load_encoder(spec, size=size)
    assert encoder.map_dim == shape[0]
    x = torch.randn(2, 3, size, size)
    with torch.no_grad():
        expected = encoder(x)
        calls = passes(encoder)
        found = encoder.features(x)
    assert len(calls) == 1
    assert tuple(found.map.shape[1:]) == shape
    torch.testing.assert_close(found.pooled, expected, rtol=0, atol=0)
    if shape[1] > 1 and "mobilenet" not in spec and "vit_" not in spec:  # those have layers after pooling
        places = found.map.mean((2, 3))
        torch.testing.assert_close(after_norm(encoder, places), expected, rtol=1e-4, atol=1e-5)


def after_norm(encoder: Encoder, x: Tensor) -> Tensor:
    norm = getattr(encoder.backbone, "fc_norm", None)
    return x if norm is None else norm(x)


@pytest.mark.slow
def test_map_and_pooled_carry_gradients_in_bf16_and_in_copies() -> None:
    encoder = load_encoder("torchvision/resnet18", size=32).train()
    encoder.features(torch.randn(2, 3, 32, 32))  # the module that gives the map is known before the copy
    twin = copy.deepcopy(encoder)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        assert twin.features(torch.randn(4, 3, 64, 64)).map.dtype == torch.bfloat16
    found = twin.features(torch.randn(4, 3, 64, 64))
    (found.map.float().square().mean() + found.pooled.float().square().mean()).backward()
    assert twin.backbone.conv1.weight.grad.abs().sum() > 0  # type: ignore[union-attr]
    assert encoder.backbone.conv1.weight.grad is None
    assert twin.training
    assert not any(m._forward_hooks for m in twin.modules())


def test_a_model_without_a_map_says_so() -> None:
    encoder = load_encoder(nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 5), nn.ReLU()), size=16)
    with pytest.raises(UserError, match="pooled features only"):
        encoder.features(torch.zeros(1, 3, 16, 16))


TRANSFORMERS = ["cuewise/vit-tiny", "timm/vit_tiny_patch16_224?global_pool=avg&depth=2"]


@pytest.mark.parametrize("spec", TRANSFORMERS)
def test_tokens(spec: str) -> None:
    encoder = load_encoder(spec, size=64)
    n = encoder.grid[0] * encoder.grid[1]
    assert encoder.grid == (64 // encoder.patch,) * 2
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        every = encoder.tokens(x)
        assert every.shape == (2, n, 192)
        torch.testing.assert_close(encoder.pool(every), encoder(x), rtol=1e-4, atol=1e-5)
        order = torch.stack([torch.randperm(n), torch.randperm(n)])
        shuffled = encoder.tokens(x, order)  # attention has no order: positions were added before
        expected = torch.stack([every[0][order[0]], every[1][order[1]]])
        torch.testing.assert_close(shuffled, expected, rtol=1e-3, atol=1e-4)
        keep = order[:, : n // 4]
        seen: list[int] = []
        encoder.backbone.blocks[0].register_forward_hook(lambda _m, t, _out: seen.append(t[0].shape[1]))  # type: ignore[index,union-attr]
        some = encoder.tokens(x, keep)
        hidden = x.clone()
        hidden_place = int(order[0, -1])  # a patch of the first image that is not kept
        row, column = divmod(hidden_place, encoder.grid[1])
        p = encoder.patch
        hidden[0, :, row * p : (row + 1) * p, column * p : (column + 1) * p] = 9.0
        torch.testing.assert_close(encoder.tokens(hidden, keep), some)
    prefix = encoder.backbone.num_prefix_tokens
    assert seen[0] == n // 4 + prefix  # type: ignore[operator]
    assert some.shape == (2, n // 4, 192)


def test_tokens_where_there_are_none() -> None:
    encoder = load_encoder("cuewise/resnet-tiny?width=8")
    with pytest.raises(UserError, match="no patch tokens"):
        encoder.tokens(torch.zeros(1, 3, 32, 32))
    vit = load_encoder("timm/vit_tiny_patch16_224?depth=1", size=32)
    tokens = vit.tokens(torch.zeros(1, 3, 32, 32))
    with pytest.raises(UserError, match="class token"):
        vit.pool(tokens)


def test_size_reaches_models_of_one_size(tmp_path: Path) -> None:
    large = load_encoder("timm/vit_tiny_patch16_224?depth=1")
    assert (large.card.size, large.grid) == (224, (14, 14))
    torch.save(large.backbone.state_dict(), tmp_path / "w.pth")
    small = load_encoder(f"timm/vit_tiny_patch16_224?depth=1:{tmp_path / 'w.pth'}", size=96)
    assert (small.card.size, small.grid) == (96, (6, 6))
    theirs = timm.create_model("vit_tiny_patch16_224", depth=1, num_classes=0)
    theirs.load_state_dict(large.backbone.state_dict())
    theirs.set_input_size(img_size=96)
    x = torch.randn(1, 3, 96, 96)
    torch.testing.assert_close(small(x), theirs.eval()(x))


def test_vit_tiny(tmp_path: Path) -> None:
    encoder = load_encoder("cuewise/vit-tiny?patch=8", size=64)
    net = encoder.backbone
    assert (encoder.dim, len(net.blocks), net.blocks[0].attn.num_heads, encoder.grid) == (192, 4, 3, (8, 8))  # type: ignore[index,union-attr,arg-type]
    assert encoder.card.pool == "avg"
    assert "pos_embed" not in dict(net.named_parameters())
    assert "pos_embed" in net.state_dict()
    place = sine_cosine(8, 192)[0].unflatten(0, (8, 8))
    torch.testing.assert_close(place[3, 5, :96], place[3, 1, :96])  # the first half knows the row alone
    torch.testing.assert_close(place[3, 5, 96:], place[0, 5, 96:])
    assert torch.pdist(place.flatten(0, 1)).min() > 0.1
    save_encoder(encoder, tmp_path / "encoder.safetensors")
    result = export(str(tmp_path / "encoder.safetensors"), format="timm", out=str(tmp_path / "t.pth"))
    line = result["load"].partition(".load_state_dict")[0]
    model = eval(line, {"timm": timm})
    model.load_state_dict(torch.load(tmp_path / "t.pth", weights_only=True))
    x = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(model.eval()(x), encoder(x))
    with pytest.raises(UserError, match="a multiple of patch 8"):
        load_encoder("cuewise/vit-tiny?patch=8", size=60)


def test_the_card_records_the_pooling(tmp_path: Path) -> None:
    encoder = load_encoder("timm/vit_tiny_patch16_224?depth=1&global_pool=avg", size=32)
    assert encoder.card.pool == "avg"
    assert load_encoder("timm/vit_tiny_patch16_224?depth=1", size=32).card.pool == "token"
    assert load_encoder("timm/resnet10t", size=32).card.pool == "avg"
    file = tmp_path / "encoder.safetensors"
    save_encoder(encoder, file)
    card = (tmp_path / "encoder.json").read_text()
    (tmp_path / "encoder.json").write_text(card.replace("&global_pool=avg", ""))
    again = load_encoder(str(file))
    x = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(again(x), encoder(x))
    assert again.card.pool == "avg"
    result = export(str(file), format="timm", out=str(tmp_path / "t.pth"))
    model = eval(result["load"].partition(".load_state_dict")[0], {"timm": timm})
    model.load_state_dict(torch.load(tmp_path / "t.pth", weights_only=True))
    torch.testing.assert_close(model.eval()(x), encoder(x))
