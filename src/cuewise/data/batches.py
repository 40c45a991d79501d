"""One batch: read, decode, transform and stack, with a readable neighbour in place of a broken image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import get_worker_info

from cuewise.data.dataset import Dataset
from cuewise.data.decode import BrokenImage, Image
from cuewise.data.plan import Plan, generator
from cuewise.errors import UserError

Transform = Callable[[Image, np.random.Generator, int], dict[str, NDArray[Any]]]
MOST_IN_A_ROW = 256  # broken images before we believe that the set, not the image, is the trouble


@dataclass
class Batch:
    """Stacked arrays by name, and where they came from."""

    views: dict[str, torch.Tensor]  # each N×…
    index: torch.Tensor  # int64 [N]: images as used, so a substitute shows here
    label: torch.Tensor  # int64 [N]; −1 without labels
    epoch: int
    step: int
    skipped: list[tuple[str, str]] = field(default_factory=list)  # (name, why), each image once in a run
    broken: list[tuple[int, str, str]] = field(default_factory=list)  # (index, name, why) met in this batch
    failure: str | None = None  # a UserError on its way from a worker

    @staticmethod
    def empty(skipped: list[tuple[str, str]]) -> Batch:
        """No images, only what was skipped."""
        none = torch.empty(0, dtype=torch.int64)
        return Batch({}, none, none, 0, 0, skipped)

    def pin_memory(self) -> Batch:
        """Called by the DataLoader's own thread; page-locked memory goes to a GPU without waiting."""
        self.views = {key: view.pin_memory() for key, view in self.views.items()}
        return self


class Maker:
    """Makes batch (epoch, step) from nothing but its numbers; what the workers hold. Picklable."""

    def __init__(self, ds: Dataset, transform: Transform, plan: Plan, *, substitute: bool = True) -> None:
        self.ds, self.transform, self.plan, self.substitute = ds, transform, plan, substitute
        self._known: dict[int, BrokenImage] = {}  # found broken by this process

    def __getitem__(self, key: tuple[int, int]) -> Batch:
        epoch, step = key
        try:
            return self.make(epoch, step)
        except UserError as error:  # the DataLoader would wrap a traceback around its one line
            batch = Batch.empty([])
            batch.failure = str(error)
            return batch

    def warm_up(self) -> None:
        """Compile here, once, what every forked worker would otherwise compile for itself, if the transform knows how.

        It is not tried on the images: what a worker may die of must not happen in this process.
        """
        prepare = getattr(self.transform, "warm_up", None)
        if prepare is not None:
            prepare()

    def make(self, epoch: int, step: int) -> Batch:
        """Read, decode, transform, stack."""
        wanted = self.plan.indices(epoch, step)
        used: list[int] = []
        broken: dict[int, BrokenImage] = {}
        views: dict[str, torch.Tensor] = {}
        for i in wanted.tolist():
            found = self._readable(i, broken)
            if found is None:
                continue
            j, image = found
            # The place in the plan, not the image used, names the stream: a substitute that is in the batch
            # in its own right gets other random numbers there.
            arrays = self.transform(image, generator(self.plan.seed, epoch, i), j)
            if not used:
                views = {k: _reserve(len(wanted), np.asarray(a)) for k, a in arrays.items()}
            _put(views, len(used), arrays, self.ds.name(j) if len(arrays) != len(views) else "")
            used.append(j)
        index = np.array(used, dtype=np.int64)
        label = np.full(len(used), -1, dtype=np.int64) if self.ds.labels is None else self.ds.labels[index]
        if len(used) < len(wanted):
            views = {k: v[: len(used)].clone() for k, v in views.items()}
        listed = [(i, error.name, error.why) for i, error in broken.items()]
        return Batch(views, torch.from_numpy(index), torch.from_numpy(label), epoch, step, broken=listed)

    def _readable(self, i: int, broken: dict[int, BrokenImage]) -> tuple[int, Image] | None:
        """Image i, or with `substitute` the next that can be read; notes the broken ones on the way."""
        n = len(self.ds)
        tries = min(n, MOST_IN_A_ROW) if self.substitute else 1
        for j in ((i + k) % n for k in range(tries)):
            error = self._known.get(j)
            if error is None:
                try:
                    return j, self.ds.image(j)
                except BrokenImage as found:
                    error = self._known[j] = BrokenImage(found.name, found.why)
            broken[j] = error
        if not self.substitute:
            return None
        first = self._known[i]
        raise UserError(
            f"{tries} images in a row cannot be read (the first: {first.name}: {first.why}); mend or replace them"
        )


def _reserve(n: int, like: NDArray[Any]) -> torch.Tensor:
    """n × shape; in a worker in shared memory at once, so that sending it copies nothing."""
    kind = torch.from_numpy(np.empty(0, dtype=like.dtype)).dtype
    if get_worker_info() is None or like.nbytes == 0:
        return torch.empty((n, *like.shape), dtype=kind)
    try:
        storage = torch.UntypedStorage._new_shared(n * like.nbytes)
    except RuntimeError as error:
        raise UserError(
            f"no shared memory for a batch ({error}); give /dev/shm more room, a smaller --batch-size or --workers 0"
        ) from None
    return torch.empty(0, dtype=kind).set_(storage, 0, (n, *like.shape))  # type: ignore[call-overload,no-any-return]


def _put(views: dict[str, torch.Tensor], at: int, arrays: dict[str, NDArray[Any]], name: str) -> None:
    if arrays.keys() != views.keys():
        raise ValueError(f"the transform gave {sorted(arrays)} and before {sorted(views)} ({name})")
    for key, array in arrays.items():
        row = views[key][at].numpy()
        if row.shape != np.shape(array):
            raise ValueError(f"the transform gave {key} of shape {np.shape(array)} and before {row.shape}")
        row[...] = array
