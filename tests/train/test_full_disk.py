"""A disk that fills up, at whatever file: the run stops with one line, and resumes later as if nothing had happened."""

from __future__ import annotations

import resource
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from cuewise import UserError, pretrain
from cuewise.cli import main
from cuewise.folders import write_mark
from cuewise.train.log import Log, read_metrics
from tests.train.test_pretrain import SMALL as MOCO

FULL = Path("/dev/full")  # every write to it fails as on a full disk
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FULL.is_char_device(), reason="no /dev/full here"),
]

SMALL: dict[str, Any] = {
    **MOCO,
    "method": "looc",
    "leave_out": "color",
    "set": ["loop.log_every=1", "looc.queue=32", "looc.dim=16"],
}


def losses(run: Path) -> list[float]:
    return [r["train/loss"] for r in read_metrics(run / "metrics.jsonl") if "train/loss" in r]


@pytest.fixture(scope="module")
def runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run that was never stopped, and its first four steps of twelve."""
    place = tmp_path_factory.mktemp("runs")
    pretrain(str(folder), out=str(place / "whole"), **SMALL)
    pretrain(str(folder), out=str(place / "begun"), steps=4, **SMALL)
    return place / "whole", place / "begun"


@pytest.fixture
def begun(runs: tuple[Path, Path], tmp_path: Path) -> Path:
    shutil.copytree(runs[1], tmp_path / "run")
    return tmp_path / "run"


def stops(run: Path, folder: Path) -> str:
    """Resume on a full disk and look at the checkpoint; returns what was said."""
    good = (run / "checkpoints" / "last.ckpt").read_bytes()
    with pytest.raises(UserError) as said:
        pretrain(str(folder), out=str(run), resume=True, steps=12, **SMALL)
    assert (run / "checkpoints" / "last.ckpt").read_bytes() == good
    assert torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["step"] == 4
    return str(said.value)


def resumes(run: Path, whole: Path, folder: Path) -> None:
    pretrain(str(folder), out=str(run), resume=True, steps=12, **SMALL)
    assert losses(run) == losses(whole)
    assert [r["step"] for r in read_metrics(run / "metrics.jsonl")] == list(range(1, 13))
    assert (run / "encoder.safetensors").read_bytes() == (whole / "encoder.safetensors").read_bytes()
    assert not list(run.rglob("*.part"))


@pytest.mark.parametrize(
    "file",
    [
        "config.yaml",
        "environment.json",
        "encoder.safetensors",
        "heads.safetensors",
        "heads.json",
        "checkpoints/last.ckpt",
    ],
)
def test_no_room_for_a_file(runs: tuple[Path, Path], begun: Path, folder: Path, file: str) -> None:
    (begun / f"{file}.part").symlink_to(FULL)
    said = stops(begun, folder)
    assert said.startswith(
        f"{begun}: the disk is full (No space left on device); free some space and resume with"
    )
    (begun / f"{file}.part").unlink(missing_ok=True)
    resumes(begun, runs[0], folder)


@pytest.mark.parametrize("file", ["checkpoints/last.ckpt", "encoder.safetensors"])
def test_room_for_half_of_a_file(runs: tuple[Path, Path], begun: Path, folder: Path, file: str) -> None:
    """torch.save then complains of a wrong position, not of the disk."""
    sizes = {f: f.stat().st_size for f in begun.rglob("*") if f.is_file()}
    space = sizes[begun / file] * 2 // 3
    others = {f: size for f, size in sizes.items() if f.suffix not in (".safetensors", ".ckpt")}
    assert max(others.values()) < space
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (space, hard))
    try:
        said = stops(begun, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert "the disk is full (File too large)" in said
    assert not list(begun.rglob("*.part"))  # leftovers take space
    resumes(begun, runs[0], folder)


def test_no_room_for_a_row(
    runs: tuple[Path, Path], begun: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Log.__init__

    def nowhere(self: Log, *given: Any) -> None:
        real(self, *given)
        self.handle = FULL.open("w")

    with monkeypatch.context() as patch:
        patch.setattr(Log, "__init__", nowhere)
        assert "--resume" in stops(begun, folder)
    resumes(begun, runs[0], folder)


def test_no_room_from_the_start(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The shell's one line, and --resume where nothing could be written yet."""
    words = [
        "pretrain",
        str(folder),
        "--out",
        str(tmp_path / "run"),
        "--model",
        "cuewise/resnet-tiny?width=8",
    ]
    words += ["--size", "16", "--batch-size", "8", "--workers", "0", "--steps", "1", "--set", "moco.queue=32"]
    write_mark(tmp_path / "run", "run")
    (tmp_path / "run" / "config.yaml.part").symlink_to(FULL)
    assert main([*words, "--resume"]) == 2
    said = capfd.readouterr().err
    assert "the disk is full" in said
    assert "Traceback" not in said
    assert main([*words, "--resume"]) == 0


def test_any_verb_says_it_in_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    """The system names no file when a write fails; that is no reason for a traceback."""
    assert main(["list", "methods", "--json", str(FULL)]) == 2
    said = capfd.readouterr().err
    assert "No space left on device; free some space and run the same command again" in said
    assert "Traceback" not in said
    assert FULL.is_char_device()
