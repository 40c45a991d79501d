"""Output folders: one writer at a time, and nothing deleted that cuewise did not write or that is still needed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import cuewise
from cuewise import UserError
from cuewise.folders import check_folder, entries, hold_folder, read_mark, refuse_inside, write_mark
from tests.audits.small_models import ENCODER, classifier, photos

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such locks there")


def made(folder: Path, kind: str = "run", **files: str) -> Path:
    """A finished folder of that kind."""
    with hold_folder(folder, kind):
        for name, text in (files or {"config": "old"}).items():
            (folder / name).write_text(text)
    return folder


def names(folder: Path) -> list[str]:
    return [path.name for path in entries(folder)]


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked process; its number."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return pid


def replace_and_die(folder: Path, *, started: bool = False) -> None:
    """A run that is killed inside its block."""

    def work() -> None:
        with hold_folder(folder, "run", overwrite=True) as held:
            (folder / "config").write_text("new")
            (folder / "extra").mkdir()
            if started:
                held.started()
            os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(in_child(work), 0)


def fail_inside(folder: Path, kind: str = "run") -> None:
    with hold_folder(folder, kind, overwrite=True):
        (folder / "config").write_text("new")
        (folder / "extra").mkdir()
        raise RuntimeError


@pytest.mark.slow
def test_a_folder_without_the_mark_is_never_deleted(tmp_path: Path) -> None:
    out = tmp_path / "photos"
    out.mkdir()
    (out / "config.yaml").write_text("mine")
    for name in ("audit.json", "report.html", "precious"):
        (out / name).write_text("mine")
    (out / "arms").mkdir()
    for kind in ("run", "audit", "comparison", "study", "demo"):
        with pytest.raises(UserError, match="did not write"):
            check_folder(out, kind, overwrite=True)
    for verb in (
        lambda: cuewise.pretrain("shapes", out=str(out), overwrite=True),
        lambda: cuewise.audit("cuewise/resnet-tiny", out=str(out), overwrite=True),
        lambda: cuewise.reproduce(out=str(out), overwrite=True),
        lambda: cuewise.demo(out=str(out), overwrite=True),
    ):
        with pytest.raises(UserError, match="did not write"):
            verb()
    assert len(names(out)) == 5


@pytest.mark.slow
def test_a_mistyped_command_deletes_nothing(tmp_path: Path) -> None:
    run, audit, study = (made(tmp_path / kind, kind) for kind in ("run", "audit", "study"))
    with hold_folder(audit, "audit", resume=True) as held:
        held.finished()
    wrong: list[tuple[Path, Callable[[], object]]] = [
        (run, lambda: cuewise.pretrain(str(tmp_path / "nowhere"), out=str(run), overwrite=True)),
        (run, lambda: cuewise.pretrain("shapes", out=str(run), overwrite=True, alpha=[-1.0])),
        (run, lambda: cuewise.pretrain("shapes", out=str(run), overwrite=True, set=["optim.nothing=1"])),
        (run, lambda: cuewise.pretrain("shapes", out=str(run), overwrite=True, model="torchvision/resnet5")),
        (audit, lambda: cuewise.audit("cuewise/resnet-tinny", out=str(audit), overwrite=True)),
        (audit, lambda: cuewise.audit("cuewise/resnet-tiny", out=str(audit), only="x", overwrite=True)),
        (study, lambda: cuewise.reproduce("ns-alphabet", out=str(study), overwrite=True)),
        (study, lambda: cuewise.reproduce("ns-alpha", budget=-1, out=str(study), overwrite=True)),
    ]
    for folder, verb in wrong:
        with pytest.raises(UserError):
            verb()
        assert names(folder) == ["config"]
        assert (folder / "config").read_text() == "old"


def test_what_is_replaced_comes_back_when_the_new_one_fails(tmp_path: Path) -> None:
    out = made(tmp_path / "run", config="old", weights="w")
    mark = read_mark(out)
    with pytest.raises(RuntimeError):
        fail_inside(out)
    assert names(out) == ["config", "weights"]
    assert (out / "config").read_text() == "old"
    assert read_mark(out) == mark


def test_what_is_replaced_goes_once_the_new_one_has_started(tmp_path: Path) -> None:
    out = made(tmp_path / "run")
    with hold_folder(out, "run", overwrite=True) as held:
        assert not held.resuming
        assert names(out) == []
        assert (out / ".cuewise" / "replaced" / "config").exists()
        held.started()
        assert not (out / ".cuewise" / "replaced").exists()
    assert names(out) == []


@pytest.mark.parametrize("started", [False, True])
def test_a_kill_while_replacing(tmp_path: Path, started: bool) -> None:
    out = made(tmp_path / "run")
    replace_and_die(out, started=started)
    assert check_folder(out, "run", resume=True)
    assert names(out) == (["config", "extra"] if started else ["config"])
    assert (out / "config").read_text() == ("new" if started else "old")


def test_a_kill_while_the_old_files_are_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = made(tmp_path / "run", a="1", b="2", c="3")
    rename = os.rename

    def fatal(source: Path, target: Path) -> None:
        if Path(source).name == "b":
            os.kill(os.getpid(), signal.SIGKILL)
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", fatal)
        replace_and_die(out)
    assert names(out) == ["b", "c"]
    assert check_folder(out, "run", resume=True)
    assert names(out) == ["a", "b", "c"]


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    real, link = made(tmp_path / "disk" / "run"), tmp_path / "run"
    link.symlink_to(real)
    with hold_folder(link, "run", overwrite=True) as held:
        held.started()
        (link / "config").write_text("new")
    assert link.is_symlink()
    assert (real / "config").read_text() == "new"
    link.unlink()
    link.symlink_to(tmp_path / "gone")
    with pytest.raises(UserError, match="broken link"):
        check_folder(link, "run")


def test_links_inside_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "a").write_text("a")
    out = made(tmp_path / "run")
    (out / "link").symlink_to(tmp_path / "precious")
    with hold_folder(out, "run", overwrite=True) as held:
        held.started()
    assert (tmp_path / "precious" / "a").exists()


def test_links_of_a_run_that_failed_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "a").write_text("a")
    out = made(tmp_path / "run")

    def fail() -> None:
        with hold_folder(out, "run", overwrite=True):
            (out / "link").symlink_to(tmp_path / "precious")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert names(out) == ["config"]
    assert (tmp_path / "precious" / "a").exists()


def test_what_the_command_reads_is_not_deleted(tmp_path: Path) -> None:
    out = made(tmp_path / "run")
    (out / "images.zip").write_bytes(b"x")
    specs = [f"{out}?classes=a", f"{out}/images.zip/photo", f"torchvision/resnet50:{out}/config", str(out)]
    for spec in specs:
        with pytest.raises(UserError, match="which this command reads"):
            check_folder(out, "run", overwrite=True, reads=[spec])
    check_folder(out, "run", overwrite=True, reads=["shapes", "torchvision/resnet50", str(tmp_path)])
    for name in ("a", "b"):
        made(tmp_path / name, "comparison", **{"audit.json": '{"model": {"name": "x"}, "scores": []}'})
    with pytest.raises(UserError, match="which this command reads"):
        cuewise.compare(str(tmp_path / "a"), str(tmp_path / "b"), out=str(tmp_path / "a"), overwrite=True)
    assert names(tmp_path / "a") == ["audit.json"]


def test_pictures_do_not_go_into_a_set_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OUT may lie beside a set, or above it; a folder of the same first letters is another one, and links are followed."""
    images = tmp_path / "set" / "cat"
    images.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "set")
    inside = [tmp_path / "set" / "cat" / "out", tmp_path / "set", tmp_path / "link" / "a" / "b"]
    for out in inside:
        for spec in (
            str(tmp_path / "set"),
            f"{tmp_path}/set?n=4",
            f"sketch={tmp_path}/set",
            str(tmp_path / "link"),
        ):
            with pytest.raises(UserError, match="would become part of the set"):
                refuse_inside(out, [spec])
    for out in (tmp_path / "out", tmp_path, tmp_path / "set2", tmp_path / "set" / "dog"):
        refuse_inside(out, ["shapes", f"{images}", "shapes:conflict?n=4", f"{tmp_path}/none"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for spec in ("~/set", "sketch=~/set?n=4"):  # the shell leaves it there after a "="
        with pytest.raises(UserError, match="would become part of the set"):
            refuse_inside(Path("set/x"), [spec])
    refuse_inside(Path("runs/x"), ["set", "conflict=set"])
    with pytest.raises(UserError, match=r"--out runs/x lies in \., whose images this command reads"):
        refuse_inside(Path("runs/x"), ["."])


def test_what_lies_in_a_set_already_can_be_resumed(tmp_path: Path) -> None:
    out = made(tmp_path / "set" / "run")
    with (
        pytest.raises(UserError, match="would become part"),
        hold_folder(out, "run", overwrite=True, images=[str(tmp_path)]),
    ):
        pass
    assert names(out) == ["config"]
    with hold_folder(out, "run", resume=True, images=[str(tmp_path / "set")]) as held:
        assert held.resuming
    new = tmp_path / "set" / "new"
    with (
        pytest.raises(UserError, match="would become part"),
        hold_folder(new, "run", images=[str(tmp_path / "set")]),
    ):
        pass
    assert not new.exists()


SUITE = "- {name: a, probe: knn, train: SET, test: SET}"


@pytest.mark.parametrize(
    "verb", ["audit", "inspect", "probe", "pretrain", "tune", "tune --test", "transfer", "compare"]
)
def test_no_verb_writes_into_a_set_that_it_reads(verb: str, tmp_path: Path) -> None:
    images = photos(tmp_path / "set", 3)
    before = sorted(images.rglob("*"))
    other, suite = str(photos(tmp_path / "other", 3, seed=1)), tmp_path / "suite.yaml"
    suite.write_text(SUITE.replace("SET", str(images)))
    runs = [tmp_path / "first", tmp_path / "second"]
    for run in runs:
        run.mkdir()
        (run / "encoder.safetensors").write_bytes(b"")
    out, data, model = str(images / "out"), str(images), classifier(tmp_path)
    calls: dict[str, Callable[[], object]] = {
        "audit": lambda: cuewise.audit(ENCODER, out=out, train=other, test=f"sketch={data}"),
        "inspect": lambda: cuewise.inspect(data, out=out),
        "probe": lambda: cuewise.probe("knn", ENCODER, train=other, test=data, out=out),
        "pretrain": lambda: cuewise.pretrain(other, out=out, val=data),
        "tune": lambda: cuewise.tune(model, data, out=out),
        "tune --test": lambda: cuewise.tune(model, other, out=out, test=f"sketch={data}"),
        "transfer": lambda: cuewise.transfer(ENCODER, out=out, suite=str(suite)),
        "compare": lambda: cuewise.compare(*map(str, runs), out=out, train=other, test=data),
    }
    with pytest.raises(
        UserError, match=r"set, whose images this command reads: what is written there would become part"
    ):
        calls[verb]()
    assert sorted(images.rglob("*")) == before


def test_another_kind_of_content_is_refused(tmp_path: Path) -> None:
    out = made(tmp_path / "audit", "audit")
    with pytest.raises(UserError, match="holds an audit, not a run"):
        check_folder(out, "run", overwrite=True)
    with pytest.raises(UserError, match="holds an audit, not a run"):
        check_folder(out, "run", resume=True)
    with pytest.raises(UserError, match="is not empty"):
        check_folder(out, "audit")


def test_resume_needs_a_run(tmp_path: Path) -> None:
    """Also one of an earlier version, which has no mark."""
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(UserError, match="holds other files, not a run"):
        cuewise.pretrain("shapes", out=str(tmp_path), resume=True)
    (tmp_path / "config.yaml").write_text("")
    assert check_folder(tmp_path, "run", resume=True)
    with hold_folder(tmp_path, "run", resume=True) as held:
        assert held.resuming
    assert read_mark(tmp_path)["kind"] == "run"


def test_nothing_is_left_of_a_folder_that_was_never_used(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        cuewise.audit("cuewise/resnet-tinny", out=str(tmp_path / "a" / "b"))
    assert not (tmp_path / "a" / "b").exists()


def test_a_second_process_is_refused_and_a_dead_one_is_not(tmp_path: Path) -> None:
    out, ready = tmp_path / "run", tmp_path / "ready"

    def hold() -> None:
        with hold_folder(out, "run"):
            (out / "config.yaml").write_text("")
            child = in_child(lambda: time.sleep(60))  # a worker that outlives it
            ready.write_text(str(child))
            time.sleep(60)

    holder = in_child(hold)
    while not ready.exists() or not ready.read_text():
        time.sleep(0.01)
    refusals: list[Callable[[], object]] = [
        lambda: cuewise.pretrain("shapes", out=str(out), resume=True),
        lambda: cuewise.pretrain("shapes", out=str(out), overwrite=True),
        lambda: cuewise.audit("cuewise/resnet-tiny", out=str(out), overwrite=True),
        lambda: cuewise.reproduce(out=str(out)),
        lambda: cuewise.demo(out=str(out)),
        lambda: cuewise.make("gaussian", "shapes", str(out)),
    ]
    try:
        for verb in refusals[:-1]:
            with pytest.raises(UserError, match=f"is being written by process {holder} on "):
                verb()
        with pytest.raises(UserError, match="not empty"):
            refusals[-1]()
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    try:
        assert check_folder(out, "run", resume=True)
        with hold_folder(out, "run", resume=True), pytest.raises(UserError, match="by this process"):
            hold_folder(out, "run", resume=True).__enter__()
    finally:
        os.kill(int(ready.read_text()), signal.SIGKILL)


def test_a_mark_that_cannot_be_read_is_no_mark(tmp_path: Path) -> None:
    write_mark(tmp_path, "run")
    for text in ("", "{", "[]", '{"kind": []}'):
        (tmp_path / ".cuewise" / "mark.json").write_text(text)
        (tmp_path / "a").touch()
        with pytest.raises(UserError, match="did not write"):
            check_folder(tmp_path, "run", overwrite=True)
