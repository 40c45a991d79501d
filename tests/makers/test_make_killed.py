"""Whatever ends a run — kill -9, a lost worker, Ctrl-C, a full disk — the next one resumes and the result is the same."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from make_files import rows, tree

import cuewise
from cuewise.cues import registry
from cuewise.cues.cue import Cue
from cuewise.data import decode
from cuewise.errors import Interrupted, UserError
from cuewise.makers.store import Store

Photos = Callable[..., Path]


def with_cue(called: str, operator: Any) -> Callable[[], dict[str, Any]]:
    """`CUES.all` with one more cue."""

    class Added(Cue):
        name = called
        summary = "for a test"

        def render(self, image: Any, drawn: Any) -> Any:
            return operator(image, np.random.default_rng(0))

    everything = registry.CUES.all()
    return lambda: {**everything, called: Added}


def slow(image: Any, rng: np.random.Generator) -> Any:
    return np.ascontiguousarray(image[::-1])


@pytest.fixture
def cue(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Any], None]:
    """`cue("name", operator)`: one more operator, for this test and the workers it forks."""

    def add(name: str, operator: Any) -> None:
        monkeypatch.setattr(registry.CUES, "all", with_cue(name, operator))

    return add


def run_slowly(source: Path, out: Path, shards: int | None) -> None:
    def wait(image: Any, rng: np.random.Generator) -> Any:
        time.sleep(0.02)
        return slow(image, rng)

    registry.CUES.all = with_cue("slow", wait)  # type: ignore[method-assign]
    try:
        cuewise.make("slow", source, out, workers=2, shards=shards)
    except BaseException as error:
        out.with_suffix(".said").write_text(f"{type(error).__name__}: {error}")


def start(source: Path, out: Path, shards: int | None = None) -> Any:
    """A run in a process of its own, with two workers."""
    process = multiprocessing.get_context("fork").Process(target=run_slowly, args=(source, out, shards))
    process.start()
    return process


def images(out: Path) -> list[Path]:
    return sorted(p for p in out.rglob("*.png") if ".cuewise" not in p.parts and p.name != "preview.png")


def staged(out: Path) -> list[Path]:
    return [p for p in (out / ".cuewise" / "staged").rglob("*") if p.is_file()]


def until(ready: Callable[[], bool], seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def gone(children: list[psutil.Process]) -> None:
    """The workers of a killed run end by themselves."""
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


@pytest.mark.kill
def test_kill_9_of_the_whole_run_again_and_again(photos: Photos, tmp_path: Path, cue: Any) -> None:
    cue("slow", slow)
    source, out = photos(40), tmp_path / "out"
    cuewise.make("slow", source, tmp_path / "once", workers=0)
    seen: dict[Path, tuple[int, int]] = {}
    for more in (5, 20):
        have = len(images(out))
        run = start(source, out)
        until(lambda have=have, more=more: len(images(out)) >= have + more)
        children = psutil.Process(run.pid).children()
        assert len(children) == 2
        run.kill()
        run.join()
        gone(children)
        assert not (out / "manifest.jsonl").exists()
        for path in images(out):  # nothing half, nothing made twice
            decode(path.read_bytes(), path.name)
            facts = path.stat()
            assert seen.setdefault(path, (facts.st_ino, facts.st_mtime_ns)) == (
                facts.st_ino,
                facts.st_mtime_ns,
            )
    result = cuewise.make("slow", source, out, workers=2)
    assert result["skipped"] == len(seen)
    assert result["made"] == 80 - len(seen)
    assert all((p.stat().st_ino, p.stat().st_mtime_ns) == facts for p, facts in seen.items())
    assert tree(out) == tree(tmp_path / "once")


@pytest.mark.kill
def test_kill_9_while_shards_are_filled(photos: Photos, tmp_path: Path, cue: Any) -> None:
    cue("slow", slow)
    source, out = photos(30), tmp_path / "out"
    cuewise.make("slow", source, tmp_path / "once", workers=0, shards=25)
    run = start(source, out, shards=25)
    until(lambda: (out / "shards-000.tar").exists() and len(staged(out)) >= 5)
    children = psutil.Process(run.pid).children()
    run.kill()
    run.join()
    gone(children)
    there = set(range(25)) | {int(path.name.split("-")[0]) for path in staged(out)}
    first = (out / "shards-000.tar").stat()
    result = cuewise.make("slow", source, out, workers=1, shards=25)
    assert result["skipped"] == len(there)
    assert (out / "shards-000.tar").stat().st_ino == first.st_ino
    assert tree(out) == tree(tmp_path / "once")


@pytest.mark.kill
def test_a_kill_between_any_two_steps_of_one_image(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop before each write, note and rename in turn: what is visible is whole, and never made again."""
    source = photos(2)
    cuewise.make("gaussian", source, tmp_path / "once", workers=0)
    real = {"write": Path.write_bytes, "journal": os.write, "replace": os.replace}
    for step in range(3, 16):
        out, count = tmp_path / f"out{step}", 0

        def stop_at(name: str, step: int = step) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal count
                count += 1
                if count == step:
                    raise SystemExit("killed here")
                return real[name](*args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", stop_at("write"))
            patch.setattr(os, "write", stop_at("journal"))
            patch.setattr(os, "replace", stop_at("replace"))
            with pytest.raises(SystemExit):
                cuewise.make("gaussian", source, out, workers=0)
        visible = {path: path.stat().st_ino for path in images(out)}
        for path in visible:
            decode(path.read_bytes(), path.name)
        result = cuewise.make("gaussian", source, out, workers=0)
        assert result["skipped"] == len(visible)
        assert all(path.stat().st_ino == number for path, number in visible.items())
        assert tree(out) == tree(tmp_path / "once")


def test_a_line_cut_off_in_a_journal_counts_for_nothing(photos: Photos, tmp_path: Path) -> None:
    source, out = photos(2), tmp_path / "out"
    cuewise.make("gaussian", source, out, workers=0)
    whole = tree(out)
    lines = (out / "manifest.jsonl").read_bytes().splitlines()
    (out / "manifest.jsonl").unlink()
    journal = out / ".cuewise" / "journal"
    journal.mkdir()
    noted = b'{"item": 0, "rows": [' + lines[0] + b"]}\n"
    (journal / "1.jsonl").write_bytes(noted + b'{"item": 1, "rows": [' + lines[1][:40])
    result = cuewise.make("gaussian", source, out, workers=0)
    assert (result["made"], result["skipped"]) == (3, 1)
    assert tree(out) == whole


@pytest.mark.kill
def test_ctrl_c_says_how_to_resume(photos: Photos, tmp_path: Path, cue: Any) -> None:
    cue("slow", slow)
    source, out = photos(40), tmp_path / "out"
    run = start(source, out)
    until(lambda: len(images(out)) >= 6)
    children = psutil.Process(run.pid).children()
    for process in (run.pid, *(child.pid for child in children)):  # as a terminal does: to all of them
        os.kill(process, signal.SIGINT)
    run.join(20)
    said = out.with_suffix(".said").read_text()
    assert said.startswith(Interrupted.__name__)
    assert "run the same command again to resume" in said
    gone(children)
    before = len(images(out))
    assert cuewise.make("slow", source, out, workers=1)["skipped"] == before


@pytest.mark.kill
def test_a_killed_worker_is_replaced(photos: Photos, tmp_path: Path, cue: Any) -> None:
    flag = tmp_path / "flag"

    def once(image: Any, rng: np.random.Generator) -> Any:
        if image.shape[0] == 40 and image[0, 0, 0] > 128 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return slow(image, rng)

    cue("slow", once)
    result = cuewise.make("slow", photos(10), tmp_path / "out", workers=2)
    assert flag.exists()
    assert (result["made"], result["broken"]) == (20, [])
    cuewise.make("slow", tmp_path / "photos", tmp_path / "once", workers=0)
    assert tree(tmp_path / "out") == tree(tmp_path / "once")


@pytest.mark.slow
def test_an_image_that_ends_every_worker_is_left_out(photos: Photos, tmp_path: Path, cue: Any) -> None:
    def deadly(image: Any, rng: np.random.Generator) -> Any:
        if image.shape[:2] == (33, 33):
            os.kill(os.getpid(), signal.SIGKILL)
        return slow(image, rng)

    cue("slow", deadly)
    source = photos(4)
    photos(1, name="photos/odd", height=33, width=33)
    (source / "odd" / "dog" / "000.jpg").unlink()
    result = cuewise.make("slow", source, tmp_path / "out", workers=2)
    assert result["made"] == 8
    assert [b["path"] for b in result["broken"]] == ["odd/cat/000.jpg"]
    assert "ended its worker process 3 times" in result["broken"][0]["why"]
    assert sum("broken" in row for row in rows(tmp_path / "out")) == 1


@pytest.mark.slow
def test_workers_that_never_live_are_an_error(photos: Photos, tmp_path: Path, cue: Any) -> None:
    def deadly(image: Any, rng: np.random.Generator) -> Any:
        if image.shape[0] == 40:
            os.kill(os.getpid(), signal.SIGKILL)
        return image

    cue("slow", deadly)
    with pytest.raises(UserError, match="worker processes ended 10 times in a row"):
        cuewise.make("slow", photos(10), tmp_path / "out", workers=2)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_full_disk_is_reported_and_the_run_resumes_later(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    source, out = photos(5), tmp_path / "out"
    real = Path.write_bytes

    def write(path: Path, data: bytes) -> int:
        if "-7-0" in path.name:
            with open("/dev/full", "wb", buffering=0) as full:
                full.write(data)
        return real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write)
        with pytest.raises(
            UserError, match=r"disk is full .*; free some space and run the same command again"
        ):
            cuewise.make("gaussian", source, out, workers=workers)
    assert images(out)
    cuewise.make("gaussian", source, out, workers=workers)
    cuewise.make("gaussian", source, tmp_path / "once", workers=0)
    assert tree(out) == tree(tmp_path / "once")


def test_a_full_disk_at_the_very_end(photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Iterator[Any]:
        raise OSError(errno.ENOSPC, "full")

    source, out = photos(2), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("cuewise.makers.finish.write_rows", full)
        with pytest.raises(UserError, match="disk is full"):
            cuewise.make("gaussian", source, out, workers=0)
    assert cuewise.make("gaussian", source, out, workers=0)["skipped"] == 4
    assert len(rows(out)) == 4


def test_two_at_once_are_refused(photos: Photos, tmp_path: Path, cue: Any) -> None:
    cue("slow", slow)
    source, out = photos(40), tmp_path / "out"
    run = start(source, out)
    try:
        until(lambda: len(images(out)) >= 2)
        with pytest.raises(UserError, match=f"being written by process {run.pid} on"):
            cuewise.make("slow", source, out, workers=1)
    finally:
        run.kill()
        run.join()


def test_no_worker_survives_an_error(photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Store, made: Any, journal: Any) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(Store, "put", refuse)
    before = set(psutil.Process().children())
    with pytest.raises(UserError, match="Read-only file system"):
        cuewise.make("gaussian", photos(5), tmp_path / "out", workers=2)
    assert set(psutil.Process().children()) <= before
