"""Worker processes that make batches, started again where one is killed.

Workers are forked: the index and the transform are shared without copying, and no worker ever touches CUDA (they
only see numpy and CPU tensors), so forking is safe before and after a GPU is in use. Torch and OpenCV run on
one thread in a worker, because thread pools do not survive a fork and parallelism is over images.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, get_worker_info
from torch.utils.data._utils import signal_handling

from cuewise.data.batches import Batch, BatchMaker
from cuewise.data.gate import Gate
from cuewise.data.parent import end_with_parent
from cuewise.data.plan import Keys
from cuewise.errors import UserError

RESTARTS = 5  # in a row, without one batch between them
YIELDING = 10  # added to the niceness of workers that share the cores with training
METHOD = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"


def run(
    maker: BatchMaker, keys: Keys, workers: int, pin: bool = False, between_steps: bool = False
) -> Iterator[Batch]:
    """The batches of `keys`, in order; a killed worker costs time and one line on stderr, nothing else.

    between_steps: workers compute only while a batch is waited for (gate.py)
    """
    if workers < 1:
        for key in keys:
            yield _checked(maker[key])
        return
    failures = 0
    if len(keys):
        maker.warm_up()
    while len(keys):
        gate = Gate() if between_steps and METHOD == "fork" else None
        stream = _start(maker, keys, workers, pin, gate)
        try:
            for batch in _until_killed(stream, gate):
                failures = 0
                keys = keys.rest()
                yield _checked(batch)
        finally:
            killed = _stop(stream, gate)
        if len(keys):
            failures += 1
            _say(killed, failures)


def _checked(batch: Batch) -> Batch:
    if batch.failure is not None:
        raise UserError(batch.failure)
    return batch


def _start(maker: BatchMaker, keys: Keys, workers: int, pin: bool, gate: Gate | None) -> Any:
    warnings.filterwarnings("ignore", message="This DataLoader will create")  # the user chose the number
    yielding = prepare_worker if pin else prepare_yielding_worker
    loader: DataLoader[Any] = DataLoader(
        maker,  # type: ignore[arg-type]  # keys are pairs, not integers
        batch_size=None,  # a worker makes a whole batch
        sampler=keys,
        num_workers=min(workers, len(keys)),
        collate_fn=_same,  # type: ignore[arg-type]
        worker_init_fn=partial(prepare_gated_worker, gate) if gate else yielding,
        multiprocessing_context=METHOD,
        prefetch_factor=2,
        pin_memory=pin,
    )
    with _no_surprise():
        stream = iter(loader)
        torch._C._remove_worker_pids(id(stream))
        stream._worker_pids_set = False  # type: ignore[attr-defined]
    return stream


@contextmanager
def _no_surprise() -> Iterator[None]:
    """Keep torch from raising a dead worker's error out of a signal handler, anywhere in the caller's code.

    It does so for workers whose numbers it has; ours are taken back before a signal can find them there, and the
    error comes from `next`, where it is expected.
    """
    was, signal_handling._SIGCHLD_handler_set = signal_handling._SIGCHLD_handler_set, True
    main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGCHLD, signal.SIG_DFL) if main else None
    try:
        yield
    finally:
        signal_handling._SIGCHLD_handler_set = was
        if main:
            signal.signal(signal.SIGCHLD, previous or signal.SIG_DFL)


def _same(batch: Batch) -> Batch:
    return batch


def prepare_worker(number: int) -> None:
    """Runs first in a worker: the main process answers Ctrl-C, and one thread is enough."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    torch.set_num_threads(1)
    os.environ["OPENCV_FOR_THREADS_NUM"] = "1"  # for an OpenCV that is imported only later
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)


def prepare_yielding_worker(number: int) -> None:
    """The same for a worker beside training on the processor: it computes while the training threads do not.

    All threads of a step wait for the slowest one, so a worker that takes a tenth of a core would cost a tenth of
    the step. Where batches are what is waited for, the training threads sleep and the worker has its core.
    """
    prepare_worker(number)
    os.nice(YIELDING)


def prepare_gated_worker(gate: Gate, number: int) -> None:
    """The same for a worker that computes between training steps: it waits before each image."""
    prepare_yielding_worker(number)
    gate.enter()
    info = get_worker_info()
    assert info is not None
    info.dataset.turn = gate.turn  # type: ignore[attr-defined]


def _until_killed(stream: Any, gate: Gate | None) -> Iterator[Batch]:
    """Batches until the end, or until a worker is found dead; other errors pass."""
    while True:
        try:
            with gate.opened() if gate else nullcontext():
                batch = next(stream)
        except StopIteration:
            return
        except Exception:
            if _killed(stream, patience=0.1):
                return
            raise
        yield batch


def _killed(stream: Any, patience: float = 0.0) -> list[int]:
    """Signals that ended workers; a broken connection may be noticed a moment before the end of its process."""
    for worker in stream._workers:
        worker.join(patience)
    return [-worker.exitcode for worker in stream._workers if worker.exitcode and worker.exitcode < 0]


def _stop(stream: Any, gate: Gate | None) -> list[int]:
    killed = _killed(stream)
    if gate is not None:
        gate.open()
    stream._shutdown_workers()
    if gate is not None:
        gate.close()
    return killed


def _say(killed: list[int], failures: int) -> None:
    number = killed[0] if killed else 0
    name = signal.Signals(number).name if number in set(signal.Signals) else "an unknown cause"
    advice = {
        signal.SIGKILL: "most often the machine is out of memory: try fewer --workers",
        signal.SIGBUS: "most often /dev/shm is full: give it more space, or fewer --workers",
    }.get(number, "try --workers 0 to see the cause")  # type: ignore[call-overload]
    if failures > RESTARTS:
        raise UserError(f"workers were ended by {name} {failures} times in a row; {advice}")
    text = f"cuewise: a data worker was ended by {name} ({advice}); continuing with the next batch"
    print(text, file=sys.stderr, flush=True)
