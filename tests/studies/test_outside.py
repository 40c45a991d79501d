"""A study and a measure from outside of the package, by `module:NAME`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuewise.cli import main
from cuewise.errors import UserError
from cuewise.registry import member_modules
from cuewise.studies.study import choose, studies
from tests.studies.tiny import STUDY, studied

pytestmark = pytest.mark.usefixtures("warm_start")

MODULE = """
import numpy as np
from cuewise.studies.claims import Claim, below
from cuewise.studies.measures import measure
from cuewise.studies.study import Arm, Figure, Study

@measure("norm", "mean length of the features", "probe")
def norm(arm):
    found = arm.model.features(arm.data("probe"))
    return {"norm": float(np.linalg.norm(found.features, axis=1).mean())}


MINE = Study(
    name="mine",
    summary="A study of my own",
    arms=lambda lab: [Arm("plain"), Arm("patch", lab.negative(1.0))],
    measures=("clean", "my_studies:norm"),
    claims=(Claim("M1", "patch negatives shorten features", "C", lambda lab: [below("patch", "plain", "norm")]),),
    figures=(Figure("norm", "Norm", "arm", "norm", ("norm",), lambda lab: {"": ["plain", "patch"]}),),
)
not_a_study = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_studies.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "my_studies"


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_study_from_outside(module: str, tmp_path: Path) -> None:
    found = studied([f"{module}:MINE"], tmp_path / "out", seeds=2)
    assert "mine claim M1 (C)" in found
    study = json.loads((tmp_path / "out" / "results.json").read_text())["studies"]["mine"]
    assert study["quantities"] == ["clean", "norm"]
    plain, patch = ([s["norm"] for s in arm["seeds"].values()] for arm in study["arms"])
    expected = sum(b - a for a, b in zip(plain, patch)) / 2
    assert study["claims"][0]["differences"][0]["mean"] == pytest.approx(expected)
    assert list(study["figures"]) == ["norm"]


def test_what_is_not_a_study(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="my_studies:not_a_study is not a study"):
        choose([f"{module}:not_a_study"])
    assert main(["reproduce", f"{module}:NOTHING", "--out", str(tmp_path / "out")]) == 2
    assert "my_studies has no 'NOTHING'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_studies_are_found_by_what_they_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the name of the file: one more file in the package is one more study."""
    before = set(studies())
    more = [*member_modules("cuewise.studies"), "tests.studies.tiny"]
    monkeypatch.setattr("cuewise.registry.member_modules", lambda package: more)
    assert set(studies()) == before | {STUDY.name}
