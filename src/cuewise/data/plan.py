"""Which images are in which batch, and the random numbers of each: functions of (seed, epoch, place) alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Plan:
    """Which images make up which batch: a function of (seed, epoch, step), and of nothing else."""

    count: int
    batch_size: int  # global: over all ranks
    seed: int
    shuffle: bool = True
    drop_last: bool = True
    rank: int = 0
    world: int = 1
    _order: dict[int, NDArray[np.int64]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return self.count // self.batch_size if self.drop_last else -(-self.count // self.batch_size)

    def order(self, epoch: int) -> NDArray[np.int64]:
        """The permutation of an epoch; the last one is kept."""
        if epoch not in self._order:
            self._order.clear()
            numbers = np.arange(self.count, dtype=np.int64)
            if self.shuffle:
                generator(self.seed, epoch, 0, use=1).shuffle(numbers)
            self._order[epoch] = numbers
        return self._order[epoch]

    def indices(self, epoch: int, step: int) -> NDArray[np.int64]:
        """This rank's contiguous part of the global batch."""
        order = self.order(epoch)
        batch = order[step * self.batch_size : (step + 1) * self.batch_size]
        missing = -len(batch) % self.world  # in a last, short batch: every rank must have as many
        if missing:
            batch = np.concatenate([batch, np.resize(order, missing)])
        share = len(batch) // self.world
        return batch[self.rank * share : (self.rank + 1) * share]


def generator(seed: int, epoch: int, index: int, use: int = 0) -> np.random.Generator:
    """A stream of its own for (seed, epoch, index): Philox is a hash of its key, so no stream is ever shared."""
    key = (seed % 2**64) | ((epoch << 40 | index) << 64)
    return np.random.Generator(np.random.Philox(key=key, counter=use << 192))


class Keys:
    """(epoch, step) from a position to the end, in order: what the DataLoader hands to its workers."""

    def __init__(self, steps: int, epoch: int, step: int, epochs: int) -> None:
        self.steps, self.first, self.last = steps, epoch * steps + step, epochs * steps

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for key in range(self.first, self.last):
            yield divmod(key, self.steps)

    def __len__(self) -> int:
        return max(0, self.last - self.first)

    def rest(self) -> Keys:
        """The keys after the first."""
        return Keys(self.steps, 0, self.first + 1, self.last // max(1, self.steps))
