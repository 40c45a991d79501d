"""LooC from the shell: runs, their spaces, what composes with them and what has no meaning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import yaml

from cuewise import UserError, embed, export, pretrain, probe
from cuewise.cli import main
from cuewise.config import resolve
from cuewise.data import open_data
from cuewise.encoders import load_encoder
from cuewise.encoders.spaces import Spaces
from cuewise.train.log import read_metrics
from cuewise.train.reload import load_method
from cuewise.train.shown import build_views

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_start")]

BASE: dict[str, Any] = {
    "model": "cuewise/resnet-tiny?width=8",
    "size": 16,
    "batch_size": 8,
    "epochs": 1,
    "workers": "0",
}


def small(method: str, *more: str) -> dict[str, Any]:
    return {
        **BASE,
        "method": method,
        "set": ["loop.log_every=1", f"{method}.queue=32", f"{method}.dim=16", *more],
    }


def losses(run: Path) -> list[float]:
    return [r["train/loss"] for r in read_metrics(run / "metrics.jsonl") if "train/loss" in r]


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by the words of the shell, with three left-out augmentations."""
    place = tmp_path_factory.mktemp("looc")
    words = ["pretrain", str(folder), "--method", "looc", "--leave-out", "color,rotation,texture"]
    words += ["--out", "run", "--model", BASE["model"], "--size", "16", "--batch-size", "8", "--epochs", "1"]
    words += ["--workers", "0", "--set", "looc.queue=32", "looc.dim=16", "loop.log_every=1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("CUEWISE_CACHE", str(place / "cache"))
        assert main(words) == 0
    return place / "run"


@pytest.fixture(scope="module")
def plus_plus(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("looc++") / "run"
    pretrain(str(folder), out=str(out), leave_out="color,rotation", **small("looc", "looc.plus_plus=true"))
    return out


def test_the_run_folder_carries_its_heads(run: Path) -> None:
    about = json.loads((run / "heads.json").read_text())
    assert about["spaces"] == ["z0", "color", "rotation", "texture"]
    assert (run / "heads.safetensors").is_file()
    card = json.loads((run / "encoder.json").read_text())
    assert card["cues"]["leave_out"] == ["color", "rotation", "texture"]
    assert yaml.safe_load((run / "config.yaml").read_text())["leave_out"] == ["color", "rotation", "texture"]
    rows = read_metrics(run / "metrics.jsonl")
    assert {"train/loss_z0", "train/loss_color", "train/loss_rotation", "train/loss_texture"} <= set(rows[0])
    parts = [v for k, v in rows[0].items() if k.startswith("train/loss_")]
    assert rows[0]["train/loss"] == pytest.approx(np.mean(parts), rel=1e-5)
    assert not list(run.glob("*.part"))


def features(model: Path, folder: Path, space: str | None, out: Path) -> np.ndarray:
    embed(str(model), str(folder), out=str(out), space=space, overwrite=True, workers="0")
    return np.load(out)["features"]


def test_every_space_is_what_the_method_has(run: Path, folder: Path, tmp_path: Path) -> None:
    """Features by --space against the trained method itself, space by space."""
    file = tmp_path / "f.npz"
    v = features(run, folder, "v", file)
    assert v.shape == (48, 64)
    np.testing.assert_array_equal(v, features(run, folder, None, file))
    method = load_method(run)
    with torch.no_grad():
        expected = [F.normalize(h(torch.from_numpy(v)), dim=1).numpy() for h in method.heads.mlps]
    found = [features(run, folder, name, file) for name in ("z0", "color", "rotation", "texture")]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(features(run, folder, "all", file), np.hstack(found))
    np.testing.assert_array_equal(features(run, folder, "rotation+v", file), np.hstack([found[2], v]))


def test_spaces_of_plus_plus_are_pooled_last_stages(plus_plus: Path, folder: Path, tmp_path: Path) -> None:
    """V is the trunk up to conv4; the concatenation of all heads is (n+1)·D wide, not the projections."""
    widths = {None: 64, "v": 32, "z0": 64, "color": 64, "all": 192, "v+all": 224}
    found = {s: features(plus_plus, folder, s, tmp_path / "f.npz") for s in widths}
    assert {s: x.shape[1] for s, x in found.items()} == widths
    np.testing.assert_allclose(found["z0"], found[None], rtol=1e-4, atol=1e-5)
    assert not np.allclose(found["color"], found["z0"], atol=1e-3)
    blocks = load_encoder(f"{plus_plus}#v+all").backbone
    assert isinstance(blocks, Spaces)
    assert {k: (b.start, b.stop) for k, b in blocks.blocks.items()} == {
        "v": (0, 32),
        "z0": (32, 96),
        "color": (96, 160),
        "rotation": (160, 224),
    }


def test_probe_and_export_in_a_space(run: Path, folder: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    score = probe("knn", str(run), train=[str(folder)], space="color+rotation", k=3)["scores"][0]
    assert 0 <= score["value"] <= 1
    export(str(run), format="onnx", out=str(tmp_path / "x.onnx"), space="color+z0")
    x = torch.randn(3, 3, 16, 16)
    session = onnxruntime.InferenceSession(str(tmp_path / "x.onnx"), providers=["CPUExecutionProvider"])
    with torch.no_grad():
        expected = load_encoder(f"{run}#color+z0")(x).numpy()
    np.testing.assert_allclose(session.run(None, {"images": x.numpy()})[0], expected, rtol=1e-3, atol=1e-4)
    export(str(run), format="timm", out=str(tmp_path / "v.pth"), space="v")
    with pytest.raises(UserError, match="use --format onnx"):
        export(str(run), format="timm", out=str(tmp_path / "x.pth"), space="color")


def test_space_is_refused_where_there_is_none(run: Path, folder: Path, tmp_path: Path) -> None:
    out = {"out": str(tmp_path / "f.npz")}
    with pytest.raises(UserError, match="has no spaces"):
        embed(BASE["model"], str(folder), space="color", **out)
    with pytest.raises(UserError, match="has v, z0, color, rotation, texture and all"):
        embed(str(run), str(folder), space="colour", **out)
    with pytest.raises(UserError, match="names a space twice"):
        embed(str(run), str(folder), space="all+color", **out)


def test_heads_of_another_step_are_refused(run: Path, tmp_path: Path) -> None:
    """A run that was killed between the two files must not give a mixture."""
    for name in ("encoder.safetensors", "encoder.json", "heads.safetensors", "heads.json"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    about = json.loads((tmp_path / "heads.json").read_text())
    (tmp_path / "heads.json").write_text(json.dumps({**about, "step": 1}))
    with pytest.raises(UserError, match="of step 6 and its heads are of step 1"):
        load_encoder(f"{tmp_path}#color")


def test_nothing_left_out_repeats_mocos_run_to_the_bit(folder: Path, tmp_path: Path) -> None:
    pretrain(str(folder), out=str(tmp_path / "looc"), **small("looc"))
    pretrain(str(folder), out=str(tmp_path / "moco"), **small("moco"))
    assert losses(tmp_path / "looc") == losses(tmp_path / "moco")


def test_resume_continues_with_the_same_losses(run: Path, folder: Path, tmp_path: Path) -> None:
    out = {"out": str(tmp_path / "r"), "leave_out": "color,rotation,texture", **small("looc")}
    pretrain(str(folder), steps=3, **out)
    pretrain(str(folder), steps=6, resume=True, **out)
    assert losses(tmp_path / "r") == losses(run)


VIEWS = ["views.rotation_p=0.5", "views.style_p=0.5"]
RUNS = {
    "MoCo + Rotation": ("moco", VIEWS[:1], {}),
    "MoCo + Rotation (same)": ("moco", ["views.same=[rotation]"], {}),
    "MoCo, all augmentations": ("moco", VIEWS, {}),
    "MoCo++": ("moco++", ["moco++.heads=3", *VIEWS], {}),
    "AddOne": ("addone", [], {"leave_out": "color,rotation"}),
    "mask_equal": ("looc", ["looc.mask_equal=true"], {"leave_out": "color,rotation"}),
    "blur, flip and crop": ("looc", [], {"leave_out": "blur,flip,crop"}),
    "patch negatives": ("looc", [], {"leave_out": "rotation", "negatives": ["patch"], "patch_size": "3:6"}),
    "texture negatives": ("looc", [], {"leave_out": "rotation", "negatives": ["texture"]}),
    "suppression": ("looc", [], {"leave_out": "color,rotation", "suppress": "gaussian"}),
    "accumulation": ("looc", ["loop.accumulate=2", "looc.mask_equal=true"], {"leave_out": "color"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_variants_and_compositions_run(name: str, folder: Path, tmp_path: Path) -> None:
    method, settings, options = RUNS[name]
    pretrain(str(folder), out=str(tmp_path / "run"), steps=2, **small(method, *settings), **options)
    assert np.isfinite(losses(tmp_path / "run")).all()
    if method == "moco++":
        assert load_encoder(f"{tmp_path / 'run'}#all").dim == 3 * 64


ERRORS = {
    "no meaning for simclr: use --method addone or looc": {"method": "simclr", "leave_out": ["color"]},
    "no meaning for moco: use --method addone or looc": {"method": "moco", "leave_out": ["color"]},
    "no augmentation 'colour'": {"method": "looc", "leave_out": ["colour"]},
    "names an augmentation twice": {"method": "looc", "leave_out": ["color", "color"]},
    "remove --no-color-jitter": {"method": "looc", "leave_out": ["color"], "color_jitter": False},
    "exclude each other": {"method": "looc", "leave_out": ["rotation"], "views": {"same": ["rotation"]}},
    "leaves no rotation": {"method": "looc", "leave_out": ["rotation"], "views": {"rotation_p": 0.0}},
    "set views.style_p": {"views": {"styles": "paintings"}},
    "without --leave-out": {"method": "looc", "looc": {"mask_equal": True}},
    "regular has no meaning for looc": {"method": "looc", "leave_out": ["color"], "negatives": ["regular"]},
    "--hard mochi has no meaning for looc": {"method": "looc", "leave_out": ["color"], "hard": "mochi"},
}


@pytest.mark.parametrize("message", ERRORS)
def test_what_has_no_meaning_is_explained(message: str) -> None:
    with pytest.raises(UserError, match=message):
        resolve(ERRORS[message])


def recipes_of(**options: Any) -> dict[str, Any]:
    config = resolve({"data": ["shapes?n=8&size=32"], "size": 32, **options})
    views = build_views(config, open_data(config.data))
    return {v.role: v for v in views.positives}


def test_views_of_the_controls() -> None:
    """MoCo + Rotation draws an angle for each view, "same" copies it; nothing else changes."""
    independent = recipes_of(method="moco", views={"rotation_p": 0.5})
    assert [v.recipe.rotation_p for v in independent.values()] == [0.5, 0.5]
    assert not any(v.copy for v in independent.values())
    same = recipes_of(method="moco", views={"same": ["rotation"]})
    assert [v.recipe.rotation_p for v in same.values()] == [0.5, 0.5]
    assert (same["key"].copy, same["key"].copy_from) == (("rotation",), "query")
    assert same["query"].copy == ()


def test_views_of_looc_and_addone() -> None:
    left = {"leave_out": ["color", "rotation", "texture"]}
    looc = recipes_of(method="looc", **left)
    assert len({v.recipe for v in looc.values()}) == 1
    full = looc["query"].recipe
    assert (full.jitter_p, full.gray_p, full.rotation_p, full.style_p) == (0.8, 0.2, 0.5, 0.5)
    assert {r: v.copy for r, v in looc.items() if v.copy} == {
        "key:color": ("color",),
        "key:rotation": ("rotation",),
        "key:texture": ("texture",),
    }
    added = recipes_of(method="addone", **left)
    chances = {
        r: (v.recipe.jitter_p, v.recipe.gray_p, v.recipe.rotation_p, v.recipe.style_p)
        for r, v in added.items()
    }
    assert chances == {
        "query": (0, 0, 0, 0),
        "key": (0, 0, 0, 0),
        "key:color": (0.8, 0.2, 0, 0),
        "key:rotation": (0, 0, 0.5, 0),
        "key:texture": (0, 0, 0, 0.5),
    }
    star = recipes_of(method="addone", leave_out=["rotation"])  # the row "* + rotation"
    assert {v.recipe.jitter_p for v in star.values()} == {0.8}


def test_suppression_is_drawn_for_every_view_by_itself() -> None:
    """--suppress is no left-out augmentation: each key decides anew, unless the blur it shares a draw with is left out."""
    for left, shared in ((["color"], False), (["blur"], True)):
        config = resolve(
            {
                "data": ["shapes?n=8&size=32"],
                "size": 32,
                "method": "looc",
                "leave_out": left,
                "suppress": "robust",
            }
        )
        views, rng = build_views(config, open_data(config.data)), np.random.default_rng(0)
        drawn = [views.sample(rng, 32, 32).positives for _ in range(200)]
        same = [d["query"].suppress == d[f"key:{left[0]}"].suppress for d in drawn]
        assert all(same) == shared
        filtered = [d["key"].suppress is not None for d in drawn]
        assert 70 < sum(filtered) < 130


OWN = """
from cuewise.views import register_augmentation

register_augmentation(
    "invert",
    "negative film",
    draw=lambda rng: True if rng.random() < 0.5 else None,
    apply=lambda view, value: 255 - view,
)
"""


@pytest.mark.shell
def test_an_augmentation_of_the_users_own_from_the_shell(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "my_augmentations.py").write_text(OWN)
    words = ["pretrain", str(folder), "--out", "run", "--method", "looc", "--model", BASE["model"]]
    words += [
        "--leave-out",
        "color,my_augmentations:invert",
        "--size",
        "16",
        "--batch-size",
        "8",
        "--steps",
        "2",
    ]
    words += ["--workers", "1", "--set", "looc.queue=32", "looc.dim=16"]
    code = "import sys; from cuewise.cli import main; a = main(sys.argv[1:]); "
    code += "b = main(['embed', 'run', sys.argv[2], '--out', 'f.npz', '--space', 'invert', '--workers', '0']); sys.exit(a or b)"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUEWISE_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "heads.json").read_text())["spaces"] == ["z0", "color", "invert"]
    assert np.load(tmp_path / "f.npz")["features"].shape == (48, 16)
