"""A run of CAN from end to end: resumed exactly, pictured, exported, probed, explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image

from cuewise import UserError, export, load_encoder, open_data, pretrain, probe
from cuewise.audits.gradcam import grad_cam
from cuewise.encoders import Encoder
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.layer_decay import layer_decayed
from cuewise.probes.tunings import TUNINGS
from cuewise.train import pictures
from cuewise.train.checkpoint import read_checkpoint

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {
    "method": "can",
    "model": "cuewise/vit-tiny?width=64&depth=2",
    "size": 16,
    "batch_size": 16,
    "epochs": 4,
    "workers": "0",
    "negatives": ["patch"],
    "set": {"loop": {"log_every": 1}},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    """Trained in one go."""
    out = tmp_path_factory.mktemp("can") / "run"
    pretrain(str(folder), out=out, **OPTIONS)
    return out


def losses(out: Path) -> list[dict[str, float]]:
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    keys = ("train/loss", "train/contrast", "train/reconstruction", "train/denoising", "dials/alignment")
    return [{k: row[k] for k in keys} for row in rows if "train/loss" in row]


def columns(out: Path) -> dict[str, torch.Tensor]:
    """Reconstructions by step, from the checkpoint."""
    found = read_checkpoint(out / "checkpoints" / "last.ckpt")["reconstructions"]["columns"]
    assert isinstance(found, dict)
    return found


def test_resumes_to_the_bit_masks_and_noise_included(run: Path, tmp_path: Path, folder: Path) -> None:
    out = tmp_path / "run"
    pretrain(str(folder), out=out, steps=5, **OPTIONS)
    pretrain(str(folder), out=out, resume=True, **OPTIONS)
    assert losses(out) == losses(run)
    ours, theirs = (load_encoder(str(r)).backbone.state_dict() for r in (out, run))
    for key, value in theirs.items():
        assert torch.equal(ours[key], value), key
    resumed, whole = columns(out), columns(run)
    assert set(resumed) - set(whole) == {"step 5"}  # where it was stopped
    for name, pixels in whole.items():
        assert torch.equal(resumed[name], pixels), name


def test_pictures_of_a_run(run: Path, folder: Path, tmp_path: Path) -> None:
    views, painted = (np.asarray(Image.open(run / f)) for f in ("views.png", "reconstructions.png"))
    saved = columns(run)
    assert list(saved) == ["step 0", "step 3", "step 6", "step 9", "step 12"]
    assert not torch.equal(saved["step 0"], saved["step 12"])
    assert views.shape[1] > 7 * 160
    assert painted.shape[1] > 8 * 160
    other = tmp_path / "simclr"
    pretrain(str(folder), out=other, **{**OPTIONS, "method": "simclr", "steps": 1})
    assert not (other / "reconstructions.png").exists()


@pytest.mark.parametrize(
    ("data", "dial", "shown"),
    [
        (
            "shapes?n=16&size=32",
            {"negatives": ["texture", "patch"], "alpha": [1.0, 2.0]},
            {"texture:first", "patch:first", "texture:second", "patch:second"},
        ),
        ("shapes?n=16&size=32", {"suppress": "gaussian", "negatives": []}, set()),
        ("shapes:scenes?n=16&size=48", {"crops": "object", "negatives": []}, {"boxes"}),
    ],
)
def test_cue_dials_act_in_a_run(
    data: str, dial: dict[str, Any], shown: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheets: list[set[str]] = []
    draw = pictures.contact_sheet
    monkeypatch.setattr(
        pictures, "contact_sheet", lambda columns: (sheets.append(set(columns)), draw(columns))[1]
    )
    pretrain(data, out=tmp_path / "run", **{**OPTIONS, **dial, "steps": 1})
    own = {"masked", "reconstruction", "noise", "predicted noise"}
    assert sheets[0] == {"first", "second", *own, *shown}
    assert np.isfinite(losses(tmp_path / "run")[0]["train/loss"])


def test_loads_in_timm_and_onnx_without_renaming(run: Path, tmp_path: Path) -> None:
    export(run, format="timm", out=tmp_path / "can.pth")
    card = json.loads((run / "encoder.json").read_text())
    assert (card["pool"], card["method"]) == ("avg", "can")
    options = {
        "img_size": 16,
        "patch_size": 4,
        "embed_dim": 64,
        "depth": 2,
        "num_heads": 1,
        "class_token": False,
    }
    theirs = timm.create_model(
        "vit_tiny_patch16_224", num_classes=0, global_pool="avg", fc_norm=False, **options
    ).eval()
    theirs.load_state_dict(torch.load(tmp_path / "can.pth", weights_only=True))
    x, ours = torch.randn(2, 3, 16, 16), load_encoder(str(run))
    with torch.no_grad():
        torch.testing.assert_close(theirs(x), ours(x), rtol=1e-5, atol=1e-6)
    pytest.importorskip("onnxscript")
    export(run, format="onnx", out=tmp_path / "can.onnx")  # compares the outputs itself


def test_grad_cam_lays_its_tokens_on_the_grid(run: Path) -> None:
    encoder = load_encoder(str(run))
    head = torch.nn.Linear(encoder.dim, 3)
    x = torch.randn(2, 3, 16, 16)
    maps, logits = grad_cam(encoder.backbone, x, lambda images: head(encoder(images)))
    assert maps.shape == (2, 16, 16)
    assert float(maps.amax()) == 1.0
    torch.testing.assert_close(logits, head(encoder(x)).detach())


def test_the_presets_for_transformers(run: Path, folder: Path) -> None:
    found = probe("linear", str(run), train=str(folder), preset="can", cache=False)
    assert "lars" in found["scores"][0]["protocol"]
    found = probe("finetune", str(run), train=str(folder), preset="vit", steps=2)
    assert found["scores"][0]["protocol"].startswith("finetune_adamw_lr0.001_batch256_epochs50_cosine")
    assert "layerdecay0.75" in found["scores"][0]["protocol"]


def test_rates_fall_by_the_layer() -> None:
    encoder, head = load_encoder("cuewise/vit-tiny?width=64&depth=2", size=16), torch.nn.Linear(64, 3)
    solver = layer_decayed(encoder, head, 1.0, 0.5, 0.1)
    rate = {id(p): g["lr"] for g in solver.param_groups for p in g["params"]}
    decay = {id(p): g["weight_decay"] for g in solver.param_groups for p in g["params"]}
    named = dict(encoder.backbone.named_parameters())
    assert len(rate) == len(named) + 2
    expected = {
        "patch_embed.proj.weight": 1 / 8,
        "blocks.0.mlp.fc1.weight": 1 / 4,
        "blocks.1.norm1.bias": 1 / 2,
    }
    for name, value in {**expected, "norm.weight": 1.0}.items():
        assert rate[id(named[name])] == value, name
        assert decay[id(named[name])] == (0.1 if named[name].ndim > 1 else 0.0)
    assert rate[id(head.weight)] == 1.0


def test_layer_decay_needs_a_transformer(folder: Path) -> None:
    encoder: Encoder = load_encoder("cuewise/resnet-tiny?width=8", size=16)
    data = open_data(str(folder))
    with pytest.raises(UserError, match="has no patch tokens"):
        FinetuneProbe(encoder, TUNINGS["vit"], steps=1, workers=0).fit(data, data.labels)
