"""The audit verb end to end: documents, report, refusals; every registered audit answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuewise import UserError, audit, compare
from cuewise.audits.sets import is_conflict
from cuewise.cli import main
from cuewise.data import open_data

pytestmark = pytest.mark.slow

MODEL = "cuewise/resnet-tiny?width=8"
TRAIN = "shapes:aligned?n=160&size=32&rho=1"
CONFLICT = "shapes:conflict?n=96&size=32"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("audit") / "a"
    sets = {"train": [TRAIN], "test": [CONFLICT, "shapes:aligned?n=64&size=32&part=test"]}
    audit(MODEL, out=str(out), **sets, limit=24)  # type: ignore[arg-type]
    return out


def test_the_document_is_what_the_face_says(audited: Path) -> None:
    document = json.loads((audited / "audit.json").read_text())
    assert {"cuewise", "model", "scores", "tables"} <= set(document)
    for s in document["scores"]:
        assert set(s) == {"name", "value", "low", "high", "n", "protocol"}
        assert s["protocol"]
    assert len(document["draws"]["shape_bias"]) == 8  # of the probe's training images
    by_name = {s["name"]: s for s in document["scores"]}
    assert {"shape_bias", "shape_accuracy", "texture_accuracy", "similarity/patch"} <= set(by_name)
    assert by_name["shape_accuracy"]["n"] == 96
    for item in document["galleries"]["shape_bias"]["items"]:
        assert (audited / item["image"]).is_file()
    for name in ("report.html", "report.md", "scores.csv"):
        assert (audited / name).stat().st_size > 0


def test_a_conflict_set_is_known_by_its_names() -> None:
    assert is_conflict(open_data("shapes:conflict?n=50&size=16"))
    assert not is_conflict(open_data("shapes:aligned?n=50&size=16"))


def test_two_models_in_one_report_and_compare(tmp_path: Path) -> None:
    models = [MODEL, "cuewise/resnet-tiny?width=16"]
    result = audit(*models, out=str(tmp_path / "both"), train=[TRAIN], test=[CONFLICT], only="shape_bias")
    assert len(result["models"]) == 2
    folders = sorted(p.parent for p in (tmp_path / "both").glob("*/audit.json"))
    assert len(folders) == 2
    again = compare(*map(str, folders), out=str(tmp_path / "compared"))
    assert Path(again["report"]).is_file()


def test_refusals(audited: Path, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(UserError, match="not empty"):
        audit(MODEL, out=str(audited))
    with pytest.raises(UserError, match="no audit 'sahpe_bias'"):
        audit(MODEL, out=str(tmp_path / "x"), only="sahpe_bias")
    with pytest.raises(UserError, match="no MODEL"):
        audit(out=str(tmp_path / "y"))
    with pytest.raises(UserError, match="neither an audit"):
        compare(str(folder), str(audited), out=str(tmp_path / "z"))
    with pytest.raises(UserError, match=rf"there is no such folder; did you mean {audited}\?"):
        compare(f"{audited}2", str(audited), out=str(tmp_path / "z"))
    with pytest.raises(UserError, match="there is no such folder; give folders of"):
        compare(str(tmp_path / "qqqqqq"), str(audited), out=str(tmp_path / "z"))
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "x.txt").write_text("mine")
    with pytest.raises(UserError, match="did not write"):
        audit(MODEL, out=str(tmp_path / "precious"), overwrite=True)


def test_models_are_printed_side_by_side(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [MODEL, "cuewise/resnet-tiny?width=16"]
    data = ["--train", str(folder), "--test", str(folder), "--size", "32", "--only", "color", "--limit", "6"]
    assert main(["audit", *models, "--out", str(tmp_path / "a"), *data]) == 0
    said = capsys.readouterr()
    assert [f"WARNING: {m} has RANDOM WEIGHTS" in said.err for m in models] == [True, True]
    lines = said.out.splitlines()
    assert lines[0].split() == ["score", "resnet-tiny?width=8", "resnet-tiny?width=16", "n"]
    assert [line.split()[0] for line in lines[1:4]] == [
        f"color/{c}/accuracy" for c in ("clean", "grey", "hue")
    ]
    assert all(0 <= float(v) <= 1 for line in lines[1:4] for v in line.split()[1:-1])
