"""The origin of weights is recorded, random weights trigger a prominent warning, published ones are fetched only on request."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import timm
import torch
import torchvision
from safetensors.torch import save_file

from cuewise import UserError, embed, probe
from cuewise.encoders import load_encoder
from cuewise.encoders.card import describe_weights, is_random
from cuewise.encoders.load import save_encoder, with_pretrained

TINY = "cuewise/resnet-tiny?width=8"


def test_random_weights_are_reported(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load_encoder(TINY).card.weights == "random"
    result = embed(TINY, str(folder), out=str(tmp_path / "e.npz"), size=16)
    assert result["weights"] == "random"
    assert "RANDOM WEIGHTS" in capsys.readouterr().err
    scores = probe("knn", TINY, train=[str(folder)], size=16)
    assert scores["weights"] == "random"
    assert "RANDOM WEIGHTS" in capsys.readouterr().err
    save_encoder(load_encoder(TINY, size=16), tmp_path / "encoder.safetensors", step=7)
    embed(str(tmp_path), str(folder), out=str(tmp_path / "f.npz"))
    assert "RANDOM" not in capsys.readouterr().err


def test_a_file_and_a_run_are_named(tmp_path: Path) -> None:
    source = load_encoder(TINY)
    file = tmp_path / "w.pth"
    torch.save(source.backbone.state_dict(), file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    loaded = load_encoder(f"{TINY}:{file}")
    assert loaded.card.weights == {"file": "w.pth", "sha256": digest}
    run = tmp_path / "run"
    run.mkdir()
    save_encoder(loaded, run / "encoder.safetensors", step=120)
    written = json.loads((run / "encoder.json").read_text())["weights"]
    assert written == {"run": "run", "step": 120, "from": loaded.card.weights}
    again = load_encoder(str(run)).card.weights
    assert isinstance(again, dict)
    assert (again["run"], again["step"], again["from"]) == (str(run), 120, loaded.card.weights)
    assert "step 120" in describe_weights(again)
    assert not is_random(again)
    save_encoder(source, run / "encoder.safetensors", step=0)
    assert is_random(load_encoder(str(run)).card.weights)  # a run that made no step


def test_a_tag_promises_weights(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="names pretrained weights: add --pretrained"):
        load_encoder("timm/resnet10t.c3_in1k", size=32)
    state = timm.create_model("resnet10t", num_classes=0).state_dict()
    save_file({k: v.contiguous() for k, v in state.items()}, str(tmp_path / "w.safetensors"))
    assert load_encoder(f"timm/resnet10t.c3_in1k:{tmp_path / 'w.safetensors'}", size=32).dim == 512
    with pytest.raises(UserError, match="a file and for pretrained"):
        load_encoder(f"timm/resnet10t?pretrained=1:{tmp_path / 'w.safetensors'}", size=32)


def test_pretrained_is_part_of_the_model() -> None:
    assert with_pretrained("timm/x", True) == "timm/x?pretrained=1"
    assert with_pretrained("timm/x?depth=2", True) == "timm/x?depth=2&pretrained=1"
    assert with_pretrained("runs/x", False) == "runs/x"
    for model in ("runs/x", "timm/x:w.pth", TINY):
        with pytest.raises(UserError, match="--pretrained belongs to"):
            with_pretrained(model, True)
    with pytest.raises(UserError, match="no published weights"):
        load_encoder(f"{TINY}&pretrained=1")


def test_timm_weights_from_the_cache_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        UserError, match=r"cannot get the pretrained weights of timm/resnet10t.*looked for in"
    ) as info:
        load_encoder("timm/resnet10t?pretrained=1", size=32)
    assert "\n" not in str(info.value)
    source = timm.create_model("resnet10t").eval()
    repository = tmp_path / "hub" / "models--timm--resnet10t.c3_in1k"
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    save_file(
        {k: v.contiguous() for k, v in source.state_dict().items()}, str(snapshot / "model.safetensors")
    )
    for spec in ("timm/resnet10t?pretrained=1", "timm/resnet10t.c3_in1k?pretrained=1"):
        encoder = load_encoder(spec, size=32)
        assert encoder.card.weights == {"pretrained": "timm/resnet10t.c3_in1k"}
        assert "pretrained" not in encoder.card.arch  # a run trained from it does not ask again
        x = torch.randn(2, 3, 32, 32)
        torch.testing.assert_close(
            encoder(x), source.forward_head(source.forward_features(x), pre_logits=True)
        )
    with_head = load_encoder("timm/resnet10t?pretrained=1", size=32, head=True)
    torch.testing.assert_close(with_head.logits(x), source(x))


@pytest.mark.slow
def test_torchvision_weights_from_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    source = torchvision.models.resnet18().eval()
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
    file = tmp_path / "hub" / "checkpoints" / weights.url.rpartition("/")[2]
    file.parent.mkdir(parents=True)
    torch.save(source.state_dict(), file)
    encoder = load_encoder("torchvision/resnet18?pretrained=1", head=True)
    x = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(encoder.logits(x), source(x))
    assert encoder.card.weights == {"pretrained": "torchvision/resnet18 IMAGENET1K_V1"}
    with pytest.raises(UserError, match="IMAGENET1K_V1"):
        load_encoder("torchvision/resnet18?pretrained=V9")

    def no_network(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(torch.hub, "download_url_to_file", no_network)
    with pytest.raises(UserError, match=r"cannot get .* no network"):
        load_encoder("torchvision/resnet34?pretrained=1")


def test_features_do_not_follow_the_name_of_the_file(tmp_path: Path) -> None:
    from cuewise.encoders.cached import weights_hash

    source = load_encoder(TINY)
    for name in ("a.pth", "b.pth"):
        torch.save(source.backbone.state_dict(), tmp_path / name)
    one, two = (weights_hash(load_encoder(f"{TINY}:{tmp_path / n}")) for n in ("a.pth", "b.pth"))
    assert one == two
