"""cuewise cost: what is counted, against arithmetic; what is measured, against what must be so."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from cuewise import UserError, cost, pretrain
from cuewise.checks.method import Case, small_run
from cuewise.encoders.load import build
from cuewise.methods import Method, Setup, method, methods
from cuewise.methods.masking import Draws
from cuewise.train import cost as costs
from cuewise.train.cost import flops, made_up
from cuewise.train.pretrain import NEW, run_pretrain
from tests.methods.conftest import SMALL, TRANSFORMERS

WIDTH, DEPTH, PATCHES = 64, 2, 16


def block_products(tokens: int, width: int) -> int:
    """Multiplications of one block: query, key, value and output 4, the perceptron 8 width² per token; attention twice."""
    return tokens * 12 * width**2 + 2 * tokens**2 * width


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "SECONDS", 0.0)


def test_flops_of_a_transformer_are_the_arithmetic() -> None:
    found = cost(f"cuewise/vit-tiny?width={WIDTH}&depth={DEPTH}", size=16, batch_size=2)
    products = PATCHES * 48 * WIDTH + DEPTH * block_products(PATCHES, WIDTH)
    assert found["forward_flops"] == 2 * products
    # backward: twice the forward, less the gradient of the pixels, which nobody needs
    assert found["training_flops"] == 2 * (3 * products - PATCHES * 48 * WIDTH)
    assert found["parameters"] == 48 * WIDTH + WIDTH + DEPTH * (12 * WIDTH**2 + 13 * WIDTH) + 2 * WIDTH
    assert found["forward_images_per_s"] > found["training_images_per_s"] > 0
    assert found["training_peak_memory"] > found["forward_peak_memory"] > 4 * found["parameters"]


@pytest.mark.parametrize(
    "layer",
    [
        torch.nn.Conv2d(8, 12, 3, stride=2, padding=1, bias=False),
        torch.nn.Conv2d(8, 16, 3, groups=8, bias=False),
        torch.nn.Conv2d(8, 12, 3, groups=4, dilation=2, bias=False),
        torch.nn.ConvTranspose2d(8, 12, 3, stride=2, groups=4, bias=False),
    ],
    ids=["plain", "depthwise", "grouped", "transposed"],
)
def test_a_backward_pass_of_convolution_is_two_forward_passes(layer: torch.nn.Module) -> None:
    x = torch.randn(2, 8, 9, 9, requires_grad=True)
    with torch.no_grad():
        once = flops(lambda: layer(x))
    assert once > 0
    assert flops(lambda: layer(x).sum().backward()) == 3 * once
    assert flops(lambda: layer(x.detach()).sum().backward()) == 2 * once


def test_memory_is_counted_to_the_byte() -> None:
    def work() -> None:
        a = torch.zeros(1000)
        b = a + 1
        del a
        b + 1

    assert 8000 <= costs.peak(work, torch.device("cpu")) <= 8200


def test_the_profiler_is_quiet_and_errors_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    """torch's profiler writes to standard error past Python; what comes after it is shown, also after an error."""
    costs.peak(lambda: os.write(2, b"chatter"), torch.device("cpu"))
    with pytest.raises(ZeroDivisionError):
        costs.peak(lambda: 1 // 0, torch.device("cpu"))
    os.write(2, b"shown")
    assert capfd.readouterr().err == "shown"


def on_paper(name: str, **settings: object) -> Method:
    """ViT-L/16 at 224 pixels, without a number in it."""
    with torch.device("meta"):
        encoder = build("timm/vit_large_patch16_224", {"global_pool": "avg", "fc_norm": False}, size=224)
        kind = method(name)
        return kind(encoder, Setup(kind.Settings(**settings), size=224))


@pytest.mark.slow
def test_can_costs_0_583_of_simclr_on_vit_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim 39. Counted: the encoder on the visible tokens of two views and the decoder, against two whole views."""
    monkeypatch.setattr(Draws, "noise", lambda self, x, largest: (x.new_zeros(len(x)), torch.zeros_like(x)))
    monkeypatch.setattr(torch, "autocast", lambda *args, **options: nullcontext())
    counted = {}
    for name, m in (("can", on_paper("can")), ("simclr", on_paper("simclr", hidden=1024))):
        batch = made_up(m, 2, torch.device("cpu")).to(torch.device("meta"))
        with torch.no_grad():
            m.eval()
            counted[name] = flops(lambda m=m, batch=batch: m(batch)) / 2
    assert counted["can"] / counted["simclr"] == pytest.approx(0.583, abs=0.002)
    tokens, half = 197, 99
    encoder = 2 * 2 * (196 * 768 * 1024 + 24 * block_products(tokens, 1024))
    assert counted["simclr"] == pytest.approx(encoder, rel=1e-3)  # the projector is the rest
    visible = 2 * 2 * (196 * 768 * 1024 + 24 * block_products(half, 1024))
    assert visible / encoder == pytest.approx(0.495, abs=0.002)


@pytest.mark.slow
def test_a_run_is_counted_with_its_own_step(tmp_path: Path, folder: Path) -> None:
    run = tmp_path / "run"
    options = {"method": "can", "model": "cuewise/vit-tiny?width=64&depth=1", "size": 16, "batch_size": 16}
    pretrain(str(folder), out=run, steps=1, epochs=1, workers="0", **options)
    found, alone = cost(run, batch_size=4), cost(options["model"], size=16, batch_size=4)
    assert found["method"] == "can"
    assert found["forward_flops"] == alone["forward_flops"]
    assert found["parameters"] == alone["parameters"]
    assert found["training_flops"] > alone["training_flops"]
    assert (run / "reconstructions.png").exists()
    with pytest.raises(UserError, match="--size belongs to a model"):
        cost(run, size=32)
    with pytest.raises(UserError, match="--batch-size 1"):
        cost(run, batch_size=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(methods()))
def test_a_run_of_every_method_has_a_cost(name: str, tmp_path: Path) -> None:
    case = Case(methods()[name], SMALL[name], name in TRANSFORMERS)
    run_pretrain([small_run(case), {"steps": 1}], tmp_path / "run", NEW)
    found = cost(tmp_path / "run", batch_size=2)
    assert found["method"] == name
    assert found["training_flops"] > found["forward_flops"] > 0
