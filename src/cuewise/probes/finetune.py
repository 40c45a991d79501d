"""Fine-tuning: the whole network is trained further on labelled images, then answers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from cuewise.data import Dataset, Loader, Sample, Shown, auto_workers
from cuewise.encoders import Encoder
from cuewise.encoders.batch_norm import fix_statistics
from cuewise.encoders.embed import Embeddings, embed_dataset
from cuewise.errors import UserError
from cuewise.probes.layer_decay import layer_decayed
from cuewise.probes.probe import Labels, Probe, held_out
from cuewise.probes.tunings import TUNINGS, Tuning
from cuewise.progress import Progress
from cuewise.views import View, Views

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class RandomCrop:
    """Picklable: crop `number` of an image, the same in every call."""

    views: Views
    number: int

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Shown:
        for _ in range(self.number):
            rng = np.random.default_rng(rng.integers(2**63))
        return self.views(sample, rng)


class FinetuneProbe(Probe):
    """The encoder and a linear layer trained together on random crops and flips; X is a Dataset, not features.

    head: the classifier to start from, whose outputs are the classes of X; without it a new layer
    """

    def __init__(
        self,
        encoder: Encoder,
        tuning: Tuning = TUNINGS["transfer"],
        seed: int = 0,
        steps: int | None = None,
        workers: int | None = None,
        loss: Loss = F.cross_entropy,
        head: nn.Linear | None = None,
    ) -> None:
        self.encoder, self.tuning, self.seed = encoder, tuning, seed
        self.steps, self.workers, self.loss, self.head = steps, workers, loss, head

    @property
    def protocol(self) -> str:
        early = f"_stopped_at_{self.steps}_steps" if self.steps else ""
        solver = "adamw" if self.tuning.layer_decay else "sgd"
        what = "linear_augmented" if self.tuning.frozen else "finetune"
        start = "_from_own_classifier" if self.head is not None else ""
        return f"{what}_{solver}_{self.tuning}{start}{early}"

    def fit(
        self, X: Any, y: Labels, groups: Labels | None = None, judged: tuple[Dataset, Labels] | None = None
    ) -> Self:
        """X is a Dataset; y has a label (or a row of labels) for each of its images.

        judged: images and labels that choose the rate, instead of a fifth of X
        """
        y = np.asarray(y)
        if y.ndim == 1 and (len(y) == 0 or y.min() < 0 or len(np.unique(y)) < 2):
            raise UserError("fine-tuning needs labelled images of at least two classes: one folder per class")
        self.classes_ = np.arange(int(y.max()) + 1 if y.ndim == 1 else y.shape[1])
        self.lr_ = self.tuning.lr[0]
        if len(self.tuning.lr) > 1:
            self.lr_ = self._choose(X, y, judged)
        self.network_ = self._train(X, y, self.lr_)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """One row for each readable image of the data set X."""
        return self.answers(X).features

    def answers(self, data: Dataset, label: str | None = None) -> Embeddings:
        """Probabilities in place of features."""
        return self._outputs(self.network_, data, label)

    def _outputs(self, network: nn.ModuleList, data: Dataset, label: str | None = None) -> Embeddings:
        encoder, head = network
        assert isinstance(encoder, Encoder)
        several = self.loss is not F.cross_entropy

        def logits(x: Tensor) -> Tensor:
            z: Tensor = head(encoder(x))
            return z

        views: list[Any] = [None]  # the centre
        if self.tuning.crops:
            drawn = Views([View("image", self.tuning.recipe(encoder.card.size))])
            views = [RandomCrop(drawn, n) for n in range(self.tuning.crops)]
        found = [
            embed_dataset(
                encoder,
                data,
                forward=logits,
                transform=view,
                workers=self.workers,
                label=label if view is views[0] else None,
            )
            for view in views
        ]
        # the mean ranks as the published sum does, and saturates later
        z = torch.from_numpy(np.mean([one.features for one in found], axis=0))
        return replace(found[0], features=(z.sigmoid() if several else z.softmax(1)).numpy())

    def _choose(self, data: Dataset, y: Labels, judged: tuple[Dataset, Labels] | None) -> float:
        """The rate with most right answers on the images that judge; the smallest where there are none."""
        rest: Dataset = data
        if judged is None:
            strata = y if y.ndim == 1 else np.zeros(len(y), int)
            fitted, held = held_out(strata, np.random.default_rng(self.seed))
            rest, judged, y = data.select(fitted), (data.select(held), y[held]), y[fitted]
        found: dict[float, float] = {}
        for lr in self.tuning.lr if len(judged[1]) else ():
            try:
                network = self._train(rest, y, lr)
            except UserError:  # diverged: the worst there is
                continue
            out = self._outputs(network, judged[0])
            p, t = torch.from_numpy(out.features), torch.from_numpy(judged[1][out.index])
            right = (p.argmax(1) == t).float().mean() if t.ndim == 1 else -self.loss(p.logit(1e-6), t)
            found[lr] = float(right)
        return max(found, key=lambda lr: found[lr]) if found else min(self.tuning.lr)

    def _new_head(self, dim: int) -> nn.Linear:
        head = nn.Linear(dim, len(self.classes_))
        nn.init.normal_(head.weight, 0, 0.01, generator=torch.Generator().manual_seed(self.seed))
        nn.init.zeros_(head.bias)
        return head

    def _train(self, data: Dataset, y: Labels, lr: float) -> nn.ModuleList:
        """Top to bottom: network, loader, optimiser, steps."""
        t = self.tuning
        encoder = copy.deepcopy(self.encoder).requires_grad_(not t.frozen).train(not t.frozen)
        if t.fixed_norm:
            fix_statistics(encoder)
        device = next(encoder.parameters()).device
        head = self._new_head(encoder.dim) if self.head is None else copy.deepcopy(self.head)
        network = nn.ModuleList([encoder.to(memory_format=torch.channels_last), head]).to(device)
        batch_size = min(t.batch_size, len(data))
        view = Views([View("image", t.recipe(encoder.card.size))])
        workers = (auto_workers() if len(data) > 1000 else 0) if self.workers is None else self.workers
        loader = Loader(data, view, batch_size=batch_size, seed=self.seed, workers=workers)
        epochs = t.epochs or math.ceil((t.iterations or 1) / loader.steps_per_epoch)
        total = t.iterations or epochs * loader.steps_per_epoch
        last = min(total, self.steps or total)
        solver: torch.optim.Optimizer
        if t.layer_decay:
            solver = layer_decayed(encoder, head, lr, t.layer_decay, t.weight_decay)
        else:
            trained = [p for p in network.parameters() if p.requires_grad]
            solver = torch.optim.SGD(trained, lr=lr, momentum=0.9, weight_decay=t.weight_decay)
        with Progress(last, "steps", f"fine-tuning, lr {lr:g}") as bar:
            for step, batch in enumerate(loader.batches(epochs=epochs)):
                if step >= last:
                    break
                for group in solver.param_groups:
                    group["lr"] = lr * group.get("scale", 1.0) * t.factor(step, total, batch.epoch)
                z = head(encoder(encoder.normalise(batch.views["image"].to(device))))
                loss = self.loss(z, torch.from_numpy(y[batch.index.numpy()]).to(device))
                if not torch.isfinite(loss):
                    raise UserError(
                        f"fine-tuning diverges with lr {lr:g} at step {step}: give a smaller --lr"
                    )
                solver.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                if t.clip:
                    nn.utils.clip_grad_norm_(network.parameters(), t.clip)
                solver.step()
                bar.add(1, loss=f"{loss.item():.3f}")
        return network.eval()
