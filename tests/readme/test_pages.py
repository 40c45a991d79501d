"""The commands and the Python of the first page, the tutorial and the how-to pages run as they stand, on small images."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from PIL import Image, ImageOps
from safetensors.torch import save_file

from cuewise.cli import main
from tests.conftest import photograph
from tests.readme.test_commands import commands, is_example, words_after_cuewise

pytestmark = [pytest.mark.docs, pytest.mark.slow]

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "howto/sketches",
    "tutorial",
    "index",
    "howto/shortcut",
    "howto/alpha",
    "howto/clip",
    "coming-from",
    "howto/gpus",
)
TRAIN = "--size 32 --batch-size 8 --steps 2 --workers 0 --model cuewise/resnet-tiny?width=8"
QUICK = {  # what makes a documented command quick; a later option wins over an earlier one
    "pretrain": TRAIN,
    "tune": "--size 32 --batch-size 8 --steps 2 --workers 0 --no-report",
    "audit": "--size 32 --limit 8 --workers 0",
    "compare": "--limit 8 --workers 0",
    "make": "--limit 64 --workers 0",
    "inspect": "--only color",
    "embed": "--workers 0",
}
ONLY = "--only accuracy,sketch"  # where a page asks everything


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three class folders of photographs, others to test on, drawings, decisions, prompts, weights and a run."""
    place = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(1)
    for name in ("cat", "dog", "key"):
        for i in range(8):
            image = Image.fromarray(photograph(rng))
            copies = {
                "photos": image,
                "photos-val": ImageOps.mirror(image),
                "sketches": ImageOps.invert(image),
            }
            for folder, copy in copies.items():
                (place / folder / name).mkdir(parents=True, exist_ok=True)
                copy.save(place / folder / name / f"{i}.jpg")
    weights = timm.create_model("resnet10t").state_dict()
    save_file({k: v.contiguous() for k, v in weights.items()}, str(place / "resnet10t.safetensors"))
    rows = ("a,1.png,cat,dog,cat", "a,2.png,cat,dog,dog", "a,3.png,dog,cat,dog")
    (place / "decisions.csv").write_text("\n".join(["subject,image,shape,texture,response", *rows]) + "\n")
    (place / "prompts.txt").write_text("a photo of a {}\na drawing of a {}\n")
    tiny_clip(place)
    run = ["pretrain", str(place / "photos"), "--out", str(place / "runs" / "shape"), *TRAIN.split()]
    assert main([*run, "--set", "moco.queue=64"]) == 0
    return place


def tiny_clip(place: Path) -> None:
    """weights.pt of a small CLIP that open_clip knows as ViT-tiny."""
    open_clip = pytest.importorskip("open_clip")
    vision = {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 8}
    text = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    (place / "ViT-tiny.json").write_text(
        json.dumps({"embed_dim": 16, "vision_cfg": vision, "text_cfg": text})
    )
    open_clip.add_model_config(place / "ViT-tiny.json")
    torch.save(open_clip.create_model("ViT-tiny").state_dict(), place / "weights.pt")


def blocks(page: str) -> list[str]:
    """Shell commands and Python blocks of a page, in their order."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    found: list[str] = []
    for kind, body in re.findall(r"```(sh|python)\n(.*?)```", text, re.S):
        found += [body] if kind == "python" else [line for line in body.splitlines() if line.strip()]
    return found


def test_nothing_is_left_out() -> None:
    """The fenced blocks of these pages are all that calls cuewise."""
    for page in PAGES:
        named = [c for c in commands(DOCS / f"{page}.md") if is_example(c)]
        assert named == [b for b in blocks(page) if "\n" not in b and "cuewise " in b]


@pytest.mark.parametrize("page", PAGES)
def test_pages_run(made: Path, tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for step in blocks(page):
        if "\n" in step:  # Python; a call that measures everything is made smaller
            small = step.replace(
                'test="photos-val"', 'test="photos-val", only="accuracy", size=32, workers=0'
            )
            assert "cuewise.audit(" not in step or small != step
            exec(compile(small, page, "exec"), {})
        elif "cuewise " in step and not step.startswith("torchrun"):  # not pip and make; not several machines
            run(step.replace("ViT-B-32", "ViT-tiny"))


def run(command: str) -> None:
    name, *rest = words_after_cuewise(command)
    quick = QUICK.get(name, "").split()
    if name == "audit" and "--only" not in rest:
        quick += ONLY.split()
    if name == "pretrain" and "--method" not in rest:
        quick += ["--set", "moco.queue=64"]
    if name == "tune" and "--test" in rest:  # for the report, which is left out here
        rest = rest[: rest.index("--test")]
    out = (
        Path(rest[rest.index("--out") + 1]) if "--out" in rest else Path(rest[1]) if name == "make" else None
    )
    if out is not None and out.is_dir():  # of another page, or the photographs that the tutorial makes anew
        shutil.rmtree(out)
    assert main([name, *rest, *quick]) == 0
    assert out is None or out.exists()
