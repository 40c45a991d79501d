"""Backbones of all libraries behind one face; weights from disk; export and back."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
import torchvision
from safetensors.torch import load_file, save_file

from cuewise import UserError, embed, export
from cuewise.encoders import Encoder, load_encoder
from cuewise.encoders.encoder import Card
from cuewise.encoders.export_onnx import pads_by_size, write_onnx
from cuewise.encoders.load import save_encoder

MODEL_OF_ANY_SIZE = "cuewise/resnet-tiny?width=8"
SPECS = [
    ("cuewise/resnet-tiny?width=8", 32, 64),
    ("cuewise/resnet-tiny?width=16&depth=18&norm=group", 32, 128),
    ("torchvision/resnet18", 64, 512),
    ("torchvision/mobilenet_v3_small", 64, 1024),
    ("torchvision/squeezenet1_1", 64, 512),
    ("timm/resnet10t", 64, 512),
    ("timm/vit_tiny_patch16_224?img_size=64", 64, 192),
    ("timm/convnext_atto", 64, 320),
]


@pytest.mark.parametrize(("spec", "size", "dim"), SPECS, ids=[s[0] for s in SPECS])
def test_one_face(spec: str, size: int, dim: int) -> None:
    encoder = load_encoder(spec, size=size)
    x = torch.randn(2, 3, size, size)
    with torch.no_grad():
        z, maps = encoder(x), encoder.feature_map(x)
    assert z.shape == (2, dim)
    assert encoder.dim == dim
    assert maps.ndim == 4
    assert maps.shape[-1] > 1
    assert not encoder.training
    with pytest.raises(UserError, match="no classifier"):
        encoder.logits(x)


def test_normalise_is_torchvisions_and_channels_last() -> None:
    encoder = load_encoder("cuewise/resnet-tiny?width=8")
    images = torch.randint(0, 256, (4, 8, 8, 3), dtype=torch.uint8)
    x = encoder.normalise(images)
    expected = torchvision.transforms.functional.normalize(
        images.permute(0, 3, 1, 2).float() / 255, encoder.card.mean, encoder.card.std
    )
    torch.testing.assert_close(x, expected, rtol=1e-5, atol=1e-5)
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_mean_and_std_travel_with_timm_models() -> None:
    assert load_encoder("timm/vit_tiny_patch16_224").card.mean == (0.5, 0.5, 0.5)


@pytest.mark.slow
def test_a_head_is_kept_apart(tmp_path: Path) -> None:
    for name, make in (
        ("torchvision/resnet18", torchvision.models.resnet18),
        ("timm/resnet10t", lambda: timm.create_model("resnet10t")),
    ):
        source = make().eval()
        save_file(
            {k: v.contiguous() for k, v in source.state_dict().items()}, str(tmp_path / "w.safetensors")
        )
        encoder = load_encoder(f"{name}:{tmp_path / 'w.safetensors'}", head=True)
        x = torch.randn(2, 3, 64, 64)
        with torch.no_grad():
            torch.testing.assert_close(encoder.logits(x), source(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "wrap", [lambda d: d, lambda d: {"state_dict": {f"module.{k}": v for k, v in d.items()}}]
)
def test_weights_from_pth(tmp_path: Path, wrap) -> None:  # type: ignore[no-untyped-def]
    source = load_encoder("cuewise/resnet-tiny?width=8")
    torch.save(wrap(source.backbone.state_dict()), tmp_path / "w.pth")
    loaded = load_encoder(f"cuewise/resnet-tiny?width=8:{tmp_path / 'w.pth'}")
    x = torch.randn(1, 3, 32, 32)
    torch.testing.assert_close(loaded(x), source(x))


def test_what_does_not_fit_is_reported(tmp_path: Path) -> None:
    source = load_encoder("cuewise/resnet-tiny?width=8")
    state = source.backbone.state_dict()
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(
        UserError, match=r"another shape \(conv1.weight: \(8, 3, 3, 3\), needed \(16, 3, 3, 3\)\)"
    ):
        load_encoder(f"cuewise/resnet-tiny?width=16:{tmp_path / 'w.pth'}")
    torch.save({k: v for k, v in state.items() if not k.startswith("layer4")}, tmp_path / "less.pth")
    with pytest.raises(UserError, match=r"missing \(layer4"):
        load_encoder(f"cuewise/resnet-tiny?width=8:{tmp_path / 'less.pth'}")
    with pytest.raises(UserError, match="no weights at"):
        load_encoder("cuewise/resnet-tiny:nowhere.pth")
    (tmp_path / "bad.safetensors").write_bytes(b"garbage")
    with pytest.raises(UserError, match="cannot read weights"):
        load_encoder(f"cuewise/resnet-tiny:{tmp_path / 'bad.safetensors'}")


class Bomb:
    def __reduce__(self):  # type: ignore[no-untyped-def]
        return (Path.touch, (Path("exploded"),))


def test_a_strangers_pickle_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"w": torch.zeros(1), "x": Bomb()}, "evil.pth")
    Path("evil.pkl.pth").write_bytes(pickle.dumps(Bomb()))
    for name in ("evil.pth", "evil.pkl.pth"):
        with pytest.raises(UserError, match="never"):
            load_encoder(f"cuewise/resnet-tiny:{name}")
    assert not Path("exploded").exists()


class Odd(torch.nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.conv = kind, torch.nn.Conv2d(3, 6, 3)

    def forward(self, x: torch.Tensor):  # type: ignore[no-untyped-def]
        y = self.conv(x)
        return {"tuple": (y, None), "dict": {"loss": y.mean(), "map": y}, "text": "nothing"}[self.kind]


@pytest.mark.slow
def test_any_module(tmp_path: Path) -> None:
    for kind in ("tuple", "dict"):
        assert load_encoder(Odd(kind), size=16)(torch.zeros(2, 3, 16, 16)).shape == (2, 6)
    with pytest.raises(UserError, match="returned str"):
        load_encoder(Odd("text"), size=16)
    with pytest.raises(UserError, match=r"returned OrderedDict, not an nn\.Module"):
        load_encoder("collections:OrderedDict")
    with pytest.raises(UserError, match="does not take images of 8×8"):
        load_encoder("torchvision/vgg11", size=8)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    encoder = load_encoder("cuewise/resnet-tiny?width=8", size=16)
    folder = tmp_path / "run"
    folder.mkdir()
    save_encoder(encoder, folder / "encoder.safetensors")
    return folder


def test_export_to_timm_loads_strictly(run: Path, tmp_path: Path) -> None:
    result = export(str(run), format="timm", out=str(tmp_path / "t.pth"))
    assert "cuewise_resnet_tiny" in result["load"]
    model = timm.create_model("cuewise_resnet_tiny", num_classes=0, width=8).eval()
    model.load_state_dict(torch.load(tmp_path / "t.pth", weights_only=True))
    x = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(model(x), load_encoder(str(run))(x))


@pytest.mark.slow
def test_export_to_torchvision_and_timm_share_resnet_keys(tmp_path: Path) -> None:
    encoder = load_encoder("torchvision/resnet18", size=32)
    save_encoder(encoder, tmp_path / "encoder.safetensors")
    x = torch.randn(2, 3, 64, 64)
    for name in ("torchvision", "timm"):
        export(str(tmp_path / "encoder.safetensors"), format=name, out=str(tmp_path / f"{name}.pth"))
        state = torch.load(tmp_path / f"{name}.pth", weights_only=True)
        if name == "timm":
            model = timm.create_model("resnet18", num_classes=0).eval()
            model.load_state_dict(state)
        else:
            model = torchvision.models.resnet18().eval()
            missing, odd = model.load_state_dict(state, strict=False)
            assert (set(missing), odd) == ({"fc.weight", "fc.bias"}, [])
            model.fc = torch.nn.Identity()
        torch.testing.assert_close(model(x), encoder(x), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("normalise", [False, True])
def test_export_to_onnx(
    run: Path, tmp_path: Path, normalise: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    result = export(str(run), format="onnx", out=str(tmp_path / "e.onnx"), normalise=normalise)
    session = onnxruntime.InferenceSession(str(tmp_path / "e.onnx"))
    encoder = load_encoder(str(run))
    for batch, height, width in ((1, 16, 16), (3, 16, 16), (2, 40, 24)):
        images = torch.randint(0, 256, (batch, height, width, 3), dtype=torch.uint8)
        x = encoder.normalise(images)
        given = images.permute(0, 3, 1, 2).float() / 255 if normalise else x
        theirs = session.run(None, {"images": given.contiguous().numpy()})[0]
        np.testing.assert_allclose(theirs, encoder(x).detach().numpy(), rtol=1e-4, atol=1e-4)
    about = session.get_modelmeta().custom_metadata_map
    assert about["arch"] == "cuewise/resnet-tiny?width=8"
    assert json.loads(about["mean"]) == list(encoder.card.mean)
    assert about["sizes"] == "any"
    assert "exporting" in capsys.readouterr().err
    assert ("minus mean" in about["input"]) is not normalise
    assert json.loads(Path(result["card"]).read_text())["dim"] == 64


@pytest.mark.slow
def test_onnx_of_a_transformer_has_one_size(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    save_encoder(load_encoder("cuewise/vit-tiny?depth=1&width=64", size=16), tmp_path / "encoder.safetensors")
    export(str(tmp_path / "encoder.safetensors"), format="onnx", out=str(tmp_path / "v.onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "v.onnx"))
    assert session.get_modelmeta().custom_metadata_map["sizes"] == "16"


@pytest.mark.slow
def test_onnx_of_a_network_that_pads_by_size_has_one_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With free height and width the export of a real one (tf_efficientnet_lite0) takes 226 s instead of 10."""
    onnxruntime = pytest.importorskip("onnxruntime")
    (tmp_path / "same_padding.py").write_text(
        "from timm.layers import Conv2dSame\nfrom torch import nn\n\n\n"
        "def net():\n    return nn.Sequential(Conv2dSame(3, 8, 3, stride=2), nn.ReLU())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    encoder = load_encoder("same_padding:net", size=32)
    assert pads_by_size(encoder)
    assert not pads_by_size(load_encoder(MODEL_OF_ANY_SIZE, size=32))
    write_onnx(encoder, tmp_path / "p.onnx", encoder.card.as_dict(), False)
    session = onnxruntime.InferenceSession(str(tmp_path / "p.onnx"))
    assert session.get_inputs()[0].shape[1:] == [3, 32, 32]
    assert session.get_modelmeta().custom_metadata_map["sizes"] == "32"
    said = capsys.readouterr().err
    assert "exporting same_padding:net to ONNX for images of 32 × 32 pixels only" in said


@pytest.mark.parametrize("ending", ["safetensors", "pth"])
def test_the_type_of_the_file_follows_its_ending(run: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"x.{ending}"
    result = export(str(run), format="timm", out=str(file))
    state = load_file(file) if ending == "safetensors" else torch.load(file, weights_only=True)
    model = timm.create_model("cuewise_resnet_tiny", num_classes=0, width=8)
    model.load_state_dict(state)
    assert ("load_file" in result["load"]) is (ending == "safetensors")
    for wrong in ("x", "x.npz", "x.onnx"):
        with pytest.raises(UserError, match=r"--format timm writes \.safetensors, \.pth"):
            export(str(run), format="timm", out=str(tmp_path / wrong))
    with pytest.raises(UserError, match="belongs to --format onnx"):
        export(str(run), format="timm", out=str(tmp_path / "y.pth"), normalise=True)


def test_side_files_never_collide(run: Path) -> None:
    card = (run / "encoder.json").read_text()
    for name in ("encoder.pth", "encoder.pt"):
        export(str(run), format="timm", out=str(run / name))
        assert json.loads((run / f"{name}.json").read_text())["format"] == "timm"
    assert (run / "encoder.json").read_text() == card
    (run / "a.json").write_text("mine")
    with pytest.raises(UserError, match=r"a\.json exists"):
        export(str(run), format="timm", out=str(run / "a.safetensors"))
    assert not (run / "a.safetensors").exists()
    assert not [*run.glob("*.part")]


def test_export_refusals(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be exported to that library"):
        export(str(run), format="torchvision", out=str(tmp_path / "x.pth"))
    with pytest.raises(UserError, match="safetensors, torchvision, timm, onnx"):
        export(str(run), format="keras", out=str(tmp_path / "x"))
    (tmp_path / "there.pth").write_text("mine")
    with pytest.raises(UserError, match="exists"):
        export(str(run), format="timm", out=str(tmp_path / "there.pth"))
    with pytest.raises(UserError, match="is missing"):
        load_encoder(str(tmp_path))


@pytest.mark.parametrize("name", ["e.npz", "e.parquet"])
def test_embed(run: Path, folder: Path, tmp_path: Path, name: str) -> None:
    result = embed(str(run), str(folder), out=str(tmp_path / name))
    assert (result["images"], result["dim"]) == (48, 64)
    if name.endswith("npz"):
        with np.load(tmp_path / name) as file:
            features, paths, labels = file["features"], file["paths"], file["labels"]
    else:
        pq = pytest.importorskip("pyarrow.parquet")
        table = pq.read_table(tmp_path / name).to_pydict()
        features, paths, labels = np.array(table["features"]), table["paths"], table["labels"]
    assert features.shape == (48, 64)
    assert paths[0] == "ant/ant 0.jpg"
    assert (str(labels[0]), str(labels[47])) == ("ant", "cat")
    with pytest.raises(UserError, match="exists"):
        embed(str(run), str(folder), out=str(tmp_path / name))
    with pytest.raises(UserError, match=r"\.npz or \.parquet"):
        embed(str(run), str(folder), out=str(tmp_path / "e.csv"))


def test_embedding_puts_the_model_back_as_it_was(folder: Path) -> None:
    from cuewise.data import open_data
    from cuewise.encoders.embed import embed_dataset

    encoder = load_encoder("cuewise/resnet-tiny?width=8", size=16).train()
    before = {k: v.clone() for k, v in encoder.state_dict().items()}
    embed_dataset(encoder, open_data(str(folder)), label=None)
    assert encoder.training
    assert all(torch.equal(v, before[k]) for k, v in encoder.state_dict().items())


def test_the_card_beside_the_weights(run: Path) -> None:
    card = json.loads((run / "encoder.json").read_text())
    assert card["arch"] == "cuewise/resnet-tiny?width=8"
    assert card["parameters"] == sum(p.numel() for p in load_encoder(str(run)).backbone.parameters())
    assert isinstance(Encoder(torch.nn.Conv2d(3, 4, 3), Card("x", 16)).dim, int)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("tf_efficientnet_lite0", "did you mean timm/tf_efficientnet_lite0?"),
        (
            "resnet18:mine.safetensors",
            "did you mean timm/resnet18:mine.safetensors or torchvision/resnet18:mine.safetensors?",
        ),
        ("mine.safetensors", "write timm/NAME:mine.safetensors"),
        ("mine.pth", "write timm/NAME:mine.pth"),
        ("nothing", "no model 'nothing': give a run folder"),
        ("nothing.safetensors", "nothing.safetensors is missing: MODEL is"),
        ("timm/test_resnet:mine.safetensors", "the weights in mine.safetensors do not fit timm/test_resnet"),
    ],
)
def test_the_error_of_a_model_without_its_library_says_how_it_is_written(
    spec: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file({"other": torch.zeros(2)}, str(tmp_path / "mine.safetensors"))
    torch.save({"other": torch.zeros(2)}, tmp_path / "mine.pth")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as error:
        load_encoder(spec)
    assert said in str(error.value)
