"""Killed workers, Ctrl-C and threads: what happens to the processes behind a loader."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from tests.conftest import YIELDING
from torch.utils.data._utils import signal_handling
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from cuewise.data import Batch, Loader, Shown, open_data, workers
from cuewise.data.gate import Gate
from cuewise.errors import UserError

pytestmark = pytest.mark.usefixtures("warm_start")


@pytest.fixture
def ds(write, tmp_path):
    for k in range(30):
        write(f"s/{k:02d}.png", seed=k)
    return open_data(tmp_path / "s")


def draw(sample, rng):
    return Shown({"x": sample.image[:4, :4], "r": rng.random(3)})


def frozen(batches):
    return [
        (b.index.tolist(), b.views["x"].numpy().tobytes(), b.views["r"].numpy().tobytes()) for b in batches
    ]


def alive():
    return [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture(autouse=True)
def looks_often(monkeypatch):
    """torch asks every five seconds whether a worker is alive; here ten times a second."""
    monkeypatch.setattr(_MultiProcessingDataLoaderIter._try_get_data, "__defaults__", (0.1,))


@pytest.mark.kill
@pytest.mark.parametrize("between_steps", [False, True], ids=["at any time", "between steps"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_costs_nothing_but_a_line(ds, workers, between_steps, capfd):
    before = {child.pid for child in alive()}
    loader = Loader(ds, draw, batch_size=3, seed=1, workers=workers, between_steps=between_steps)
    got = []
    for k, batch in enumerate(loader.batches(epochs=4)):
        got.append(batch)
        if k in (2, 20):
            mine = [child for child in alive() if child.pid not in before]
            os.kill(mine[0].pid, signal.SIGKILL)
    assert frozen(got) == frozen(Loader(ds, draw, batch_size=3, seed=1, workers=0).batches(epochs=4))
    said = [line for line in capfd.readouterr().err.splitlines() if line]
    assert len(said) == 2
    assert all("SIGKILL" in line and "continuing" in line for line in said)
    assert {child.pid for child in alive()} == before


@pytest.fixture
def torch_handler(monkeypatch):
    """As if another DataLoader had been there before: torch answers the death of any child it knows."""
    previous = signal.getsignal(signal.SIGCHLD)
    monkeypatch.setattr(signal_handling, "_SIGCHLD_handler_set", False)
    signal_handling._set_SIGCHLD_handler()
    yield
    signal.signal(signal.SIGCHLD, previous)


@pytest.mark.kill
@pytest.mark.usefixtures("torch_handler")
def test_the_kill_does_not_strike_the_callers_code(ds):
    """Torch would raise from a signal handler, in the middle of whatever the training loop does."""
    stream = Loader(ds, draw, batch_size=3, seed=1, workers=2).batches(epochs=2)
    before = {child.pid for child in alive()}
    handler = signal.getsignal(signal.SIGCHLD)
    next(stream)
    assert signal.getsignal(signal.SIGCHLD) is handler
    for child in alive():
        if child.pid not in before:
            os.kill(child.pid, signal.SIGKILL)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        np.ones(10).sum()  # the caller at work
    assert len(list(stream)) == 19


def die(sample, rng):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.kill
def test_a_worker_that_dies_each_time_is_given_up(ds, monkeypatch):
    monkeypatch.setattr("cuewise.data.workers.RESTARTS", 0)
    with pytest.raises(UserError, match=r"SIGKILL 1 times in a row; .*fewer --workers"):
        list(Loader(ds, die, batch_size=3, seed=1, workers=1).batches())


def test_leaving_early_ends_the_workers(ds):
    before = {child.pid for child in alive()}
    stream = Loader(ds, draw, batch_size=3, seed=1, workers=2).batches(epochs=100)
    next(stream)
    assert len(alive()) > len(before)
    stream.close()
    assert {child.pid for child in alive()} == before


def inside(sample, rng):
    import cv2

    return Shown({"threads": np.array([torch.get_num_threads(), cv2.getNumThreads()])})


def test_workers_use_one_thread(ds):
    batch = next(Loader(ds, inside, batch_size=3, seed=1, workers=1).batches())
    assert (batch.views["threads"] <= 1).all()


def when(work):
    """A transform that says when it was done, as time of the whole machine."""

    def transform(sample, rng):
        work()
        return Shown({"when": np.array([time.monotonic()])})

    return transform


def compute(seconds=0.005):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def made_while_training(ds, transform, between_steps):
    """The most images that two workers made during one of four steps of 0.2 seconds."""
    stream = Loader(ds, transform, batch_size=5, seed=1, workers=2, between_steps=between_steps).batches(
        epochs=2
    )
    trained, made = [], []
    for batch, _ in zip(stream, range(8)):
        made += batch.views["when"].flatten().tolist()
        if len(trained) < 4:
            begin = time.monotonic()
            time.sleep(0.2)
            trained.append((begin, begin + 0.2))
    stream.close()
    return max(sum(begin < t < end for t in made) for begin, end in trained)


def test_workers_behind_the_gate_compute_between_steps_only(ds):
    """Each may finish the image that it was at when the gate closed."""
    assert made_while_training(ds, when(compute), between_steps=True) <= 2
    assert made_while_training(ds, when(compute), between_steps=False) > 2


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not tell who sleeps")
def test_workers_that_wait_for_a_disk_do_not_wait_at_the_gate(ds):
    assert made_while_training(ds, when(lambda: time.sleep(0.02)), between_steps=True) > 2


def test_a_gate_without_its_owner_is_open():
    gate = Gate()
    gate.enter()
    with gate.turn():
        pass


def niceness(sample, rng):
    return Shown({"nice": np.array([os.nice(0)])})


@pytest.mark.skipif(os.nice(0) > 9, reason="niceness ends at 19")
@pytest.mark.parametrize("pin", [False, True], ids=["beside training threads", "beside a GPU"])
def test_workers_yield_to_training_on_the_same_cores(ds, pin, monkeypatch):
    monkeypatch.setattr(Batch, "pin_memory", lambda self: self)
    monkeypatch.setattr(workers, "YIELDING", YIELDING)
    batch = next(Loader(ds, niceness, batch_size=3, seed=1, workers=1, pin=pin).batches())
    assert (batch.views["nice"] == os.nice(0) + (0 if pin else 10)).all()
    if not pin:
        batch = next(Loader(ds, niceness, batch_size=3, seed=1, workers=1, between_steps=True).batches())
        assert (batch.views["nice"] == os.nice(0) + 10).all()


INTERRUPTED = """
    import sys, time, numpy as np
    from cuewise.data import Batch, Loader, Shown, open_data

    def slow(sample, rng):
        time.sleep(0.05)
        return Shown({"x": sample.image[:4, :4]})

    try:
        for batch in Loader(open_data(sys.argv[1]), slow, batch_size=3, seed=1, workers=2).batches(epochs=1000):
            print("batch", flush=True)
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""


@pytest.mark.kill
def test_ctrl_c_is_answered_by_the_main_process_alone(ds, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(tmp_path / "s")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "batch\n"
    workers = psutil.Process(process.pid).children()
    assert len(workers) == 2
    for worker in workers:
        worker.send_signal(signal.SIGINT)
    for _ in range(8):
        assert process.stdout.readline() == "batch\n"
    assert psutil.Process(process.pid).children() == workers
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    out, err = process.communicate(timeout=30)
    assert out.endswith("stopped\n")
    assert err == ""
    assert process.returncode == 0
    assert not any(worker.is_running() for worker in workers)
