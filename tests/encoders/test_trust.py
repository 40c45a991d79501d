"""Files from strangers: no code is imported on their word, and whatever they hold is one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from cuewise import UserError
from cuewise.encoders import load_encoder
from cuewise.encoders.load import save_encoder

TINY = "cuewise/resnet-tiny?width=8"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    save_encoder(load_encoder(TINY, size=16), folder / "encoder.safetensors", step=3)
    return folder


def one_line(spec: str, **options: object) -> str:
    with pytest.raises(UserError) as info:
        load_encoder(spec, **options)  # type: ignore[arg-type]
    text = str(info.value)
    assert "\n" not in text
    assert "weights_only" not in text
    return text


PAYLOAD = """
from pathlib import Path
Path("exploded").touch()
from cuewise.encoders.resnet_tiny import ResNetTiny
def make():
    return ResNetTiny(width=8)
"""


def test_code_is_imported_only_if_the_user_typed_it(run: Path, tmp_path: Path) -> None:
    (tmp_path / "payload_of_a_stranger.py").write_text(PAYLOAD)
    card = json.loads((run / "encoder.json").read_text())
    (run / "encoder.json").write_text(json.dumps({**card, "arch": "payload_of_a_stranger:make"}))
    assert "type payload_of_a_stranger:make:" in one_line(str(run))
    assert "type it as MODEL" in one_line("payload_of_a_stranger:make", typed=False)
    assert not Path("exploded").exists()
    encoder = load_encoder(f"payload_of_a_stranger:make:{run}")
    assert Path("exploded").exists()
    assert (encoder.card.size, encoder.card.arch) == (16, "payload_of_a_stranger:make")
    torch.save(encoder.backbone.state_dict(), "w.pth")
    x = torch.randn(1, 3, 16, 16)
    torch.testing.assert_close(load_encoder("payload_of_a_stranger:make:w.pth", size=16)(x), encoder(x))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("timm/resnet10t?checkpoint_path=w.pth", "weights on disk are MODEL:FILE"),
        ("torchvision/resnet18?weights=DEFAULT", "weights on disk are MODEL:FILE"),
        ("timm/resnet10t?foo=1", "timm models take no option 'foo'"),
        ("timm/resnet10t?img_sise=1", "did you mean img_size"),
        ("timm/resnet10t?embed_dim=7", "cannot be built like that"),
        ("torchvision/resnet18?patch_size=7", "cannot be built like that"),
        ("cuewise/resnet-tiny?foo=1", "no option 'foo'"),
        ("cuewise/resnet-tiny?width=many", "cannot be built like that"),
        ("timm/resnet10t?img_size", "write \\?name=value"),
        ("timm/resnet10t?img_size=[1, 2]", "write \\?name=value"),
        ("timm/resnet10t?img_size={a", "cannot be built like that"),
        ("timm/resnet10t.nowhere?pretrained=1", "resnet10t.nowhere"),
        ("torchvision/resnet18?stem=5x5", "the stems 7x7 .* and 3x3"),
        ("torchvision/squeezenet1_1?stem=3x3", "ResNets take the stems"),
        ("torchvision/resnet18?width=0.3", "a multiple of 0.125"),
    ],
)
def test_constructor_options_are_on_a_list(spec: str, said: str) -> None:
    assert re.search(said, one_line(spec, size=32))


def test_files_that_are_no_weights(run: Path) -> None:
    good = run / "encoder.safetensors"
    torch.save(load_encoder(TINY).backbone.state_dict(), "good.pth")
    contents = {
        "empty.pth": b"",
        "empty.safetensors": b"",
        "cut.pth": Path("good.pth").read_bytes()[:-200],
        "head.pth": Path("good.pth").read_bytes()[:40],
        "cut.safetensors": good.read_bytes()[:-20],
        "text.pth": b"hello",
        "zeros.safetensors": bytes(64),
    }
    for name, content in contents.items():
        Path(name).write_bytes(content)
        assert "cannot read weights from" in one_line(f"{TINY}:{name}")
    torch.save([torch.zeros(1)], "list.pth")
    torch.save({1: torch.zeros(1)}, "numbers.pth")
    torch.save(torch.zeros(3), "tensor.pth")
    torch.save({}, "nothing.pth")
    for name in ("list", "numbers", "tensor", "nothing"):
        assert "holds no state dict" in one_line(f"{TINY}:{name}.pth")
    torch.save({"x": torch.zeros(1)}, "other.pth")
    assert "do not fit" in one_line(f"{TINY}:other.pth")
    good.write_bytes(b"")
    assert "it is empty" in one_line(str(run))


@pytest.mark.parametrize(
    "change",
    [
        {"arch": 3}, {"arch": "nothing"}, {"arch": "timm/nothing"}, {"arch": "timm/resnet10t?checkpoint_path=x"},
        {"size": "16"}, {"size": 0}, {"size": 10**9}, {"size": True}, {"mean": [1, 2]}, {"mean": "abc"}, {"std": [0, 1, 1]},
        {"std": [1, 1, None]}, {"mean": [float("nan")] * 3}, {"cues": []}, {"pool": 5}, {"step": "x"}, {"interpolation": None},
    ],
)  # fmt: skip
def test_cards_that_are_no_cards(run: Path, change: dict[str, object]) -> None:
    card = json.loads((run / "encoder.json").read_text())
    (run / "encoder.json").write_text(json.dumps({**card, **change}))
    one_line(str(run))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"arch": "x"}', "[" * 100000, "\udce4"])
def test_files_that_are_no_cards(run: Path, text: str) -> None:
    (run / "encoder.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    one_line(str(run))


def test_a_checkpoint_is_a_model(run: Path) -> None:
    encoder = load_encoder(TINY, size=16)
    state = {f"encoder.backbone.{k}": v for k, v in encoder.backbone.state_dict().items()}
    file = run / "checkpoints" / "last.ckpt"
    file.parent.mkdir()
    torch.save({"method": {**state, "queue": torch.zeros(2)}, "step": 41, "total": 50}, file)
    found = load_encoder(str(file))
    x = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(found(x), encoder(x))
    assert found.card.size == 16
    assert isinstance(found.card.weights, dict)
    assert (found.card.weights["run"], found.card.weights["step"]) == (str(run), 41)
    for content in ([1], {"method": [], "step": 1}, {"method": {}, "step": 1}, {"method": state}, {"x": 1}):
        torch.save(content, file)
        one_line(str(file))
    torch.save({"method": {"encoder.backbone.conv1.weight": torch.zeros(1)}, "step": 1}, file)
    assert "do not fit" in one_line(str(file))
    file.write_bytes(b"")
    assert "it is empty" in one_line(str(file))
