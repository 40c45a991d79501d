"""Batches for training and for evaluation: the same to the bit for any number of workers, ranks and resumes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch

from cuewise.data.batches import Batch, BatchMaker, Transform
from cuewise.data.dataset import Dataset
from cuewise.data.plan import Keys, Plan
from cuewise.data.workers import run
from cuewise.errors import UserError


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def auto_workers(ranks: int = 1, between_steps: bool = False) -> int:
    """Worker processes per rank: this rank's share of the usable cores, less one for the training loop, 1…8.

    between_steps: the training loop needs none while they compute
    """
    return max(1, min(8, usable_cores() // ranks - (0 if between_steps else 1)))


def fills_cores(ranks: int = 1) -> bool:
    """Whether the threads of a training step on the processor leave no core to loader processes."""
    return torch.get_num_threads() * ranks >= usable_cores()


class Loader:
    """Batches of `transform(sample, rng)` over shuffled images, made by worker processes.

    `batch_size` is global; each of `world` ranks gets its contiguous share of every batch. With `between_steps` workers
    compute only while a batch is waited for.
    """

    def __init__(
        self,
        ds: Dataset,
        transform: Transform,
        *,
        batch_size: int,
        seed: int,
        workers: int,
        shuffle: bool = True,
        drop_last: bool = True,
        rank: int = 0,
        world: int = 1,
        pin: bool = False,
        between_steps: bool = False,
    ) -> None:
        check_sizes(len(ds), batch_size, world, drop_last)
        self.plan = Plan(len(ds), batch_size, seed, shuffle, drop_last, rank, world)
        self.maker = BatchMaker(ds, transform, self.plan)
        self.workers, self.pin, self.between_steps = workers, pin, between_steps
        self._reported: set[int] = set()

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch."""
        return self.plan.steps

    def batches(self, epoch: int = 0, step: int = 0, epochs: int = 1) -> Iterator[Batch]:
        """All batches from (epoch, step) to the end of epoch `epochs` − 1, with one set of workers."""
        keys = Keys(self.plan.steps, epoch, step, epochs)
        for batch in run(self.maker, keys, self.workers, self.pin, self.between_steps):
            fresh = [(i, name, why) for i, name, why in batch.broken if i not in self._reported]
            self._reported.update(i for i, _, _ in fresh)
            batch.skipped = [(name, why) for _, name, why in fresh]
            yield batch


def ordered(ds: Dataset, transform: Transform, batch_size: int, workers: int = 0) -> Iterator[Batch]:
    """Every readable image once, in index order, the last batch as short as it comes.

    Broken images are left out and listed in `skipped`; randomness is that of (seed 0, epoch 0, index).
    """
    plan = Plan(len(ds), max(1, batch_size), seed=0, shuffle=False, drop_last=False)
    waiting: list[tuple[str, str]] = []  # from batches in which nothing could be read
    given = 0
    for batch in run(BatchMaker(ds, transform, plan, substitute=False), Keys(plan.steps, 0, 0, 1), workers):
        batch.skipped = waiting + [(name, why) for _, name, why in batch.broken]
        if len(batch.index) == 0:
            waiting = batch.skipped
            continue
        waiting = []
        given += len(batch.index)
        yield batch
    if waiting and not given:
        name, why = waiting[0]
        raise UserError(f"none of the {len(ds)} images can be read (the first: {name}: {why}); fix the set")
    if waiting:
        yield Batch.empty(waiting)


def check_sizes(count: int, batch_size: int, world: int, drop_last: bool) -> None:
    """Numbers that make no batch are refused before anything starts."""
    if batch_size < 1 or batch_size % world:
        raise UserError(
            f"--batch-size {batch_size} cannot be shared by {world} processes; give a multiple of {world}"
        )
    if drop_last and count < batch_size:
        raise UserError(
            f"{count} images are fewer than one batch of {batch_size}; "
            + (
                f"give --batch-size {count} or less, or more images"
                if count > 1
                else "give at least 2 images"
            )
        )
