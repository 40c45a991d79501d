"""A learned suppressor from end to end: trained, resumed exactly, used to make a set and in front of a classifier."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cuewise import UserError, load_encoder, make, open_data, pretrain
from cuewise.data import Batch
from cuewise.methods.supervised import Supervised
from cuewise.methods.suppressor import Suppressor
from cuewise.train.checkpoint import read_checkpoint
from cuewise.train.log import read_metrics
from cuewise.train.reload import load_method

pytestmark = pytest.mark.slow

GAN: dict[str, Any] = {
    "method": "pix2pix",
    "model": "cuewise/unet?width=8",
    "size": 16,
    "batch_size": 16,
    "epochs": 3,
    "workers": "0",
    "set": {"loop": {"log_every": 1}, "pix2pix": {"critic_width": 8, "kappa": 60.0, "steps": 8}},
}
CLASSIFIER: dict[str, Any] = {
    "method": "supervised",
    "model": "cuewise/resnet-tiny?width=8",
    "size": 16,
    "batch_size": 16,
    "epochs": 2,
    "workers": "0",
    "set": {"loop": {"log_every": 1}},
}


@pytest.fixture(scope="module")
def G(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gan") / "G"
    pretrain(str(folder), out=str(out), **GAN)
    return out


def rows(out: Path) -> list[dict[str, float]]:
    kept = ("train/loss", "train/adversarial", "train/l1", "train/discriminator", "train/loss_generated")
    return [
        {k: r[k] for k in kept if k in r} for r in read_metrics(out / "metrics.jsonl") if "train/loss" in r
    ]


def equal(a: Any, b: Any) -> bool:
    """Nested states, to the bit."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(torch.equal(a, b)) if isinstance(a, torch.Tensor) else bool(a == b)


def test_generator_and_discriminator_resume_to_the_bit(G: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "G"
    pretrain(str(folder), out=str(out), steps=4, **GAN)
    pretrain(str(folder), out=str(out), resume=True, **GAN)
    assert rows(out) == rows(G)
    ours, theirs = (read_checkpoint(r / "checkpoints" / "last.ckpt") for r in (out, G))
    assert equal(ours["method"], theirs["method"])
    assert equal(ours["optimizer"], theirs["optimizer"])
    trained = sum(p.requires_grad for p in load_method(G).parameters())
    assert len(theirs["optimizer"]["state"]) == trained  # moments of both networks
    assert any(k.startswith("discriminator.") for k in theirs["method"])


def test_the_run_shows_source_target_and_generated(G: Path) -> None:
    assert (G / "reconstructions.png").is_file()
    card = json.loads((G / "encoder.json").read_text())
    assert (card["method"], card["arch"], card["size"]) == ("pix2pix", "cuewise/unet?width=8", 16)
    assert card["cues"]["generator"]["kappa"] == 60.0
    assert card["mean"] == [0.5, 0.5, 0.5]


@pytest.fixture(scope="module")
def made(G: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "set"
    make("learned", str(folder), str(out), generator=str(G), workers=0)
    return out


def test_a_set_of_generated_images(made: Path, G: Path, folder: Path) -> None:
    there, source = open_data(str(made)), open_data(str(folder))
    assert len(there) == 48
    assert there.classes == source.classes
    net: Any = load_encoder(str(G)).backbone
    x = torch.from_numpy(source.image(5)).permute(2, 0, 1)[None] / 127.5 - 1
    expected = ((net.translate(x)[0] + 1) * 127.5).round()[0].permute(1, 2, 0).detach().numpy()
    assert np.abs(there.image(5).astype(float) - expected).max() <= 1
    row = json.loads((made / "manifest.jsonl").read_text().splitlines()[0])
    assert row["parameters"]["generator"] == str(G)
    assert len(row["parameters"]["weights"]) == 64


def test_a_set_is_resumed_with_the_same_generator_only(
    made: Path, G: Path, folder: Path, tmp_path: Path
) -> None:
    again = make("learned", str(folder), str(made), generator=str(G), workers=0)
    assert again["made"] == 0
    out, other = tmp_path / "set", tmp_path / "G"
    make("learned", str(folder), str(out), generator=str(G), workers=0, limit=3)
    shutil.copytree(G, other)
    with pytest.raises(UserError, match="generator"):
        make("learned", str(folder), str(out), generator=str(other), workers=0)


def test_the_classifier_in_front_of_which_the_generator_stands(G: Path, folder: Path, tmp_path: Path) -> None:
    out, part = tmp_path / "run", tmp_path / "part"
    pretrain(str(folder), out=str(out), generator=str(G), **CLASSIFIER)
    pretrain(str(folder), out=str(part), generator=str(G), steps=2, **CLASSIFIER)
    pretrain(str(folder), out=str(part), generator=str(G), resume=True, **CLASSIFIER)
    assert rows(part) == rows(out)
    assert all("train/l1" in r and "train/loss_generated" in r for r in rows(out))
    states = [read_checkpoint(r / "checkpoints" / "last.ckpt") for r in (out, part)]
    assert equal(states[0]["method"], states[1]["method"])
    assert equal(states[0]["optimizer"], states[1]["optimizer"])
    assert len(states[0]["optimizer"]["parts"]) == 3  # classifier, generator, discriminator
    rates = [p["param_groups"][0]["lr"] for p in states[0]["optimizer"]["parts"]]
    assert rates[1:] == [2e-4, 2e-4]
    before, after = load_encoder(str(G)).backbone.state_dict(), states[0]["method"]
    moved = [not torch.equal(v, after[f"suppressor.generator.{k}"]) for k, v in before.items()]
    assert all(moved)
    assert not list((out / "encoder.safetensors").parent.glob("*.pt"))
    assert load_encoder(str(out)).card.method == "supervised"  # at test time it sees the plain image


def test_a_frozen_generator_stays(G: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = {**CLASSIFIER, "set": {**CLASSIFIER["set"], "supervised": {"freeze": True}}}
    pretrain(str(folder), out=str(out), generator=str(G), steps=2, **asked)
    after = read_checkpoint(out / "checkpoints" / "last.ckpt")["method"]
    for k, v in load_encoder(str(G)).backbone.state_dict().items():
        assert torch.equal(v, after[f"suppressor.generator.{k}"])
    assert not any("discriminator" in k for k in after)
    assert "train/l1" not in rows(out)[0]


def test_images_pass_the_generator_in_its_own_range(G: Path) -> None:
    """Normalised for the classifier → −1…1 → G → normalised again, and the gradient of the class reaches G."""
    encoder = load_encoder("cuewise/resnet-tiny?width=8", size=16)
    suppressor = Suppressor(str(G), encoder, 16, frozen=False)
    pixels = torch.randint(0, 256, (2, 16, 16, 3), dtype=torch.uint8)
    made, losses = suppressor(encoder.normalise(pixels))
    x = pixels.permute(0, 3, 1, 2) / 127.5 - 1
    expected, _ = suppressor.generator.translate(x)
    back = ((expected + 1) * 127.5).permute(0, 2, 3, 1)
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (encoder.card.mean, encoder.card.std))
    torch.testing.assert_close((made * std + mean) * 255, back.permute(0, 3, 1, 2), rtol=1e-3, atol=0.05)
    assert set(losses) == {"adversarial", "l1", "discriminator"}
    made.square().mean().backward()
    assert float(suppressor.generator.last.weight.grad.abs().sum()) > 0  # type: ignore[union-attr]


def test_the_loss_is_the_sum(G: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    pretrain(str(folder), out=str(out), generator=str(G), steps=1, **CLASSIFIER)
    m = load_method(out)
    assert isinstance(m, Supervised)
    x = m.encoder.normalise(torch.randint(0, 256, (4, 16, 16, 3), dtype=torch.uint8))
    step = m(Batch({"query": x}, torch.arange(4), {"label": torch.arange(4) % 3}))
    e = {k: float(v) for k, v in step.extra.items()}
    expected = e["loss_plain"] + e["loss_generated"] + e["adversarial"] + 100 * e["l1"] + e["discriminator"]
    assert float(step.loss.detach()) == pytest.approx(expected, rel=1e-4)


def test_what_is_no_generator(G: Path, folder: Path, tmp_path: Path) -> None:
    other, foreign = tmp_path / "other", tmp_path / "foreign"
    pretrain(str(folder), out=str(other), steps=1, **CLASSIFIER)
    shutil.copytree(G, foreign)
    (foreign / "checkpoints" / "last.ckpt").write_bytes(pickle.dumps({"a": Path}))
    for generator, size, words in (
        (other, 16, "is a run of supervised, not of pix2pix"),
        (tmp_path / "nowhere", 16, "there is no such run folder"),
        (tmp_path, 16, "is missing"),
        (G, 24, "was trained at 16 pixels and this run is at 24"),
        (foreign, 16, "last.ckpt"),
    ):
        with pytest.raises(UserError, match=words):
            pretrain(
                str(folder),
                out=str(tmp_path / "run"),
                generator=str(generator),
                **{**CLASSIFIER, "size": size},
            )
        assert not (tmp_path / "run").exists()
    (foreign / "encoder.safetensors").write_bytes(pickle.dumps({"a": Path}))
    for generator in (other, foreign):
        with pytest.raises(UserError, match=r"not of pix2pix|encoder\.safetensors"):
            make("learned", str(folder), str(tmp_path / "set"), generator=str(generator), workers=0)
    with pytest.raises(UserError, match="needs a generator"):
        make("learned", str(folder), str(tmp_path / "set"), workers=0)
    with pytest.raises(UserError, match="--generator is for `make learned`"):
        make("anisotropic", str(folder), str(tmp_path / "set"), generator=str(G), workers=0)
    for own in ({"freeze": True}, {"keep": 0.5}):
        with pytest.raises(UserError, match="add --generator"):
            pretrain(str(folder), out=str(tmp_path / "run"), **{**CLASSIFIER, "set": {"supervised": own}})
