"""`cuewise check`, on members that stand in a folder outside the package; and what such members can be used for."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuewise.checks.check import BATTERIES, check_members, checks_of
from cuewise.cli import main
from cuewise.registry import Registry

MEMBERS = '''
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from cuewise.audits.audit import Finding, audit
from cuewise.cues.cue import Cue
from cuewise.data.openers import source
from cuewise.encoders.heads import mlp, unit
from cuewise.makers.maker import Maker, Picture
from cuewise.methods import Method, MethodSettings, Step
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.knn import KNNProbe
from cuewise.probes.task import classify
from cuewise.scores import Score
from cuewise.studies.ns_color import STUDY as COLOR
from cuewise.studies.study import Study
from cuewise.views.negatives import Negative


@dataclass(frozen=True)
class Settings(MethodSettings):
    """Width of the embedding."""

    dim: Annotated[int, "of the embedding"] = 16


class Align(Method):
    """Two views agree, and each feature has variance."""

    name = "align"
    summary = "two views agree, features keep their variance"
    citation = "after Bardes et al. 2022"
    views = {"query": "simclr", "key": "simclr"}
    optim = {"name": "adam", "lr": 1e-3, "reference_batch": 256, "weight_decay": 1e-6}
    Settings = Settings

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.projector = mlp([self.encoder.dim, self.encoder.dim, self.settings.dim], norm=True)

    def forward(self, batch):
        a, b = (self.projector(self.encoder(batch.views[role])) for role in self.views)
        spread = sum((1 - z.std(0)).relu().mean() for z in (a, b))
        return Step((a - b).square().mean() + spread, unit(a.detach()), unit(b.detach()))


@dataclass(frozen=True)
class Inverted(Cue):
    """255 minus every value."""

    name = "inverted"
    summary = "every colour is its opposite"
    suppresses = True

    def render(self, image, drawn):
        return 255 - image


@dataclass(frozen=True)
class Shuffled(Negative):
    """The pixels of the view in another order."""

    name = "shuffled"
    summary = "the pixels of the view in random order"

    def sample(self, rng, size):
        return tuple(rng.permutation(size * size) for _ in range(self.count))

    def render(self, origin, drawn, number):
        return np.ascontiguousarray(origin.view.reshape(-1, 3)[drawn].reshape(origin.view.shape))


@audit("brightness", "mean value of the images that are asked about", question="How bright is the test set?")
def brightness(subject):
    images = [subject.base[1].image(i) for i in range(4)]
    value = float(np.mean([image.mean() for image in images])) / 255
    return Finding(scores=[Score("brightness", value, value, value, len(images), "mean of 4 images")])


@dataclass(frozen=True)
class Nearest(ProbeKind):
    """The nearest training image answers."""

    name = "nearest"
    summary = "the class of the nearest training image"
    estimator = KNNProbe
    temperature: Annotated[float, "of the one vote"] = 0.07

    def run(self, task):
        return classify(task, KNNProbe(1, self.temperature))


@dataclass(frozen=True)
class Mirrored(Maker):
    """Left and right exchanged."""

    name = "mirrored"
    summary = "left and right exchanged"
    vertical: Annotated[bool, "top and bottom instead"] = False

    def draw(self, piece, seed):
        yield Picture(np.ascontiguousarray(np.flip(piece.image(), 0 if self.vertical else 1)), seed)


class Noise:
    """Images of noise, in two classes."""

    object_classes, columns, classes = (), {}, ("a", "b")

    def __init__(self, n: int = 16, size: int = 24) -> None:
        self.n, self.size = n, size
        self.labels = np.arange(n) % 2

    def __len__(self):
        return self.n

    def name(self, i):
        return f"{self.classes[self.labels[i]]}/{i:04d}.png"

    def image(self, i):
        return np.random.default_rng(i).integers(0, 256, (self.size, self.size, 3), dtype=np.uint8)

    def read(self, i):
        return None

    def facts(self, i):
        from cuewise.data.sample import NOTHING

        return NOTHING

    def fingerprint(self):
        one = {"data": "noise", "kind": "noise", "count": self.n, "hash": f"{self.n} {self.size}"}
        return {"count": self.n, "hash": one["hash"], "sources": [one], "skipped": []}


@source("noise", "images of uniform noise")
def noise(n: int = 16, size: int = 24):
    return Noise(n, size)


STUDY = Study("my-color", "colour, again", COLOR.arms, COLOR.measures, COLOR.claims, COLOR.figures)
'''

KINDS = ("method", "cue", "negative", "audit", "probe", "maker", "study", "source")
NAMES = dict(
    zip(KINDS, ("Align", "Inverted", "Shuffled", "brightness", "Nearest", "Mirrored", "STUDY", "noise"))
)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with my_members.py in it."""
    (tmp_path / "my_members.py").write_text(MEMBERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_members", raising=False)
    yield tmp_path
    sys.modules.pop("my_members", None)


def test_every_registry_has_a_battery() -> None:
    """A kind of member without checks would be promised and not kept."""
    assert [b.kind for b in BATTERIES] == list(KINDS)
    for battery in BATTERIES:
        assert all(check.__doc__ for check in checks_of(battery))


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_of_ones_own_passes(kind: str, work: Path) -> None:
    found = check_members(f"my_members:{NAMES[kind]}")
    assert found["checked"].startswith(f"{kind} ")
    battery = next(b for b in BATTERIES if b.kind == kind)
    assert found["passed"] == len(checks_of(battery))


BROKEN = {
    "method": ("self.projector = mlp(", "self.unused = mlp([2, 2])\n        self.projector = mlp(", "unused"),
    "cue": ("return 255 - image", "return image", "the result shares memory"),
    "negative": (
        "rng.permutation(size * size)",
        "np.random.permutation(size * size)",
        "the same seed gives another",
    ),
    "audit": ('"mean of 4 images")', '"")', "has no protocol"),
    "probe": ('temperature: Annotated[float, "of the one vote"]', "temperature: float", "has no help"),
    "maker": (
        "piece.image(), 0 if",
        "piece.image() + np.random.randint(9), 0 if",
        "differs from one made at once",
    ),
    "study": ("COLOR.claims,", "COLOR.claims * 2,", "two claims have the same number"),
    "source": ("np.random.default_rng(i)", "np.random.default_rng()", "another one when it is read again"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_promise_is_named(kind: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after, error = BROKEN[kind]
    assert before in MEMBERS
    (work / "my_members.py").write_text(MEMBERS.replace(before, after))
    shutil.rmtree(work / "__pycache__", ignore_errors=True)
    assert main(["check", f"my_members:{NAMES[kind]}"]) == 2
    said = capsys.readouterr().err
    assert error in said.splitlines()[-1]
    assert "FAIL" in said


def test_a_module_is_searched_for_members(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuewise.checks.check.checks_of", lambda battery: [lambda member: None])
    found = check_members("my_members")
    for word in ("method align", "cue inverted", "audit brightness", "study my-color", "source noise"):
        assert word in found["checked"]
    assert found["passed"] == len(KINDS)


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("my_members:np", "is no member of any kind"),
        ("json", "defines no member"),
        ("nowhere_at_all", "cannot import nowhere_at_all"),
        ("my_members:Aling", "did you mean Align?"),
    ],
)
def test_what_cannot_be_checked(
    spec: str, error: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", spec]) == 2
    assert error in capsys.readouterr().err


def test_everything_at_once_in_the_shell(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A method, negative, filter and source of one's own in one run; then a probe and an audit of it."""
    small = (
        "--model cuewise/resnet-tiny?width=8 --size 16 --batch-size 4 --steps 2 --workers 0 --set align.dim=8"
    )
    own = "--method my_members:Align --suppress my_members:Inverted"
    assert main(f"pretrain my_members:Noise?n=12 --out run {own} {small}".split()) == 0
    moco = "--method moco --negatives my_members:Shuffled --set moco.queue=16"
    words = f"pretrain my_members:noise?n=12 --out other {moco} {small.replace('--set align.dim=8', '')}"
    assert main(words.split()) == 0
    train = "--train shapes?n=32&size=16"
    assert main(f"probe my_members:Nearest run {train} --temperature 0.1".split()) == 0
    assert main(f"audit run --out audit {train} --only my_members:brightness --limit 8".split()) == 0
    assert (
        main(
            [
                "make",
                "my_members:Mirrored",
                "my_members:noise?n=4",
                "made",
                "--workers",
                "0",
                "--set",
                "vertical=true",
            ]
        )
        == 0
    )
    assert main(["list", "methods"]) == 0
    assert "brightness" in capsys.readouterr().out
    assert main(["pretrain", "my_members:noise?m=12", "--out", "no"]) == 2
    assert "no option 'm'" in capsys.readouterr().err


def test_registries_are_those_of_the_batteries() -> None:
    from cuewise.options import attribute

    assert all(isinstance(attribute(b.registry), Registry) for b in BATTERIES)
