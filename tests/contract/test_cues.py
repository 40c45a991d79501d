"""Every registered cue keeps the same promises, and so does one from outside the package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from cuewise.catalogue import catalogue
from cuewise.cues import contract
from cuewise.cues.contract import CHECKS, photo
from cuewise.cues.cue import Cue
from cuewise.cues.diffusion import scaled_steps
from cuewise.cues.registry import cue, cues
from cuewise.errors import UserError

OUTSIDE = """
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cuewise.cues.cue import Cue


@dataclass(frozen=True)
class Posterize(Cue):
    name = "posterize"
    summary = "few levels of each colour"
    levels: Annotated[int, "of each channel [drawn from 2 to 5]"] = 0

    def draw(self, rng, height, width):
        return {"levels": self.levels or int(rng.integers(2, 6))}

    def render(self, image, drawn):
        step = 255 / (drawn["levels"] - 1)
        return np.rint(np.rint(image / step) * step).astype(np.uint8)
"""


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", cues())
def test_keeps_the_contract(name, check):
    check(cue(name))


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cue in a file of the working folder."""
    (tmp_path / "posterized_cues.py").write_text(OUTSIDE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "posterized_cues", raising=False)
    return "posterized_cues:Posterize"


def test_a_cue_from_outside_keeps_it_too(outside):
    for check in CHECKS:
        check(cue(outside))
    assert len(np.unique(cue(outside, levels=2)(photo(32, 32), np.random.default_rng(0)))) == 2


def broken(**methods: Any) -> Cue:
    """A cue with these methods in place of good ones."""
    good = {"name": "broken", "summary": "wrong", "render": lambda self, image, drawn: image[::-1].copy()}
    return dataclass(frozen=True)(type("Broken", (Cue,), {**good, **methods}))()


@pytest.mark.parametrize(
    ("check", "methods"),
    [
        ("keeps_shape_and_type", {"render": lambda self, image, drawn: image[1:].copy()}),
        ("keeps_shape_and_type", {"render": lambda self, image, drawn: image[:]}),
        ("keeps_shape_and_type", {"render": lambda self, image, drawn: image.astype(np.float32)}),
        ("every_form_gives_the_same_image", {"__call__": lambda self, image, rng: np.asarray(image)}),
        (
            "same_seed_same_image",
            {"render": lambda self, image, drawn: image ^ np.uint8(np.random.randint(255))},  # noqa: NPY002
        ),
        ("rendering_is_drawing_free", {"draw": lambda self, rng, height, width: {"at": np.zeros(2)}}),
        ("is_described", {"summary": "two\nlines"}),
    ],
)
def test_a_check_finds_what_is_wrong(check, methods):
    with pytest.raises(UserError, match="broken: "):
        getattr(contract, check)(broken(**methods))
    getattr(contract, check)(broken())


def test_diffusion_takes_as_many_steps_whatever_the_form(monkeypatch):
    """The number of steps follows from the image's sides, not from the first two axes of what was given."""
    image = photo(104, 104)
    want = cue("anisotropic", steps=scaled_steps(104))(image, np.random.default_rng(0))
    batch = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    out = cue("anisotropic")(batch, np.random.default_rng(0))
    np.testing.assert_array_equal(np.rint(out[0].permute(1, 2, 0).numpy() * 255), want)


def test_each_image_of_a_batch_is_drawn_anew():
    batch = torch.rand(3, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    rng = np.random.default_rng(4)
    together = cue("gaussian")(batch, np.random.default_rng(4))
    torch.testing.assert_close(together, torch.stack([cue("gaussian")(one, rng) for one in batch]))


def test_forms_that_are_no_image_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(UserError, match="transpose"):
        cue("gaussian")(np.zeros((3, 32, 32), np.uint8), rng)
    with pytest.raises(UserError, match="a list"):
        cue("gaussian")([[1, 2]], rng)
    with pytest.raises(UserError, match="convert it to RGB"):
        cue("grey")(Image.new("F", (16, 16)), rng)
    with pytest.raises(UserError, match="0, 1"):
        cue("grey")(torch.full((3, 16, 16), 200.0), rng)
    with pytest.raises(UserError, match="C×H×W"):
        cue("grey")(torch.zeros(5), rng)


def test_a_palette_or_transparency_becomes_rgb():
    image = Image.fromarray(photo(24, 24))
    rgba = image.convert("RGBA")
    out = cue("grey")(rgba, np.random.default_rng(0))
    assert out.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(out), np.asarray(cue("grey")(image, np.random.default_rng(0))))


@pytest.mark.parametrize("name", cues())
def test_settings_are_declared_with_their_help(name):
    from typing import get_type_hints

    hints = get_type_hints(type(cue(name)), include_extras=True)
    for key in cue(name).settings:
        assert len(hints[key].__metadata__[0]) > 3
    assert cue(name).summary[0].islower()


def test_unknown_setting_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="anisotropic: no setting 'kapa'; did you mean kappa"):
        cue("anisotropic", kapa=3)


def test_unknown_cue_lists_the_known_ones():
    with pytest.raises(UserError, match=r"anisotropic.*texture"):
        cue("nonsense")


def test_the_documented_cues_are_listed():
    expected = {
        "texture", "quilting", "anisotropic", "robust", "bilateral", "cartoon", "gaussian", "patch", "stylized",
        "corrupted", "lowpass", "sketch", "silhouette", "grey", "hue", "rotation", "cast", "tiles", "word",
    }  # fmt: skip
    assert expected == set(cues()) == set(catalogue("cues"))
