"""The loop that trains a detector or a segmenter, with checkpoints from which it continues to the bit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cuewise.data import Batch, Loader
from cuewise.errors import Interrupted, UserError
from cuewise.probes.dense.schedule import DenseSchedule
from cuewise.progress import Progress
from cuewise.train.checkpoint import read_checkpoint, write_atomically
from cuewise.train.loop import stop_signal

KEYS = ("settings", "step", "network", "optimizer", "skipped")
SAVE_SECONDS = 120.0
Losses = Callable[[Batch], Tensor]


class Fit:
    """One training: the network, where its checkpoint lies, and what the checkpoint must agree with.

    settings  what the result depends on; a checkpoint of others is refused
    """

    def __init__(
        self,
        network: nn.Module,
        schedule: DenseSchedule,
        seed: int,
        settings: Mapping[str, Any],
        file: Path | None,
    ) -> None:
        self.network, self.schedule, self.seed, self.file = network, schedule, seed, file
        self.settings = {k: str(v) for k, v in settings.items()}
        self.step, self.skipped = 0, dict[str, str]()
        moved = [p for p in network.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(
            moved, lr=schedule.lr, momentum=0.9, weight_decay=schedule.weight_decay
        )
        if file is not None and file.exists():
            self._restore(file)

    def run(
        self, loader: Loader, losses: Losses, label: str, before: Callable[[], None] = lambda: None
    ) -> None:
        """Train to the end. `before` is called ahead of each step (modes of layers)."""
        per_epoch, batch_size = loader.steps_per_epoch, loader.plan.batch_size
        total = self.schedule.length(per_epoch)
        saved, epochs = time.monotonic(), math.ceil(total / per_epoch)
        if self.step >= total:
            return
        with stop_signal() as stop, Progress(total, "steps", label, start=self.step) as bar:
            batches = loader.batches(epoch=self.step // per_epoch, step=self.step % per_epoch, epochs=epochs)
            for batch in batches:
                self.skipped |= dict(batch.skipped)
                before()
                loss = self._advance(batch, losses, self.schedule.rate(self.step, total, batch_size))
                self.step += 1
                bar.add(1, loss=f"{loss:.3f}")
                over = self.step >= total or stop.requested
                if over or time.monotonic() - saved > SAVE_SECONDS:
                    self.save()
                    saved = time.monotonic()
                if over:
                    break
        if self.step < total:
            again = "give the same command again (probe: with --resume)"
            again = again if self.file else "give --out DIR to be able to continue"
            raise Interrupted(f"stopped at step {self.step} of {total}; {again}")

    def _advance(self, batch: Batch, losses: Losses, rate: float) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with seeded(self.seed, self.step):  # the library samples from torch's global generator
            loss = losses(batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise UserError(
                f"training diverges at step {self.step} with a rate of {rate:.3g}: give a smaller --lr"
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.schedule.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.schedule.clip)
        self.optimizer.step()
        return value

    def save(self) -> None:
        """Everything that the rest depends on; random numbers follow from the seed and the step."""
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "settings": self.settings,
            "step": self.step,
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "skipped": self.skipped,
        }
        write_atomically(content, self.file)

    def _restore(self, file: Path) -> None:
        content = read_checkpoint(file, KEYS)
        theirs = content["settings"]
        for name in {**theirs, **self.settings}:
            if theirs.get(name) != self.settings.get(name):
                raise UserError(
                    f"{file} was trained with another {name}: {theirs.get(name)} → {self.settings.get(name)}; "
                    f"start again with --overwrite, or give what it was"
                )
        self.network.load_state_dict(content["network"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.step, self.skipped = content["step"], dict(content["skipped"])


@contextmanager
def seeded(seed: int, number: int = 0) -> Iterator[None]:
    """torch's global generator set from a seed and a number, and back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed((seed * 1_000_003 + number + 1) % (1 << 63))
        yield


def freeze(module: nn.Module) -> None:
    """Nothing of it learns."""
    module.requires_grad_(False)
    module.eval()


def freeze_norms(module: nn.Module) -> None:
    """Batch statistics stay as they came, scale and offset too."""
    for m in module.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            freeze(m)


@torch.no_grad()
def precise_norms(
    network: nn.Module, loader: Loader, forward: Callable[[Batch], object], batches: int, seed: int
) -> None:
    """Batch statistics as means over whole batches of the weights as they are at the end, in place of running ones."""
    norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None  # a plain mean
    for number, batch in enumerate(loader.batches()):
        if number >= batches:
            break
        with seeded(seed, number):
            forward(batch)
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum
