"""Small models and sets for audits, made by the tests themselves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image
from torch import Tensor, nn

ENCODER = "cuewise/resnet-tiny?width=8"
CLASSES = ("ant", "bee", "cat")


def photos(
    root: Path, each: int = 6, size: int = 40, classes: tuple[str, ...] = CLASSES, seed: int = 0
) -> Path:
    """JPEGs in class folders; each class has a colour, so that a probe has something to learn."""
    rng = np.random.default_rng(seed)
    for k, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for i in range(each):
            small = rng.integers(0, 120, (5, 5, 3), dtype=np.uint8)
            small[..., k % 3] += 130
            image = Image.fromarray(small).resize((size, size), Image.Resampling.BICUBIC)
            image.save(root / name / f"{name}{i}.jpg", quality=90)
    return root


def masks(root: Path, images: Path) -> Path:
    """A white square in the middle of each of the photos."""
    for file in images.rglob("*.jpg"):
        with Image.open(file) as image:
            mask = Image.new("L", image.size)
            mask.paste(
                255, (image.width // 3, image.height // 3, 2 * image.width // 3, 2 * image.height // 3)
            )
        place = root / file.relative_to(images).with_suffix(".png")
        place.parent.mkdir(parents=True, exist_ok=True)
        mask.save(place)
    return root


def flat(root: Path, count: int = 8) -> Path:
    """Images without classes."""
    root.mkdir(parents=True)
    rng = np.random.default_rng(1)
    for i in range(count):
        small = Image.fromarray(rng.integers(0, 256, (5, 5, 3), dtype=np.uint8))
        small.resize((40, 40), Image.Resampling.BICUBIC).save(root / f"{i}.png")
    return root


def conflicts(root: Path, classes: tuple[str, ...] = CLASSES) -> Path:
    """Stimuli that are named as the published ones."""
    rng = np.random.default_rng(2)
    for shape in classes:
        (root / shape).mkdir(parents=True)
        for j, texture in enumerate(classes):
            small = Image.fromarray(rng.integers(0, 256, (5, 5, 3), dtype=np.uint8))
            small.resize((40, 40)).save(root / shape / f"{shape}{j + 1}-{texture}{j + 1}.png")
    return root


def classifier(folder: Path, outputs: int = 3) -> str:
    """MODEL with weights of its own classifier on disk."""
    torch.manual_seed(0)
    file = folder / f"classifier{outputs}.pth"
    torch.save(timm.create_model("test_efficientnet", num_classes=outputs).state_dict(), file)
    return f"timm/test_efficientnet:{file}"


def class_map(folder: Path, content: object = CLASSES) -> str:
    file = folder / "classes.json"
    file.write_text(json.dumps(content))
    return str(file)


class Odd(nn.Module):
    """Mean colours as logits, in whatever form; `bad` makes some answers NaN."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> object:
        out = x.mean(dim=(2, 3)) * self.scale
        if self.form == "nan":
            return torch.full_like(out, float("nan"))
        if self.form == "some-nan":
            return torch.where(out[:, :1] > 0.5, torch.full_like(out, float("nan")), out)
        return {"tuple": (out, None), "dict": {"logits": out}, "plain": out}[self.form]


def gives_tuple() -> nn.Module:
    return Odd("tuple")


def gives_dict() -> nn.Module:
    return Odd("dict")


def gives_nan() -> nn.Module:
    return Odd("nan")


def gives_some_nan() -> nn.Module:
    return Odd("some-nan")


def gives_colours() -> nn.Module:
    return Odd("plain")
