"""A whole study: trained, measured, judged, written; kept, shared, and gone on with after a kill."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

import cuewise
from cuewise.cli import main
from cuewise.config import merge
from cuewise.errors import UserError
from cuewise.studies.cautions import cautions
from cuewise.studies.jobs import ArmJob, departures, is_trained, job_of, run_job
from cuewise.studies.labs import SHAPES, lab_of
from cuewise.studies.plan import StudyPlan, spoken
from cuewise.studies.results import table_of
from cuewise.studies.run import in_precision, with_method
from cuewise.studies.statistics import t_interval
from cuewise.studies.study import Arm
from cuewise.studies.timing import fitting_epochs
from tests.conftest import photograph
from tests.studies.tiny import LAB, LONG, STUDY, studied

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_start")]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny study, run once in two processes."""
    out = tmp_path_factory.mktemp("study") / "out"
    result = studied([STUDY], out, seeds=3, jobs="2")
    assert set(result) == {"tiny claim 1 (B)", "tiny claim 2 (C)", "results", "report", "took"}
    return out


def test_results(done: Path) -> None:
    found = json.loads((done / "results.json").read_text())
    study = found["studies"]["tiny"]
    assert found["seeds"] == [0, 1, 2]
    assert found["runs"] == found["trained_now"] == 6
    assert [a["name"] for a in study["arms"]] == ["plain", "patch"]
    assert study["quantities"] == ["clean", "shape_bias", "shape_accuracy", "texture_accuracy"]
    plain, patch = study["arms"]
    values = {a["name"]: [s["clean"] for s in a["seeds"].values()] for a in study["arms"]}
    assert plain["means"]["clean"][0] == pytest.approx(sum(values["plain"]) / 3)
    paired = [b - a for a, b in zip(values["plain"], values["patch"])]
    assert patch["differences"]["clean"][0] == pytest.approx(sum(paired) / 3)
    assert study["claims"][1]["verdict"] == "not measured"
    claim = study["claims"][0]
    mean, low, high = t_interval(paired)
    drawn = {
        a["name"]: [[s[f"draw/{b}/clean"] for s in a["seeds"].values()] for b in range(8)]
        for a in study["arms"]
    }
    moved = np.subtract(drawn["patch"], drawn["plain"])
    half = np.hypot(high - mean, stats.t.ppf(0.975, 7) * moved.mean(1).std(ddof=1))
    low, high = mean - half, mean + half
    assert [claim["differences"][0][k] for k in ("mean", "low", "high")] == pytest.approx([mean, low, high])
    expected = "held" if low > 0 else "opposite" if high < 0 else "leaning" if mean > 0 else "not held"
    assert claim["verdict"] == expected
    assert claim["seeds"] == 3
    assert study["figures"]["clean"]["series"][0]["x"] == [0, 1]


def test_tables_and_page(done: Path) -> None:
    text = (done / "results.md").read_text()
    assert "| 1. patches help \\| a little | B | **" in text
    assert "| clean | 0." in text
    glance = text.partition("## At a glance")[2].partition("\n## ")[0]
    assert re.search(
        r"\| 1\. patches help \\\| a little \| \*\*.+\*\* \| 3 \| clean: patch − plain [+-]0", glance
    )
    assert "**Warning:** 3 seeds, and 5 or more are needed" in text
    assert "Paired differences to plain:" in text
    page = (done / "report.html").read_text()
    assert "0 of 1 claims held" in page or "1 of 1 claims held" in page
    assert "1 could not be measured" in page
    assert 'id="figure-0"' in page
    assert "1 epochs" not in text + page
    assert [spoken(n) for n in ([1, 1], [6], [18, 6])] == ["1 epoch", "6 epochs", "6 and 18 epochs"]


def test_arms_share_seed_and_order(done: Path) -> None:
    """The first batch of an arm is that of every other arm with the same seed: their first views are equal."""
    study = json.loads((done / "results.json").read_text())["studies"]["tiny"]
    import yaml

    for a, b in zip(*(arm["runs"] for arm in study["arms"])):
        first, second = (yaml.safe_load((done / "arms" / n / "config.yaml").read_text()) for n in (a, b))
        assert first["seed"] == second["seed"]
        assert {k for k in first if first[k] != second[k]} <= {"negatives", "alpha", "patch_size"}


@pytest.mark.usefixtures("in_process")
def test_a_second_call_trains_nothing(done: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (done / "arms").rglob("*") if ".cuewise" not in p.parts}
    results = json.loads((done / "results.json").read_text())
    studied([STUDY], done, seeds=3)
    again = json.loads((done / "results.json").read_text())
    assert again["trained_now"] == 0
    assert again["studies"] == results["studies"]
    assert {
        p: p.stat().st_mtime_ns for p in (done / "arms").rglob("*") if ".cuewise" not in p.parts
    } == before


@pytest.mark.usefixtures("in_process")
def test_another_study_finds_the_arms(done: Path) -> None:
    """Trained arms are shared by their hash; only what is new is measured."""
    other = replace(STUDY, name="other", arms=lambda lab: [Arm("same", lab.negative(1.0), x=0)], measures=("clean",),
                    figures=(), claims=())  # fmt: skip
    count = len(list((done / "arms").iterdir()))
    studied([other], done, seeds=3)
    assert len(list((done / "arms").iterdir())) == count
    studied([STUDY], done, seeds=3)


@pytest.mark.usefixtures("in_process")
def test_some_arms_only(done: Path) -> None:
    studied([STUDY], done, seeds=3, arms=["pa*"])
    found = json.loads((done / "results.json").read_text())
    study = found["studies"]["tiny"]
    assert [a["name"] for a in study["arms"]] == ["patch"]
    assert found["trained_now"] == 0
    assert {c["verdict"] for c in study["claims"]} == {"not measured"}
    with pytest.raises(UserError, match=r"--arms nothing: no arm has such a name; there are: plain, patch"):
        studied([STUDY], done, arms=["nothing"])
    studied([STUDY], done, seeds=3)


def test_precision_is_part_of_an_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, short = (in_precision(LAB, p).config({}, "moco", 0, 1) for p in ("auto", "32"))
    assert short["precision"] == "32"
    assert job_of(plain, tmp_path, ()).folder != job_of(short, tmp_path, ()).folder
    with pytest.raises(UserError, match=r"--precision 8: auto, 32, bf16 or 16"):
        studied([STUDY], tmp_path / "out", precision="8")
    monkeypatch.setattr("cuewise.train.distributed.cpu_has_bf16", lambda: False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="no bf16 arithmetic"):
        studied([STUDY], tmp_path / "out", precision="bf16")
    assert not (tmp_path / "out").exists()  # refused before anything is written


def test_another_method() -> None:
    lab = with_method(LAB, "moco")
    assert with_method(LAB, None) == LAB
    assert lab.main == "moco"
    assert lab.config({}, lab.main, 0, 1)["method"] == "moco"
    with pytest.raises(UserError, match="--method byol: this lab has settings for moco and simclr"):
        with_method(SHAPES, "byol")


@pytest.mark.usefixtures("in_process")
def test_a_study_may_train_longer(tmp_path: Path) -> None:
    longer = replace(STUDY, name="longer", times=2)
    studied([longer], tmp_path / "out", seeds=1, arms=["plain"])
    assert json.loads((tmp_path / "out" / "results.json").read_text())["epochs"] == {"longer": 2}
    studied([longer], tmp_path / "out", seeds=1, arms=["plain"], epochs=1)  # said is said
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["epochs"] == {"longer": 1}
    assert found["trained_now"] == 1


@pytest.mark.usefixtures("in_process")
def test_a_changed_protocol_measures_again_without_training(done: Path) -> None:
    lab = replace(LAB, sets={**LAB.sets, "clean": ["shapes:aligned?rho=1&n=48&part=test&size=32"]})
    files = len(list((done / "arms").rglob("measured/clean-*.json")))
    checkpoints = [p.stat().st_mtime_ns for p in (done / "arms").rglob("last.ckpt")]
    studied([STUDY], done, lab=lab, seeds=3)
    assert len(list((done / "arms").rglob("measured/clean-*.json"))) == 2 * files
    assert [p.stat().st_mtime_ns for p in (done / "arms").rglob("last.ckpt")] == checkpoints


def test_the_hash_identifies_what_matters(tmp_path: Path) -> None:
    def name(**changes: object) -> str:
        return Path(job_of(merge(LAB.config({}, "moco", 0, 1), changes), tmp_path, ()).folder).name

    base = name()
    assert name(workers="3") == base
    assert name(devices="cpu") == base
    assert name(seed=1) != base
    assert name(epochs=2) != base
    assert name(data=["shapes:aligned?rho=1&n=96&size=32"]) != base
    assert name(moco={"temperature": 0.3}) != base


def test_departures_leave_defaults_out() -> None:
    from cuewise.config import resolve

    found = departures(
        resolve({"method": "moco", "epochs": 7, "moco": {"queue": 64}, "workers": "0"}).as_dict()
    )
    assert found == {"method": "moco", "epochs": 7, "moco": {"queue": 64}}


def test_an_arm_of_other_settings_is_trained_again(tmp_path: Path) -> None:
    """A folder whose saved settings say something else (an older default) is not taken for this arm."""
    job = job_of(LAB.config({}, "moco", 0, 1), tmp_path, ())
    run_job(job, LAB)
    assert is_trained(job)
    file = Path(job.folder) / "config.yaml"
    file.write_text(file.read_text().replace("temperature: 0.2", "temperature: 0.7"))
    assert not is_trained(job)
    run_job(job, LAB)
    assert is_trained(job)
    assert "temperature: 0.2" in file.read_text()


@pytest.mark.usefixtures("in_process")
def test_a_failing_arm_says_why(tmp_path: Path) -> None:
    lab = replace(LAB, base={**LAB.base, "model": "cuewise/nothing"})
    with pytest.raises(UserError, match="nothing"):
        studied([STUDY], tmp_path / "out", lab=lab, seeds=1)


def test_too_few_images_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    lab = replace(LAB, base={**LAB.base, "batch_size": 4096})
    with pytest.raises(
        UserError, match=r"64 images are fewer than one batch .* give --data with 4096 or more$"
    ):
        studied([STUDY], tmp_path / "out", lab=lab, seeds=1)
    assert not [*(tmp_path / "out").glob("arms/*")]


def test_a_strange_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"x")
    for overwrite in (False, True):
        with pytest.raises(UserError, match=r"not a study|did not write"):
            studied([STUDY], tmp_path, overwrite=overwrite)
    assert (tmp_path / "holiday.jpg").exists()


def test_epochs_that_fit_a_budget() -> None:
    # two runs that need a second for an epoch
    assert fitting_epochs(20, 1, 100, [1.0, 1.0], 0.0) == 10
    assert fitting_epochs(20, 2, 100, [1.0, 1.0], 0.0) == 20
    assert fitting_epochs(20, 1, 100, [1.0, 1.0], 5.0) == 5
    assert fitting_epochs(20, 1, 100, [1.0, 3.0], 0.0) == 5  # the second trains three times as long
    assert fitting_epochs(20, 1, 8, [1.0, 1.0], 0.0) == 8  # never more than the lab is made for
    assert fitting_epochs(0.1, 1, 8, [1.0, 1.0], 0.0) == 1


@pytest.mark.usefixtures("in_process")
def test_a_budget_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    studied([STUDY], tmp_path / "out", lab=LONG, seeds=1, budget=0.02)
    said = capsys.readouterr().err
    assert "--budget 0.02 minutes: 1 of 20 epochs" in said
    assert json.loads((tmp_path / "out" / "results.json").read_text())["epochs"] == {"tiny": 1}
    studied([STUDY], tmp_path / "out", lab=LONG, seeds=1, budget=0.02)
    assert "timing" not in capsys.readouterr().err


def test_job_is_plain_json() -> None:
    job = ArmJob({"seed": 1}, "x", ("clean",), 3)
    content = json.loads(job.to_json(LAB))
    assert ArmJob(**{k: v for k, v in content.items() if k != "lab"}).config == {"seed": 1}


@pytest.mark.usefixtures("in_process")
def test_as_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Photographs on disk, by `cuewise reproduce`: one step per run."""
    rng = np.random.default_rng(0)
    for domain in ("photos", "ood/a", "ood/b"):
        for name in ("ant", "bee"):
            (tmp_path / domain / name).mkdir(parents=True)
            for i in range(66):
                Image.fromarray(photograph(rng)).save(tmp_path / domain / name / f"{i}.jpg", quality=90)
    monkeypatch.chdir(tmp_path)
    words = "reproduce looc-color --data photos --ood ood/a ood/b --out out --epochs 1 --seeds 1 --json found.json"
    monkeypatch.setattr("sys.argv", ["cuewise", *words.split()])
    assert main(words.split()) == 0
    printed = capsys.readouterr()
    assert (
        "WARNING: no --val: clean, rotation, colour and heads are measured on a held-out fifth" in printed.err
    )
    for file in ("results.md", "results.json", "report.html"):
        assert (
            "which the probes have not seen but the encoders were pretrained on"
            in (tmp_path / "out" / file).read_text()
        )
    assert "looc-color claim 31 (B)" in printed.out
    assert "took" in printed.out
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["lab"] == "photographs"
    assert {"clean", "colour", "ood/b", "texture_free"} <= set(found["studies"]["looc-color"]["quantities"])
    assert found["command"].startswith("cuewise reproduce looc-color --data photos")
    assert "looc-color claim 31 (B)" in json.loads((tmp_path / "found.json").read_text())


def test_mistakes_in_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, said in (
        ("reproduce nothing --out out", "no study 'nothing'"),
        ("reproduce ns-alpha --out out --seeds 0", "--seeds 0"),
        ("reproduce ns-alpha --out out --jobs many", "--jobs many"),
        ("reproduce ns-alpha --out out --data nowhere", "nowhere"),
    ):
        assert main(words.split()) == 2, words
        complaint = capsys.readouterr().err
        assert said in complaint
        assert len(complaint.strip().splitlines()) == 1


def test_a_study_shows_only_what_it_asked_for() -> None:
    """A run that two studies share carries the measures of both."""
    plan = StudyPlan(LAB, (0,), 1, [], {"tiny": {"plain": [0]}})
    found = [{"clean": {"clean": 0.5}, "similarity": {"similarity/patch": 0.1}}]
    assert table_of(STUDY, plan, found).quantities == ["clean"]


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three folders of different photographs, two classes each."""
    rng = np.random.default_rng(0)
    for part in ("photos", "val", "other"):
        for name in ("ant", "bee"):
            (tmp_path / part / name).mkdir(parents=True)
            for i in range(6):
                Image.fromarray(photograph(rng)).save(tmp_path / part / name / f"{i}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_no_validation_set_is_a_warning(pictures: Path) -> None:
    """The probe is tested on images that the encoder was pretrained on."""
    (said,) = cautions(lab_of(["photos"], [], []), 5)
    assert said.startswith(
        "no --val: clean, rotation, colour and heads are measured on a held-out fifth of --data"
    )
    assert cautions(lab_of(["photos"], ["val"], ["photos", "other"]), 5) == []
    assert cautions(SHAPES, 5) == []


def test_test_images_that_were_trained_on(pictures: Path) -> None:
    """Found by content, whatever their names: all of them are refused, some are counted."""
    for extra in ("photos/ant/0.png", "photos/ant/1.png"):
        (pictures / "val/bee" / f"copy-{Path(extra).name}").write_bytes((pictures / extra).read_bytes())
    (said,) = cautions(lab_of(["photos"], ["val"], []), 5)
    assert "--val val, compared with --data: 2 of 14 test images are training images" in said
    with pytest.raises(UserError, match="--val photos: all of its 12 images are in --data as well"):
        cuewise.reproduce("looc-color", out=pictures / "out", data="photos", val="photos")
    with pytest.raises(UserError, match="--ood val: all of its 14 images are in its first domain as well"):
        cautions(lab_of(["photos"], [], ["val", "val"]), 5)
    assert not (pictures / "out").exists()
