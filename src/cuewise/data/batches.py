"""One batch: read, decode, transform and stack, with a readable neighbour in place of a broken image."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import get_worker_info

from cuewise.data.dataset import Dataset
from cuewise.data.decode import BrokenImage
from cuewise.data.plan import Plan, generator
from cuewise.data.sample import Sample, Shown
from cuewise.errors import UserError

Transform = Callable[[Sample, np.random.Generator], Shown]
MOST_IN_A_ROW = 256  # broken images before the set, not the image, is taken to be at fault


@dataclass
class Batch:
    """Views by role, facts by name, and which images they are of.

    views  role → N×…; uint8 as the loader makes them, normalised float as a method gets them
    index  int64 [N]: the images as used, so a substitute shows here
    facts  name → tensor N×…, or a list of N where the fact is ragged; "label" is int64, −1 without labels
    """

    views: dict[str, Tensor]
    index: Tensor
    facts: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0
    step: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)  # (name, why), each image once per run
    broken: list[tuple[int, str, str]] = field(default_factory=list)  # (index, name, why) met in this batch
    failure: str | None = None  # a UserError on its way from a worker

    def __len__(self) -> int:
        return len(self.index)

    @property
    def label(self) -> Tensor:
        """int64 [N]; −1 without labels."""
        return self.facts["label"]

    @staticmethod
    def empty(skipped: list[tuple[str, str]]) -> Batch:
        """No images, only what was skipped."""
        none = torch.empty(0, dtype=torch.int64)
        return Batch({}, none, {"label": none}, skipped=skipped)

    def to(self, device: torch.device, view: Callable[[Tensor], Tensor] = lambda x: x) -> Batch:
        """This batch on a device, with `view` applied to each stack of images N×H×W×3 there."""
        views = {}
        for role, x in self.views.items():
            flat = view(x.to(device, non_blocking=True).flatten(0, -4))
            views[role] = flat.unflatten(0, x.shape[:-3]) if x.ndim > 4 else flat
        return replace(
            self, views=views, index=self.index.to(device), facts=_each(self.facts, lambda x: x.to(device))
        )

    def part(self, i: int, parts: int) -> Batch:
        """Part i of `parts` equal parts."""
        if parts == 1:
            return self
        share = len(self) // parts
        here = slice(i * share, (i + 1) * share)
        facts = {name: value[here] for name, value in self.facts.items()}
        return replace(
            self, views={role: x[here] for role, x in self.views.items()}, index=self.index[here], facts=facts
        )

    def pin_memory(self) -> Batch:
        """Called by the DataLoader's own thread; page-locked memory is copied to a GPU without waiting."""
        views = {role: x.pin_memory() for role, x in self.views.items()}
        return replace(self, views=views, facts=_each(self.facts, Tensor.pin_memory))


def _each(facts: dict[str, Any], change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    return {name: change(value) if isinstance(value, Tensor) else value for name, value in facts.items()}


class BatchMaker:
    """Makes batch (epoch, step) from nothing but its numbers; what the workers hold. Picklable."""

    def __init__(self, ds: Dataset, transform: Transform, plan: Plan, *, substitute: bool = True) -> None:
        self.ds, self.transform, self.plan, self.substitute = ds, transform, plan, substitute
        self.turn: Callable[[], AbstractContextManager[None]] = nullcontext  # around each image; see gate.py
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

        It is not tried on the images: an image that crashes a worker must not crash this process.
        """
        prepare = getattr(self.transform, "warm_up", None)
        if prepare is not None:
            prepare()

    def make(self, epoch: int, step: int) -> Batch:
        """Read, decode, transform, stack."""
        wanted = self.plan.indices(epoch, step)
        used: list[int] = []
        broken: dict[int, BrokenImage] = {}
        views: dict[str, Tensor] = {}
        facts: dict[str, list[Any]] = {}
        for i in wanted.tolist():
            with self.turn():
                sample = self._readable(i, broken)
                if sample is None:
                    continue
                # The place in the plan, not the image used, names the stream: a substitute that is also
                # drawn for the batch itself gets other random numbers there.
                shown = self.transform(sample, generator(self.plan.seed, epoch, i))
            if not used:
                views = {role: _reserve(len(wanted), np.asarray(a)) for role, a in shown.views.items()}
                facts = {name: [] for name in ("label", *shown.facts)}
            _put(views, len(used), shown.views, sample.name)
            _note(facts, {"label": sample.label, **shown.facts}, sample.name)
            used.append(sample.index)
        if len(used) < len(wanted):
            views = {role: v[: len(used)].clone() for role, v in views.items()}
        listed = [(i, error.name, error.why) for i, error in broken.items()]
        index = torch.tensor(used, dtype=torch.int64)
        stacked = {name: _stacked(values) for name, values in facts.items()}
        batch = Batch(views, index, stacked or {"label": index}, epoch, step, broken=listed)
        finish = getattr(self.transform, "finish", None)
        return finish(batch) if finish is not None and used else batch

    def _readable(self, i: int, broken: dict[int, BrokenImage]) -> Sample | None:
        """Sample i, or with `substitute` the next that can be read; notes the broken ones on the way."""
        n = len(self.ds)
        tries = min(n, MOST_IN_A_ROW) if self.substitute else 1
        for j in ((i + k) % n for k in range(tries)):
            error = self._known.get(j)
            if error is None:
                try:
                    return self.ds.sample(j)
                except BrokenImage as found:
                    error = self._known[j] = BrokenImage(found.name, found.why)
            broken[j] = error
        if not self.substitute:
            return None
        first = self._known[i]
        raise UserError(
            f"{tries} images in a row cannot be read (the first: {first.name}: {first.why}); fix or replace them"
        )


def _reserve(n: int, like: NDArray[Any]) -> Tensor:
    """n × shape; in a worker in shared memory at once, so that sending it copies nothing."""
    kind = torch.from_numpy(np.empty(0, dtype=like.dtype)).dtype
    if get_worker_info() is None or like.nbytes == 0:
        return torch.empty((n, *like.shape), dtype=kind)
    try:
        storage = torch.UntypedStorage._new_shared(n * like.nbytes)
    except RuntimeError as error:
        raise UserError(
            f"no shared memory for a batch ({error}); give /dev/shm more space, a smaller --batch-size or --workers 0"
        ) from None
    return torch.empty(0, dtype=kind).set_(storage, 0, (n, *like.shape))  # type: ignore[call-overload,no-any-return]


def _put(views: dict[str, Tensor], at: int, arrays: dict[str, NDArray[Any]], name: str) -> None:
    if arrays.keys() != views.keys():
        raise ValueError(f"the transform gave {sorted(arrays)} and before {sorted(views)} ({name})")
    for key, array in arrays.items():
        row = views[key][at].numpy()
        if row.shape != np.shape(array):
            raise ValueError(f"the transform gave {key} of shape {np.shape(array)} and before {row.shape}")
        row[...] = array


def _note(facts: dict[str, list[Any]], found: dict[str, Any], name: str) -> None:
    if found.keys() != facts.keys():
        raise ValueError(f"the transform gave the facts {sorted(found)} and before {sorted(facts)} ({name})")
    for key, value in found.items():
        facts[key].append(value)


def _stacked(values: list[Any]) -> Any:
    """One tensor where the values are numbers or arrays of one shape, else the list as it is."""
    if all(isinstance(v, int | float | np.number | np.bool_) for v in values):
        return torch.from_numpy(np.array(values))
    if all(isinstance(v, np.ndarray) and v.shape == values[0].shape for v in values):
        return torch.from_numpy(np.stack(values))
    return values
