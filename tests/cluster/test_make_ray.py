"""The Ray engine on a real local instance: the same bytes, also when a worker is killed in the middle."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import cuewise
from cuewise.cluster import load_ray
from cuewise.errors import UserError
from cuewise.makers.ray_engine import connect
from tests.makers.make_files import tree

pytestmark = pytest.mark.slow

Photos = Callable[..., Path]


def test_without_ray_the_extra_is_named(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'cuewise\[ray\]'"):
        cuewise.make("gaussian", photos(1), tmp_path / "out", engine="ray")


def renderers(ray: Any) -> list[psutil.Process]:
    """Worker processes of this instance that make images right now."""
    mine = psutil.Process().children(recursive=True)
    return [p for p in mine if p.is_running() and p.name().startswith("ray::render")]


@pytest.mark.cluster
def test_a_worker_killed_in_the_middle_changes_nothing(cluster: Any, photos: Photos, tmp_path: Path) -> None:
    source = photos(15, height=200, width=200)
    slow = {"steps": 150}
    (source / "cat" / "007.jpg").write_bytes((source / "cat" / "007.jpg").read_bytes()[:900])
    killed: list[int] = []
    over = threading.Event()

    def kill() -> None:
        out = tmp_path / "ray"
        while not over.is_set() and not killed:  # a busy machine may take minutes to start the workers
            if len(list(out.glob("*/*.png"))) >= 4:
                for process in renderers(cluster)[:1]:
                    os.kill(process.pid, signal.SIGKILL)
                    killed.append(process.pid)
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        result = cuewise.make("anisotropic", source, tmp_path / "ray", engine="ray", set=slow)
    finally:
        over.set()
        thread.join()
    assert killed
    assert (result["made"], len(result["broken"])) == (29, 1)
    cuewise.make("anisotropic", source, tmp_path / "local", set=slow)
    assert tree(tmp_path / "ray") == tree(tmp_path / "local")
    assert cluster.is_initialized()  # not ours to end


@pytest.mark.cluster
def test_resumes_where_the_local_engine_stopped(cluster: Any, photos: Photos, tmp_path: Path) -> None:
    source = photos(5)
    cuewise.make("cue-conflict", source, tmp_path / "a", workers=0, set={"n": 12}, limit=4)
    result = cuewise.make("cue-conflict", source, tmp_path / "a", engine="ray", set={"n": 12})
    assert (result["made"], result["skipped"]) == (8, 4)
    cuewise.make("cue-conflict", source, tmp_path / "b", workers=1, set={"n": 12})
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


@pytest.mark.cluster
def test_tables_are_made_on_a_cluster(cluster: Any, photos: Photos, tmp_path: Path) -> None:
    """A part here, the rest there: the table of boxes is the same."""
    source = photos(3, height=64, width=64)
    cuewise.make("boxes", source, tmp_path / "a", workers=0, limit=2)
    assert cuewise.make("boxes", source, tmp_path / "a", engine="ray")["made"] == 4
    cuewise.make("boxes", source, tmp_path / "b", workers=0)
    assert (tmp_path / "a" / "boxes.csv").read_bytes() == (tmp_path / "b" / "boxes.csv").read_bytes()


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "nowhere.invalid:6379"])
def test_an_address_where_nothing_listens(address: str) -> None:
    """Ray itself would end the process without an exception."""
    ray = pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"no Ray cluster at '.*'.*check --address"):
        connect(ray, address)


@pytest.mark.parametrize(("address", "mode"), [(None, "token"), ("127.0.0.1:6379", None)])
def test_an_instance_of_its_own_asks_for_a_token(
    address: str | None, mode: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set before Ray is imported, which reads it then; a cluster that is joined has its own way."""
    seen = []
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "x")  # so that it is put back
    monkeypatch.delenv("RAY_AUTH_MODE")
    monkeypatch.setattr(importlib, "import_module", lambda name: seen.append(os.environ.get("RAY_AUTH_MODE")))
    load_ray(address)
    assert seen == [mode]


def test_an_instance_of_its_own_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that was killed leaves its address behind, which Ray would join."""
    ray = pytest.importorskip("ray")
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(ray, "init", lambda **options: seen.append(options))
    monkeypatch.setattr("cuewise.cluster._listening", lambda ray: "")
    connect(ray, None)
    monkeypatch.setattr("cuewise.cluster.knock", lambda address: None)
    connect(ray, "10.0.0.1:6379")
    assert [options["address"] for options in seen] == ["local", "10.0.0.1:6379"]


ALONE = """
import cuewise, psutil, sys

def main():
    from cuewise.makers import ray_engine
    stop = ray_engine.TaskPool.stop
    def look(self):
        me = psutil.Process()
        for process in [me, *me.children(recursive=True)]:
            for c in process.net_connections(kind="inet"):
                if c.status == "LISTEN":
                    print(process.name(), c.laddr.ip)
        stop(self)
    ray_engine.TaskPool.stop = look
    cuewise.make("gaussian", sys.argv[1], sys.argv[2], engine="ray")

main()
"""


@pytest.mark.cluster
def test_an_instance_of_its_own_listens_on_loopback_only(photos: Photos, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    words = [sys.executable, "-c", ALONE, str(photos(1)), str(tmp_path / "out")]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    places = {line.split()[-1].removeprefix("::ffff:") for line in ran.stdout.splitlines()}
    assert places == {"127.0.0.1"}, ran.stdout
    assert "it listens on 127.0.0.1 only" in ran.stderr
