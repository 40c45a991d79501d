"""Fine-tuning: the whole network is trained further on labelled images, then answers."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.data import Dataset, Loader, auto_workers
from cuewise.encoders import Encoder
from cuewise.encoders.embed import Embedded, embed_dataset
from cuewise.errors import UserError
from cuewise.probes.layer_decay import layer_decayed
from cuewise.probes.probe import Labels, Probe, held_out
from cuewise.progress import Progress
from cuewise.views import RECIPES, View, Views

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Tuning:
    """SGD with momentum 0.9 on all weights, or AdamW with a decay of the rate per layer of a vision transformer.

    Several rates mean the best one on a held-out fifth, then all images.
    """

    lr: tuple[float, ...]
    batch_size: int
    epochs: int | None  # None: as many as `iterations` take
    drops: tuple[int, ...] = ()  # epochs after which the rate is a tenth; none: cosine to 0
    weight_decay: float = 1e-4
    iterations: int | None = None
    layer_decay: float | None = None  # AdamW
    warmup: float = 0.0  # share of training

    def __str__(self) -> str:
        rates = "|".join(f"{v:g}" for v in self.lr)
        length = f"epochs{self.epochs}" if self.iterations is None else f"iterations{self.iterations}"
        fall = f"x0.1at{'-'.join(map(str, self.drops))}" if self.drops else "cosine"
        layers = f"_layerdecay{self.layer_decay:g}" if self.layer_decay else ""
        return f"lr{rates}_batch{self.batch_size}_{length}_{fall}_wd{self.weight_decay:g}{layers}"


TUNINGS = {
    # Mishra et al., Table 2.2 gives no settings: the grid is chosen on held-out images
    "transfer": Tuning((0.01, 0.03, 0.1), 128, 100),
    # Geirhos et al. 2019, as Mishra et al. use it: on clean images after training on a mixture
    "clean": Tuning((0.01,), 256, 60, (30,)),
    # He et al. 2022 and CAN: 50 epochs with layer decay 0.75, 5 of them warm-up
    "vit": Tuning((1e-3,), 256, 50, weight_decay=0.05, layer_decay=0.75, warmup=0.1),
    # Mishra et al., section 2.8: lr 0.003 and 90,000 iterations are published, batch and decay follow DeepCluster
    "voc": Tuning((0.003,), 16, None, weight_decay=1e-6, iterations=90_000),
}


def tuning(preset: str, known: tuple[str, ...], **changes: Any) -> Tuning:
    """A preset with what the user asked for instead."""
    if preset not in known:
        raise UserError(f"no preset {preset!r} of fine-tuning; there are: {', '.join(known)}")
    if changes.get("epochs") is not None:
        changes["iterations"] = None
    if changes.get("lr") is not None:
        changes["lr"] = (changes["lr"],)
    given = {k: v for k, v in changes.items() if v is not None or (k == "iterations" and k in changes)}
    for name, value in given.items():
        if value is not None and (value[0] if isinstance(value, tuple) else value) <= 0:
            raise UserError(f"--{name.replace('_', '-')} must be above 0")
    return dataclasses.replace(TUNINGS[preset], **given)


class FinetuneProbe(Probe):
    """The encoder and a new linear layer trained together on random crops and flips; X is a Dataset, not features."""

    def __init__(
        self,
        encoder: Encoder,
        tuning: Tuning = TUNINGS["transfer"],
        seed: int = 0,
        steps: int | None = None,
        workers: int | None = None,
        loss: Loss = F.cross_entropy,
    ) -> None:
        self.encoder, self.tuning, self.seed = encoder, tuning, seed
        self.steps, self.workers, self.loss = steps, workers, loss

    @property
    def protocol(self) -> str:
        early = f"_stopped_at_{self.steps}_steps" if self.steps else ""
        solver = "adamw" if self.tuning.layer_decay else "sgd"
        return f"finetune_{solver}_{self.tuning}{early}"

    def fit(self, X: Any, y: Labels, groups: Labels | None = None) -> Self:
        """X is a Dataset; y has a label (or a row of labels) for each of its images."""
        y = np.asarray(y)
        if y.ndim == 1 and (len(y) == 0 or y.min() < 0 or len(np.unique(y)) < 2):
            raise UserError("fine-tuning needs labelled images of at least two classes: one folder per class")
        self.classes_ = np.arange(int(y.max()) + 1 if y.ndim == 1 else y.shape[1])
        self.lr_ = self.tuning.lr[0]
        if len(self.tuning.lr) > 1:
            rest, held = held_out(
                y if y.ndim == 1 else np.zeros(len(y), int), np.random.default_rng(self.seed)
            )
            self.lr_ = self._choose(X, y, rest, held)
        self.network_ = self._train(X, y, self.lr_)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """One row for each readable image of the data set X."""
        return self.answers(X).features

    def answers(self, data: Dataset, label: str | None = None) -> Embedded:
        """Probabilities in place of features."""
        return self._outputs(self.network_, data, label)

    def _outputs(self, network: nn.ModuleList, data: Dataset, label: str | None = None) -> Embedded:
        encoder, head = network
        assert isinstance(encoder, Encoder)
        several = self.loss is not F.cross_entropy

        def probabilities(x: Tensor) -> Tensor:
            z = head(encoder(x))
            return z.sigmoid() if several else z.softmax(1)

        return embed_dataset(encoder, data, forward=probabilities, workers=self.workers, label=label)

    def _choose(self, data: Dataset, y: Labels, rest: Labels, held: Labels) -> float:
        found: dict[float, float] = {}
        for lr in self.tuning.lr if len(held) else ():
            try:
                network = self._train(data.select(rest), y[rest], lr)
            except UserError:  # diverged: the worst there is
                continue
            out = self._outputs(network, data.select(held))
            p, t = torch.from_numpy(out.features), torch.from_numpy(y[held][out.index])
            right = (p.argmax(1) == t).float().mean() if t.ndim == 1 else -self.loss(p.logit(1e-6), t)
            found[lr] = float(right)
        return max(found, key=lambda lr: found[lr]) if found else min(self.tuning.lr)

    def _train(self, data: Dataset, y: Labels, lr: float) -> nn.ModuleList:
        """Top to bottom: network, loader, optimiser, steps."""
        t = self.tuning
        encoder = copy.deepcopy(self.encoder).requires_grad_(True).train()
        device = next(encoder.parameters()).device
        generator = torch.Generator().manual_seed(self.seed)
        head = nn.Linear(encoder.dim, len(self.classes_))
        nn.init.normal_(head.weight, 0, 0.01, generator=generator)
        nn.init.zeros_(head.bias)
        network = nn.ModuleList([encoder.to(memory_format=torch.channels_last), head]).to(device)
        batch_size = min(t.batch_size, len(data))
        view = Views([View("image", dataclasses.replace(RECIPES["supervised"], size=encoder.card.size))])
        workers = (auto_workers() if len(data) > 1000 else 0) if self.workers is None else self.workers
        loader = Loader(data, view, batch_size=batch_size, seed=self.seed, workers=workers)
        epochs = t.epochs or math.ceil((t.iterations or 1) / loader.steps_per_epoch)
        total = t.iterations or epochs * loader.steps_per_epoch
        last = min(total, self.steps or total)
        solver: torch.optim.Optimizer
        if t.layer_decay:
            solver = layer_decayed(encoder, head, lr, t.layer_decay, t.weight_decay)
        else:
            solver = torch.optim.SGD(network.parameters(), lr=lr, momentum=0.9, weight_decay=t.weight_decay)
        with Progress(last, "steps", f"fine-tuning, lr {lr:g}") as bar:
            for step, batch in enumerate(loader.batches(epochs=epochs)):
                if step >= last:
                    break
                for group in solver.param_groups:
                    group["lr"] = lr * group.get("scale", 1.0) * self._factor(step, total, batch.epoch)
                z = head(encoder(encoder.normalise(batch.views["image"].to(device))))
                loss = self.loss(z, torch.from_numpy(y[batch.index.numpy()]).to(device))
                if not torch.isfinite(loss):
                    raise UserError(
                        f"fine-tuning diverges with lr {lr:g} at step {step}: give a smaller --lr"
                    )
                solver.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                solver.step()
                bar.add(1, loss=f"{loss.item():.3f}")
        return network.eval()

    def _factor(self, step: int, total: int, epoch: int) -> float:
        if self.tuning.drops:
            return 0.1 ** sum(epoch >= drop for drop in self.tuning.drops)
        warmup = self.tuning.warmup * total
        if step < warmup:
            return min(1.0, (step + 1) / warmup)
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
