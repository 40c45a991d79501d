"""Answers that need no torch come before torch could be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuewise import catalogue

HEAVY = ("torch", "timm", "torchvision", "numba", "cv2", "numpy", "PIL")
BUILT_IN = ("rand-augment", "rand-augment-geometry")  # registered as a user's would be
WITHOUT_TORCH = [
    ["--help"],
    ["--version"],
    ["pretrain", "--help"],
    ["audit", "--help"],
    ["pretrian"],
    ["pretrain", "x", "--out", "run", "--sise", "3"],
    ["list", "wonders"],
    ["completion", "bash"],
    ["runs", "nowhere"],
    ["clean"],
    *(["list", what] for what in catalogue.KINDS),
]


@pytest.mark.shell
def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys, cuewise\n"
        "from cuewise.cli import main\n"
        f"for words in {WITHOUT_TORCH!r}:\n"
        "    try: main(words)\n"
        "    except SystemExit: pass\n"
        f"    found = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "    assert not found, (words, found)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_models_are_those_of_the_libraries() -> None:
    import timm
    import torchvision

    names = torchvision.models.list_models(module=torchvision.models)
    expected = [f"torchvision/{n}" for n in names] + [
        f"timm/{n}" for n in timm.list_models(exclude_filters="cuewise*")
    ]
    assert [n for n in catalogue.models() if not n.startswith("cuewise/")] == expected


@pytest.mark.parametrize(
    "what",
    [
        "methods",
        "cues",
        "filters",
        "audits",
        "makers",
        "studies",
        "probes",
        "negatives",
        "augmentations",
        "measures",
    ],
)
def test_what_the_sources_declare_is_what_there_is(what: str) -> None:
    from cuewise.audits.audit import AUDITS
    from cuewise.cues.registry import CUES
    from cuewise.makers.registry import makers
    from cuewise.methods import methods
    from cuewise.probes.kinds import PROBES
    from cuewise.studies.measures.measure import MEASURES
    from cuewise.studies.study import studies
    from cuewise.views import NEGATIVES, augmentations

    known = {
        "methods": methods,
        "cues": CUES.all,
        "filters": lambda: {name: cue for name, cue in CUES.all().items() if cue.suppresses},
        "audits": AUDITS.all,
        "makers": makers,
        "studies": studies,
        "probes": PROBES.all,
        "negatives": NEGATIVES.all,
        "augmentations": lambda: {n: a for n, a in augmentations().items() if n in BUILT_IN or not a.own},
        "measures": MEASURES.all,
    }
    members = known[what]()
    assert catalogue.catalogue(what) == {name: member.summary for name, member in members.items()}  # type: ignore[attr-defined]


def test_settings_are_those_of_the_classes() -> None:
    import dataclasses

    from cuewise.config import Config
    from cuewise.cues.registry import CUES
    from cuewise.methods import methods
    from cuewise.methods.hard import HARD
    from cuewise.options import options_of

    listed = catalogue.settings()
    for group, kind in {
        "optim": "Optim",
        "views": "ViewSettings",
        "loop": "Loop",
        "labels": "Labels",
    }.items():
        fields = options_of(type(getattr(Config(), group)))
        assert [k for k in listed if k.startswith(f"{group}.")] == [f"{group}.{name}" for name in fields]
        assert all(fields[name].help in listed[f"{group}.{name}"] for name in fields), kind
    for name, method in methods().items():
        own = [f"{name}.{f.name}" for f in dataclasses.fields(method.Settings)]
        assert [k for k in listed if k.startswith(f"{name}.")] == own
        helps = {f"{name}.{o.name}": o.help for o in options_of(method.Settings).values()}
        assert set(helps) == set(own), "a setting has no help"
        assert all(listed[key].endswith(f"  {text}") for key, text in helps.items())
    hard = {f.name for kind in HARD.values() for f in dataclasses.fields(kind)}
    assert {k for k in listed if k.startswith("hard.")} == {f"hard.{name}" for name in hard}
    for name, cue in CUES.all().items():
        for option in options_of(cue).values() if cue.suppresses else ():
            assert option.help in listed[f"suppress.{option.name}"]
            assert name in listed[f"suppress.{option.name}"]
    assert all(text.split("  ")[1] for text in listed.values())
