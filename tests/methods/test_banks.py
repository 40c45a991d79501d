"""Methods with a memory bank (InsDis, CMC) and InfoMin: their equations, their traps, and what their runs leave behind."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch

from cuewise import UserError, export, pretrain
from cuewise.encoders import load_encoder
from cuewise.encoders.lab import rgb_to_lab
from cuewise.methods import SingleProcess
from cuewise.methods.bank import Bank, BankSettings
from cuewise.methods.infomin import tiles
from cuewise.objectives.bank_nce import bank_nce, log_partition
from cuewise.objectives.nce import extended_nce
from cuewise.views import RAND_AUGMENT, augmentation
from cuewise.views.rand_augment import OPERATIONS, apply, draw
from tests.methods.conftest import small_batch, small_method

TAU, N = 0.07, 40


def loop_nce(s_p: np.ndarray, s_n: np.ndarray, z: float) -> float:
    """Eq. 6 and 7 of Wu et al., one image and one noise sample at a time."""
    m, total = s_n.shape[1], 0.0
    for own, noise in zip(s_p, s_n):
        p = math.exp(own / TAU) / z
        total -= math.log(p / (p + m / N))
        for s in noise:
            p = math.exp(s / TAU) / z
            total -= math.log(1 - p / (p + m / N))
    return total / len(s_p)


def test_noise_contrastive_loss_and_its_gradient() -> None:
    rng = np.random.default_rng(0)
    s = rng.uniform(-1, 1, (3, 6))
    z = float(np.exp(s / TAU).mean() * N)
    t = torch.tensor(s, requires_grad=True)
    each = log_partition(t.detach(), tau=TAU, images=N)
    assert float(each.exp().mean()) == pytest.approx(z)
    loss = bank_nce(
        t[:, 0], t[:, 1:], tau=TAU, images=N, log_z=torch.tensor(math.log(z), dtype=torch.float64)
    )
    assert float(loss.detach()) == pytest.approx(loop_nce(s[:, 0], s[:, 1:], z), rel=1e-7)
    loss.backward()  # type: ignore[no-untyped-call]
    for at in np.ndindex(*s.shape):
        up, down = s.copy(), s.copy()
        up[at] += 1e-6
        down[at] -= 1e-6
        slope = (loop_nce(up[:, 0], up[:, 1:], z) - loop_nce(down[:, 0], down[:, 1:], z)) / 2e-6
        assert float(t.grad[at]) == pytest.approx(slope, rel=1e-4, abs=1e-7)  # type: ignore[index]


def test_the_bank_starts_spread_moves_by_half_and_fixes_z_once() -> None:
    m: Any = small_method("insdis", images=200)
    bank = m.bank
    bound = 1 / math.sqrt(16 / 3)
    assert float(bank.memory.abs().max()) <= bound
    assert float(bank.memory.std()) == pytest.approx(bound / math.sqrt(3), rel=0.05)  # uniform
    assert math.isnan(float(bank.log_z))
    given = small_batch(m)
    before, index = bank.memory.clone(), given.index
    step = m(given)
    torch.testing.assert_close(bank.memory, before)  # still what the loss was computed from
    z = float(bank.log_z)
    m.after_backward()
    moved = 0.5 * before[index] + 0.5 * step.z
    torch.testing.assert_close(bank.memory[index], moved / moved.norm(dim=1, keepdim=True))
    rest = torch.ones(200, dtype=torch.bool)
    rest[index] = False
    torch.testing.assert_close(bank.memory[rest], before[rest])
    m(small_batch(m, seed=1))
    assert float(bank.log_z) == z


def test_noise_is_never_the_image_itself_and_reaches_all_others() -> None:
    m: Any = small_method("insdis", images=6, noise=200)
    index = torch.arange(6)
    others = m.bank.others(index, SingleProcess(), m.generator)
    assert others.shape == (6, 200)
    for i in range(6):
        assert {int(x) for x in others[i]} == set(range(6)) - {i}


def test_the_softmax_form_is_infonce_over_the_bank() -> None:
    m: Any = small_method("insdis", loss="softmax")
    given = small_batch(m)
    state = m.generator.get_state()
    step = m(given)
    m.generator.set_state(state)
    others = m.bank.others(given.index, m.comm, m.generator)
    s_p = (step.z * m.bank.memory[given.index]).sum(1)
    s_n = torch.einsum("bc,bmc->bm", step.z, m.bank.memory[others])
    torch.testing.assert_close(step.loss.detach(), extended_nce(s_p, s_n, tau=0.07))
    assert m.chance_loss == pytest.approx(math.log(17))


def test_settings_fit_the_data() -> None:
    assert BankSettings().fitted(500, 1).noise == 500
    assert BankSettings().fitted(10**6, 1) == BankSettings(images=10**6, noise=4096)
    from cuewise.methods.cmc import Settings

    assert Settings().fitted(10**6, 1).noise == 16384
    with pytest.raises(UserError, match="nce or softmax"):
        small_method("insdis", loss="hinge")


def test_cmc_crosses_its_banks() -> None:
    """L is classified among entries of ab, and moves the bank of L."""
    m: Any = small_method("cmc")
    given = small_batch(m)
    before = m.bank_L.memory.clone(), m.bank_ab.memory.clone()
    m.bank_L.memory.zero_()  # then ab's half of the loss says nothing: ln(m+1)
    step = m(given)
    m.bank_L.memory.copy_(before[0])
    others = m.bank_ab.memory  # L's half depends on it
    assert float(step.loss.detach()) != pytest.approx(2 * math.log(17), rel=1e-3)
    m.after_backward()
    index = given.index
    expected = 0.5 * before[0][index] + 0.5 * step.z
    torch.testing.assert_close(m.bank_L.memory[index], expected / expected.norm(dim=1, keepdim=True))
    assert step.positive is not None
    expected = 0.5 * before[1][index] + 0.5 * step.positive
    torch.testing.assert_close(others[index], expected / expected.norm(dim=1, keepdim=True))


def test_the_two_halves_see_lightness_and_colour_alone() -> None:
    m: Any = small_method("cmc").eval()
    pair, card = m.encoder.backbone, m.encoder.card
    grey = torch.rand(2, 1, 16, 16).expand(-1, 3, -1, -1)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (card.mean, card.std))
    L, ab = pair.split((grey - mean) / std)
    assert float((ab[:, :2] - ab[:, :2].mean(dim=(2, 3), keepdim=True)).abs().max()) < 1e-3  # no colour
    assert float(ab[:, 2].abs().max()) == 0
    assert float(L.std()) > 0.2
    torch.testing.assert_close(L[:, 0], L[:, 2])
    same = [p for a, p in zip(pair.L.parameters(), pair.ab.parameters()) if a.ndim > 1 and torch.equal(a, p)]
    assert not same
    assert m.encoder((grey - mean) / std).shape == (2, m.encoder.dim)


def test_lab_is_opencvs() -> None:
    rgb = np.random.default_rng(0).random((9, 11, 3)).astype(np.float32)
    expected = cv2.cvtColor(rgb, cv2.COLOR_RGB2LAB)
    ours = rgb_to_lab(torch.from_numpy(rgb).permute(2, 0, 1).unsqueeze(0))[0].permute(1, 2, 0)
    np.testing.assert_allclose(ours, expected, atol=0.3)  # OpenCV interpolates a table


def test_tiles_come_one_from_each_cell() -> None:
    size = 255
    ramp = torch.arange(size * size, dtype=torch.float32).view(1, 1, size, size).expand(2, 3, -1, -1)
    corner = torch.rand(2, 9, 2)
    cut = tiles(ramp, corner).unflatten(0, (2, 9))
    assert cut.shape == (2, 9, 3, 64, 64)
    for b in range(2):
        for i in range(9):
            first = int(cut[b, i, 0, 0, 0])
            top, left = divmod(first, size)
            assert 85 * (i // 3) <= top <= 85 * (i // 3) + 21
            assert 85 * (i % 3) <= left <= 85 * (i % 3) + 21
            torch.testing.assert_close(cut[b, i], ramp[b, :, top : top + 64, left : left + 64])
    ends = tiles(ramp[:1], torch.full((1, 9, 2), 0.999999))
    assert int(ends[8, 0, -1, -1]) == size * size - 1  # the last corner is reached


def test_infomin_is_moco_and_jigsaw_by_halves() -> None:
    m: Any = small_method("infomin")
    step = m(small_batch(m))
    both = (step.extra["loss_moco"] + step.extra["loss_jigsaw"]) / 2
    torch.testing.assert_close(step.loss.detach(), both)
    alone: Any = small_method("infomin", beta=0.0)
    step = alone(small_batch(alone))
    torch.testing.assert_close(step.loss.detach(), step.extra["loss_moco"])


def test_infomin_without_colour_jitter_has_no_operation_on_colours() -> None:
    m = small_method("infomin")
    patch = np.array([200, 40, 90])
    image = np.full((24, 24, 3), 128, np.uint8)
    image[8:16, 8:16] = patch
    step = patch - 128

    def keeps_colours(drawn: Any) -> bool:
        """Moved pixels are grey, of the patch, or between the two, rounded twice."""
        pixels = apply(image, drawn).reshape(-1, 3).astype(float) - 128
        share = pixels @ step / (step @ step)
        return bool(
            np.abs(pixels - np.outer(share, step)).max() < 3 and share.min() > -0.05 and share.max() < 1.05
        )

    for jitter in (True, False):
        shown = type(m).shown(dataclasses.replace(m.setup, color_jitter=jitter))
        added = {name for view in shown for name in view.adds}
        drawn = [augmentation(name).draw(np.random.default_rng(i)) for name in added for i in range(400)]  # type: ignore
        kept = [keeps_colours(what) for what in drawn if what]
        assert kept
        assert all(kept) is not jitter


@pytest.mark.parametrize("name", ["insdis", "cmc"])
def test_losses_against_the_bank_are_exact_under_autocast(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever precision the networks compute in, the loss is that of the same embeddings in float32."""
    plain, seen = Bank.loss, []

    def kept(self: Any, *given: Any) -> torch.Tensor:
        seen.append((self, given, plain(self, *given)))
        return seen[-1][2]

    m: Any = small_method(name)
    monkeypatch.setattr(Bank, "loss", kept)
    with torch.autocast("cpu", torch.bfloat16):
        m(small_batch(m))
    assert seen
    for bank, (f, *rest), loss in seen:
        assert f.dtype == torch.float32
        torch.testing.assert_close(loss, plain(bank, f, *rest), rtol=1e-6, atol=1e-6)


def test_rand_augment_draws_plain_values_and_every_operation_works() -> None:
    image = np.random.default_rng(0).integers(10, 200, (24, 24, 3), dtype=np.uint8)
    for name in OPERATIONS:
        for value in (-1.0, 1.0):
            changed = apply(image, ((name, value),))
            assert changed.shape == image.shape
            assert changed.dtype == np.uint8
            assert np.any(changed != image), name
    drawn = [draw(np.random.default_rng(i)) for i in range(4000)]
    assert drawn == [draw(np.random.default_rng(i)) for i in range(4000)]
    assert json.loads(json.dumps(drawn[:20])) is not None
    counts = np.bincount([len(d or ()) for d in drawn], minlength=3) / 4000
    np.testing.assert_allclose(counts, [0.25, 0.5, 0.25], atol=0.03)
    assert {name for d in drawn if d for name, _ in d} == set(OPERATIONS)
    assert RAND_AUGMENT.own


SMALL: dict[str, Any] = {"model": "cuewise/resnet-tiny?width=8", "size": 24, "batch_size": 8, "workers": "0"}
HEADS = {"insdis": ["insdis.dim=16"], "cmc": ["cmc.dim=16"], "infomin": ["infomin.queue=32"]}


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(HEADS))
def test_a_run_resumes_and_its_encoder_loads(folder: Path, tmp_path: Path, method: str) -> None:
    out, options = str(tmp_path / "run"), {**SMALL, "set": [*HEADS[method], "loop.log_every=1"]}
    pretrain(str(folder), out=out, method=method, epochs=2, steps=3, **options)
    pretrain(str(folder), out=out, resume=True, steps=5)
    pretrain(str(folder), out=str(tmp_path / "whole"), method=method, epochs=2, steps=5, **options)

    def losses(run: Path) -> list[float]:
        return [json.loads(line)["train/loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]

    assert losses(tmp_path / "run") == losses(tmp_path / "whole")
    encoder = load_encoder(out)
    dim = 2 * 64 if method == "cmc" else 64
    assert encoder(torch.zeros(2, 3, 24, 24)).shape == (2, dim)
    if method == "cmc":
        assert encoder.card.arch == "cuewise/lab?of=cuewise/resnet-tiny&width=8"
        exported = export(out, format="safetensors", out=str(tmp_path / "e.safetensors"))
        again = load_encoder(f"{encoder.card.arch}:{exported['file']}", size=24)
        x = torch.rand(2, 3, 24, 24)
        torch.testing.assert_close(again(x), encoder(x))
        with pytest.raises(UserError, match="cannot be exported to that library"):
            export(out, format="torchvision", out=str(tmp_path / "e.pth"))
