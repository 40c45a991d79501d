"""`--values`: sweeps from the shell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cuewise.checks.study import is_described
from cuewise.cli import main
from cuewise.config import resolve
from cuewise.errors import UserError
from cuewise.report.study import read_figure
from cuewise.studies.labs import SHAPES, TUNING, Lab, lab_of
from cuewise.studies.ns_alpha import ALPHAS
from cuewise.studies.ns_patch_grid import ends
from cuewise.studies.results import figure_of
from cuewise.studies.study import Arm, Study, Sweep, choose
from cuewise.studies.sweep import swept
from cuewise.studies.table import Table
from tests.studies.tiny import STUDY, studied

pytestmark = pytest.mark.usefixtures("warm_start")


def names(study: str, *values: str) -> list[str]:
    asked = choose([study])
    lab = swept(SHAPES, asked, values)
    return [a.name for a in asked[0].arms(lab)]


def test_the_arms_are_those_of_the_values() -> None:
    assert names("ns-alpha", "0", "0.5", "5")[:3] == ["α = 0", "α = 0.5", "α = 5"]
    assert names("ns-alpha-color", "3", "0") == ["α = 0", "α = 3"]
    assert names("ns-bank", "64", "128")[:2] == ["K = 64", "K = 128"]
    assert names("ns-patch-grid", "2:4", "6:9")[1:3] == ["d = 2–4", "d = 6–9"]
    assert swept(SHAPES, choose(["oac"]), []) == SHAPES


def test_intervals_lie_in_the_plane_of_their_bounds() -> None:
    """A heat map: rows by upper bound, the highest above, columns by lower bound; no cell where no interval was trained."""
    study = choose(["ns-patch-grid"])[0]
    lab = swept(SHAPES, [study], ["2:4", "2:9", "6:9"])
    rows = {a.name: {s: {"clean": i + s / 10} for s in (0, 2)} for i, a in enumerate(study.arms(lab))}
    drawn = figure_of(study.figures[0], study, Table(rows), lab)
    assert drawn is not None
    assert drawn["kind"] == "grid"
    assert [(s["name"], s["x"], s["y"]) for s in drawn["series"]] == [
        ("9", ["2", "6"], [pytest.approx(2.1), pytest.approx(3.1)]),
        ("4", ["2", "6"], [pytest.approx(1.1), None]),
    ]
    assert figure_of(study.figures[1], study, Table(rows), lab) is None  # not measured
    page = read_figure(drawn)
    assert page["heat"]
    assert [s["y"] for s in page["series"]] == [s["y"] for s in drawn["series"]]
    assert ends(swept(SHAPES, [study], ["6:9", "2:4", "2:9"])) == ("2:4", "6:9")  # in any order


@pytest.mark.parametrize("lab", [SHAPES, lab_of(["p"], ["q"], ["p", "s"])], ids=lambda lab: lab.name)
@pytest.mark.parametrize("study", ["ns-patch-augment", "ns-patch-grid", "ssl-supervised"])
@pytest.mark.slow
def test_every_arm_is_a_configuration_with_the_same_steps(study: str, lab: Lab) -> None:
    arms = [resolve(lab.config(a.settings, a.method or lab.main, 0, 3)) for a in choose([study])[0].arms(lab)]
    assert len({(c.batch_size, c.epochs, tuple(c.data), c.optim.name, c.optim.lr) for c in arms}) == 1


def test_claims_are_judged_over_the_values() -> None:
    lab = swept(SHAPES, choose(["ns-alpha"]), ["0", "0.5", "5"])
    claim = next(c for c in choose(["ns-alpha"])[0].claims if c.number == "11")
    assert [d.label for d in claim.differences(lab)] == [
        "similarity/patch: α = 0.5 − α = 0",
        "similarity/patch: α = 5 − α = 0.5",
    ]


@pytest.mark.parametrize(
    ("study", "values", "why"),
    [
        (["oac"], ["1", "2"], "the study oac sweeps over nothing; those that do: .*ns-alpha"),
        (["ns-alpha", "ns-bank"], ["0", "2"], "run one at a time"),
        (["ns-alpha"], ["0", "x"], "give numbers"),
        (["ns-alpha"], ["1", "2"], "start with 0"),
        (["ns-alpha"], ["0", "-1"], "start with 0"),
        (["ns-alpha"], ["0"], "two or more"),
        (["ns-alpha"], ["0", "1", "1"], "two or more"),
        (["ns-bank"], ["0", "64"], "1 key or more"),
        (["ns-bank"], ["1.5", "64"], "whole numbers"),
        (["ns-patch-grid"], ["5:2", "4:9"], "5:2"),
    ],
)
def test_what_makes_no_sense_is_refused(study: list[str], values: list[str], why: str) -> None:
    with pytest.raises(UserError, match=why):
        swept(SHAPES, choose(study), values)


def even(text: str) -> int:
    if int(text) % 2:
        raise ValueError(f"{text} is odd")
    return int(text)


def sweeping(sweep: Sweep) -> Study:
    return replace(STUDY, sweep=sweep, arms=lambda lab: [Arm(f"w = {v}") for v in sweep.values(lab)])


def test_a_study_of_ones_own_sweeps_over_what_it_declares() -> None:
    """Its values have their place in the lab, and are refused for its own reasons."""
    study = sweeping(Sweep("widths", even, (8, 16), lambda lab, v: "too wide" if v[-1] > 64 else ""))
    assert [a.name for a in study.arms(SHAPES)] == ["w = 8", "w = 16"]
    assert [a.name for a in study.arms(swept(SHAPES, [study], ["10", "4"]))] == ["w = 4", "w = 10"]
    for values, why in (["3", "4"], "3 is odd"), (["4"], "two or more"), (["4", "128"], "too wide"):
        with pytest.raises(UserError, match=f"--values {','.join(values)}: .*{why}"):
            swept(SHAPES, [study], values)
    with pytest.raises(UserError, match="sweep over different things"):
        swept(SHAPES, [study, sweeping(Sweep("lengths", int))], ["2", "4"])
    named: Any = "widths"
    with pytest.raises(UserError, match="sweeps over nothing"):
        swept(SHAPES, [replace(STUDY, sweep=named)], ["2", "4"])
    with pytest.raises(UserError, match="not a Sweep"):
        is_described(replace(STUDY, sweep=named))


def test_tuning_keeps_the_weight_it_compares_at() -> None:
    with pytest.raises(UserError, match="α = 2, which must be among them"):
        swept(TUNING, choose(["tune"]), ["0", "1"])


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_values_are_trained_and_stored(tmp_path: Path) -> None:
    study = replace(
        STUDY,
        sweep=ALPHAS,
        arms=lambda lab: [Arm("plain", x=0), *(Arm("patch", lab.negative(a), x=a) for a in lab.alphas if a)],
    )
    studied([study], tmp_path / "out", seeds=1, values=["0", "2.5"], jobs="1")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["values"] == {"alphas": [0.0, 2.5]}
    assert found["studies"]["tiny"]["arms"][1]["settings"]["alpha"] == [2.5]


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_values_of_ones_own_are_trained_and_stored(tmp_path: Path) -> None:
    alphas = Sweep("weights", float, (1.0,))
    study = replace(
        STUDY, sweep=alphas, arms=lambda lab: [Arm(f"{a:g}", lab.negative(a)) for a in alphas.values(lab)]
    )
    studied([study], tmp_path / "out", seeds=1, values=["2", "3"], jobs="1")
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["values"] == {"weights": [2.0, 3.0]}
    assert [a["name"] for a in found["studies"]["tiny"]["arms"]] == ["2", "3"]


def test_values_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commas separate them; the first thing that is wrong with the numbers is said."""
    assert main(["reproduce", "ns-alpha", "--values", "1,2", "--out", str(tmp_path / "a")]) != 0
    assert "--values 1,2: start with 0" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
