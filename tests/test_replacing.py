"""--overwrite: what it replaces is kept until the new content has made its first step, and comes back if it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cuewise
from cuewise import UserError
from cuewise.audits.saved import FOLDER, Saved
from cuewise.folders import HIDDEN, entries, hold_folder
from cuewise.train import loop
from tests.audits.small_models import ENCODER, photos
from tests.studies.conftest import in_process as in_process
from tests.studies.tiny import STUDY, studied

pytestmark = pytest.mark.usefixtures("warm_start")

RUN: dict[str, Any] = {
    "model": "cuewise/resnet-tiny?width=8",
    "size": 32,
    "batch_size": 8,
    "workers": "0",
    "epochs": 1,
}
AUDIT: dict[str, Any] = {"only": "color", "size": 32, "limit": 4, "workers": "0"}


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


def content(out: Path) -> dict[str, bytes]:
    """All files of a folder except cuewise's own."""
    files = [f for f in sorted(out.rglob("*")) if f.is_file() and HIDDEN not in f.parts]
    return {f.relative_to(out).as_posix(): f.read_bytes() for f in files}


def replaced(out: Path) -> Path:
    return out / HIDDEN / "replaced"


@pytest.mark.parametrize("steps", [0, 1])
def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    out, optimise, done = tmp_path / "run", loop.optimise, []
    cuewise.pretrain("shapes:aligned?n=24&size=32", out=out, **RUN)
    before = content(out)

    def dying(*args: Any) -> Any:
        assert replaced(out).exists() == (not done)
        if len(done) == steps:
            raise Killed
        done.append(1)
        return optimise(*args)

    monkeypatch.setattr(loop, "optimise", dying)
    with pytest.raises(Killed):
        cuewise.pretrain("shapes:aligned?n=24&size=32", out=out, overwrite=True, seed=1, **RUN)
    assert (content(out) == before) == (steps == 0)
    assert ("seed: 1" in (out / "config.yaml").read_text()) == (steps == 1)


@pytest.fixture
def audited(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A finished audit, and its options."""
    train, test = photos(tmp_path / "train", 3), photos(tmp_path / "test", 2, seed=1)
    options = {**AUDIT, "train": [str(train)], "test": [str(test)]}
    cuewise.audit(ENCODER, out=tmp_path / "audit", **options)
    return tmp_path / "audit", options


def test_an_audit(audited: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    out, options = audited
    before, keep = content(out), Saved.keep

    def dying(*args: Any, **how: Any) -> None:
        raise Killed

    monkeypatch.setattr("cuewise.audits.plan.run_passes", dying)
    with pytest.raises(Killed):
        cuewise.audit(ENCODER, out=out, overwrite=True, seed=1, **options)
    assert content(out) == before
    monkeypatch.undo()

    def kept(*args: Any) -> None:
        keep(*args)
        assert not replaced(out).exists()
        raise Killed

    monkeypatch.setattr(Saved, "keep", kept)
    with pytest.raises(Killed):
        cuewise.audit(ENCODER, out=out, overwrite=True, seed=1, **options)
    assert [p.name for p in entries(out)] == [FOLDER]


def test_an_audit_that_is_killed_while_it_cleans_up(
    audited: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is finished: the same command is refused as for any finished audit, and --overwrite makes a new one."""
    out, options = audited

    def dying(self: Saved) -> None:
        raise Killed

    monkeypatch.setattr(Saved, "clear", dying)
    with pytest.raises(Killed):
        cuewise.audit(ENCODER, out=out, overwrite=True, **options)
    monkeypatch.undo()
    assert (out / FOLDER).exists()
    with pytest.raises(UserError, match=r"is not empty: replace it with --overwrite"):
        cuewise.audit(ENCODER, out=out, **options)
    capsys.readouterr()
    cuewise.audit(ENCODER, out=out, overwrite=True, **options)
    assert "resuming" not in capsys.readouterr().err
    assert not (out / FOLDER).exists()


@pytest.mark.usefixtures("in_process")
def test_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "study"
    with hold_folder(out, "study"):
        (out / "results.json").write_text("old")

    def dying(*args: Any, **how: Any) -> None:
        raise Killed

    monkeypatch.setattr("cuewise.studies.jobs.run_pretrain", dying)
    with pytest.raises(Killed):
        studied([STUDY], out, seeds=1, overwrite=True)
    assert content(out) == {"results.json": b"old"}
