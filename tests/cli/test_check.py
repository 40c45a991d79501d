"""`cuewise check`, on members that stand in a folder outside the package; and what such members can be used for."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import cuewise
from cuewise.checks.check import BATTERIES, check_members, checks_of
from cuewise.cli import main
from cuewise.data import open_data
from cuewise.errors import UserError
from cuewise.options import attribute
from cuewise.registry import Registry
from cuewise.views import augmentation

PAGE = (Path(__file__).parents[2] / "docs" / "extend.md").read_text(encoding="utf-8")
PACKAGE = Path(cuewise.__file__).parent
MEMBERS = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.S))

KINDS = (
    *("method", "cue", "negative", "augmentation", "audit", "probe", "maker", "study", "measure", "clue"),
    "source",
)
NAMES = dict(
    zip(
        KINDS,
        (
            *("Align", "Inverted", "Shuffled", "TINT", "brightness", "Nearest", "Mirrored", "STUDY"),
            *("length", "Contrast", "noise"),
        ),
    )
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
    known = {}
    for file in PACKAGE.rglob("*.py"):
        if re.search(r"= Registry[\[(]", file.read_text(encoding="utf-8")):
            name = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
            registries = [x for x in vars(import_module(name)).values() if isinstance(x, Registry)]
            known |= {x.kind: x for x in registries}
    assert {b.kind: attribute(b.registry) for b in BATTERIES} == known
    assert {b.kind for b in BATTERIES} == set(KINDS)
    for battery in BATTERIES:
        assert all(check.__doc__ for check in checks_of(battery))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
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
    "augmentation": ("int(rng.integers(3))", "int(np.random.randint(99)) % 3", "the same seed draws another"),
    "audit": ('"mean of 4 images")', '"")', "has no protocol"),
    "probe": ('temperature: Annotated[float, "of the one vote"]', "temperature: float", "has no help"),
    "maker": (
        "piece.image(), 0 if",
        "piece.image() + np.random.randint(9), 0 if",
        "differs from one made at once",
    ),
    "study": ("COLOR.claims,", "COLOR.claims * 2,", "two claims have the same number"),
    "measure": (
        '"length", "mean length of the features", "probe"',
        '"length", "mean length", "prob"',
        "no lab has",
    ),
    "clue": ("[look.grey.std()]", "[look.grey.std() + np.random.rand()]", "another number"),
    "source": ("np.random.default_rng(i)", "np.random.default_rng()", "another one when it is read again"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
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
        ("my_members:np", "is not a member of any kind"),
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


def install(work: Path, points: str) -> None:
    """What pip leaves of an installed package."""
    folder = work / "mine-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(points)


SMALL = "--model cuewise/resnet-tiny?width=8 --size 16 --batch-size 4 --steps 1 --workers 0"


def test_a_negative_of_an_installed_package_is_trained_with(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its name and by its place, with an option of its own; the methods list it among those that they take."""
    install(work, "[cuewise.negatives]\nshuffled = my_members:Shuffled\n")
    monkeypatch.syspath_prepend(str(work))
    run = f"pretrain shapes?n=8&size=16 {SMALL} --set moco.queue=16 --method moco"
    for number, spec in enumerate(("shuffled", "my_members:Shuffled", "shuffled?share=0.5")):
        assert main([*run.split(), "--out", f"run{number}", "--negatives", spec]) == 0, (
            capsys.readouterr().err
        )
    batches = [(work / f"run{n}" / "views.png").read_bytes() for n in range(3)]
    assert batches[0] == batches[1] != batches[2], "the option acts"
    capsys.readouterr()
    for spec, error in (
        ("shuffled?shore=1", "--negatives shuffled?shore=1: no option 'shore' of shuffled; it has: share"),
        ("shuffled?share", "'share' is not an option; write shuffled?option=value"),
        ("shuffled?share=much", "shuffled?share"),
        ("patch?side=3", "no option 'side' of patch; it has none"),
        ("regular", "it takes patch, shuffled, texture"),
    ):
        assert main([*run.split(), "--out", "refused", "--negatives", spec]) == 2
        assert error in capsys.readouterr().err
    assert main([*run.split(), "--out", "refused", "--negatives", "shuffled,shuffled?share=1"]) == 2
    assert "names a kind twice" in capsys.readouterr().err


def test_an_entry_point_makes_each_kind_known_by_name(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip leaves of an installed package: the names are listed without an import, and then found."""
    names = dict(zip(KINDS, ("align", "inverted", "shuffled", "tint", "brightness", "nearest", "mirrored")))
    names |= {"study": "my-color", "measure": "length", "clue": "contrast", "source": "noise"}
    registries = {b.kind: attribute(b.registry) for b in BATTERIES}
    points = "".join(f"[cuewise.{registries[k].plural}]\n{names[k]} = my_members:{NAMES[k]}\n" for k in KINDS)
    install(work, points)
    monkeypatch.syspath_prepend(str(work))
    for kind in KINDS:
        listed = cuewise.list("data" if kind == "source" else registries[kind].plural)
        assert names[kind] in listed, kind
    assert "my_members" not in sys.modules
    for kind in KINDS:
        assert registries[kind].get(names[kind]).name == names[kind]
    assert augmentation("tint").own
    assert len(open_data("noise?n=3")) == 3


@pytest.mark.slow
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
    looc = "--method looc --leave-out my_members:TINT --set looc.queue=16"
    words = f"pretrain my_members:noise?n=12 --out tint {looc} {small.replace('--set align.dim=8', '')}"
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
    assert all(isinstance(attribute(b.registry), Registry) for b in BATTERIES)


def test_settings_of_installed_members_are_listed(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    methods, negatives = "align = my_members:Align", "shuffled = my_members:Shuffled"
    install(work, f"[cuewise.methods]\n{methods}\n[cuewise.negatives]\n{negatives}\n")
    monkeypatch.syspath_prepend(str(work))
    assert main(["list", "settings"]) == 0
    shown = capsys.readouterr().out
    assert "align.dim" in shown
    assert "of the embedding" in shown
    assert "moco.queue" in shown
    assert "shuffled?share" in shown


DIMMED = '''
@dataclass(frozen=True)
class Dimmed(Cue):
    """Every value times a share."""

    name = "dimmed"
    summary = "darker"
    share: Annotated[float, "of the light that is left"] = 0.5

    def render(self, image, drawn):
        return (image * self.share).astype(np.uint8)
'''


def test_settings_of_a_cue_from_outside_stand_in_the_help_of_make(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typed and installed, as those of a built-in cue; one without settings has nothing to list."""
    (work / "my_members.py").write_text(MEMBERS + DIMMED)
    install(work, "[cuewise.cues]\ndimmed = my_members:Dimmed\n")
    monkeypatch.syspath_prepend(str(work))
    found = {}
    for kind in ("my_members:Dimmed", "dimmed", "my_members:Inverted"):
        with pytest.raises(SystemExit, match="0"):
            main(["make", kind, "--help"])
        found[kind] = capsys.readouterr().out
    for kind in ("my_members:Dimmed", "dimmed"):
        assert f"settings of {kind}, as --set key=value:" in found[kind]
        assert re.search(r"share +of the light that is left \[0\.5\]", found[kind])
    assert "as --set key=value" not in found["my_members:Inverted"]


OWN_METHOD = """
from cuewise.studies.study import Arm


def arms(lab):
    return [Arm("plain"), Arm("align", {"align": {"dim": 8}}, method="my_members:Align")]


ALIGNED = Study("aligned", "a method of one's own", arms, COLOR.measures, COLOR.claims, COLOR.figures)
"""


def test_a_study_may_train_a_method_from_outside(work: Path) -> None:
    """The lab has no settings for it; what the method does not know is still refused."""
    (work / "my_members.py").write_text(MEMBERS + OWN_METHOD)
    assert check_members("my_members:ALIGNED")["checked"] == "study aligned"
    (work / "my_members.py").write_text(MEMBERS + OWN_METHOD.replace('{"dim"', '{"dimm"'))
    del sys.modules["my_members"]
    shutil.rmtree(work / "__pycache__", ignore_errors=True)
    with pytest.raises(UserError, match="dimm"):
        check_members("my_members:ALIGNED")
