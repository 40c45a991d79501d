"""Activation checkpointing: the same numbers to the bit, less memory."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from cuewise import pretrain
from cuewise.encoders import load_encoder
from cuewise.encoders.depth import blocks
from cuewise.encoders.recompute import recompute_blocks
from cuewise.errors import UserError
from cuewise.train import pretrain as module

MODELS = [
    "cuewise/resnet-tiny?width=8",
    "cuewise/vit-tiny",
    "cuewise/wrn40-2",
    "torchvision/resnet18",
    "timm/resnet10t",
]


def stepped(backbone: nn.Module, x: torch.Tensor) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    torch.manual_seed(0)  # dropout
    backbone.train()
    out = backbone(x)
    out.square().mean().backward()
    return {n: p.grad for n, p in backbone.named_parameters() if p.grad is not None}, backbone.state_dict()


@pytest.mark.parametrize("arch", MODELS)
def test_gradients_and_running_statistics_are_the_same_to_the_bit(arch: str) -> None:
    plain = load_encoder(arch, size=32).backbone
    twin = copy.deepcopy(plain)
    assert recompute_blocks(twin, arch) > 1
    twin = copy.deepcopy(twin)  # a copy recomputes its own blocks, not those it was copied from
    x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    (want, state), (found, twin_state) = stepped(plain, x), stepped(twin, x)
    assert found.keys() == want.keys()
    assert all(torch.equal(found[k], want[k]) for k in want)
    assert list(twin_state) == list(state)
    assert all(
        torch.equal(twin_state[k], state[k]) for k in state
    )  # a second pass moves no running statistics


def kept(backbone: nn.Module, x: torch.Tensor) -> int:
    """Bytes that the graph holds for the gradient."""
    found: dict[int, int] = {}

    def note(t: torch.Tensor) -> torch.Tensor:
        found[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        out = backbone(x)
    del out
    return sum(found.values()) - sum(p.untyped_storage().nbytes() for p in backbone.parameters())


def test_less_is_kept() -> None:
    backbone = load_encoder("torchvision/resnet18", size=64).backbone.train()
    x = torch.randn(8, 3, 64, 64)
    before = kept(backbone, x)
    recompute_blocks(backbone, "resnet18")
    assert kept(backbone, x) < before / 2


def test_a_network_without_blocks_is_refused() -> None:
    with pytest.raises(UserError, match="no blocks"):
        recompute_blocks(nn.Linear(3, 2), "mine:net")


@pytest.mark.parametrize("method", ["moco", "cmc"])  # cmc trains two networks that it makes of the one given
def test_a_run_is_the_same_run(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common = {"model": "cuewise/resnet-tiny?width=8", "size": 32, "batch_size": 16, "workers": 0, "steps": 3}
    common |= {"method": method}
    states, counts = [], []
    monkeypatch.setattr(
        module, "recompute_blocks", lambda *given: counts.append(recompute_blocks(*given)) or counts[-1]
    )
    for name, more in (("plain", []), ("less", ["loop.checkpointing=true"])):
        settings = [*(["moco.queue=32", "moco.dim=16"] if method == "moco" else []), *more]
        pretrain("shapes:aligned?n=64&size=32", out=str(tmp_path / name), set=settings, **common)
        states.append((tmp_path / name / "encoder.safetensors").read_bytes())
    assert states[0] == states[1]
    assert counts == [len(blocks(load_encoder(common["model"]).backbone)) * (2 if method == "cmc" else 1)]


def test_not_together_with_compilation(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="do not go together"):
        pretrain("shapes?n=64", out=tmp_path / "run", set=["loop.compile=true", "loop.checkpointing=true"])
