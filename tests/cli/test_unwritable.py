"""A place that cannot be written is named as the user typed it, whatever command was to write there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import cuewise
from cuewise import cli
from cuewise.cli import main
from cuewise.errors import UserError

MODEL, IMAGES = "cuewise/resnet-tiny?width=8", "shapes:conflict?n=24&size=32"
RUN = ["--model", MODEL, "--size", "16", "--epochs", "1", "--batch-size", "8"]
LINE = "cannot be written (Not a directory); fix that and run the same command again"


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["pretrain", IMAGES, *RUN, "--out"], "file/run"),
        (["pretrain", IMAGES, *RUN, "--out"], "file/a/b"),
        (["inspect", IMAGES, "--only", "color", "--out"], "file/inspection"),
        (["audit", MODEL, "--only", "shape_bias", "--out"], "file/audit"),
        (["embed", MODEL, IMAGES, "--out"], "file/x.npz"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_a_place_that_cannot_be_written(
    words: list[str],
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("x")
    assert main([*words, place]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"cuewise: {place} {LINE}"
    assert os.listdir() == ["file"]


def test_embed_says_the_same_in_python(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"file/x\.npz cannot be written \(Not a directory\); fix that and"):
        cuewise.embed(MODEL, IMAGES, out=tmp_path / "file" / "x.npz")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder in which nobody can write")
def test_the_file_for_programs_is_tried_before_the_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuewise.probes.run.run_probe", lambda *_, **__: pytest.fail("the work has begun"))
    assert main(["probe", "knn", MODEL, "--train", IMAGES, "--json", "/proc/x.json"]) == 2
    assert capsys.readouterr().err == (
        "cuewise: /proc/x.json cannot be written (No such file or directory); "
        "fix that and run the same command again\n"
    )


def test_the_file_for_programs_stays_as_it_is_until_there_are_results(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("old")
    cli.check_target(str(file))
    cli.check_target(str(tmp_path / "new.json"))
    cli.check_target(os.devnull)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.json"]


@pytest.mark.parametrize(
    ("number", "file", "blamed"),
    [
        (errno.EACCES, "out", True),
        (errno.EACCES, "out/.cuewise", True),
        (errno.ENOENT, "out/images.csv", False),  # it was read
        (errno.EACCES, "photos/cat.jpg", False),
        (errno.EACCES, "outer", False),
    ],
)
def test_only_what_the_command_writes_is_called_unwritable(
    number: int,
    file: str,
    blamed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(*data: str, out: str) -> cuewise.Result:
        raise OSError(number, os.strerror(number), file)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "parse", lambda *_: ([], {"out": "out"}, None))
    monkeypatch.setitem(cli.VERBS, "embed", refused)
    assert main(["embed"]) == 2
    why = os.strerror(number)
    line = f"out cannot be written ({why}); fix that and run the same command again"
    assert capsys.readouterr().err == f"cuewise: {line if blamed else f'{why}: {file}'}\n"
