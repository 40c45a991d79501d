"""What is done at the end of an epoch: the encoder is written, and measured on --val."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F

from cuewise.data import Dataset
from cuewise.encoders.embed import embed_dataset
from cuewise.encoders.load import save_encoder
from cuewise.encoders.spaces import save_heads
from cuewise.objectives.neighbours import knn_votes
from cuewise.scores import proportion

if TYPE_CHECKING:
    from cuewise.train.loop import Run


class EpochEnd:
    """Writes the encoder as it stands, and its k-NN accuracy on --val (each image against all others)."""

    def __init__(self, val: Dataset | None) -> None:
        self.val = val

    def __call__(self, run: Run, measure: bool = True) -> dict[str, float]:
        out: dict[str, float] = {}
        if run.first:
            save_encoder(
                run.method.encoder,
                run.folder / "encoder.safetensors",
                step=run.step,
                epochs=run.config.epochs,
            )
            if (heads := run.method.own_spaces()) is not None:
                save_heads(heads, run.folder, run.step)
            if self.val is not None and measure:
                out = knn_leave_one_out(run, self.val) | classifier_accuracy(run, self.val)
        run.fabric.barrier()
        return out


def knn_leave_one_out(run: Run, val: Dataset, k: int = 20, tau: float = 0.07) -> dict[str, float]:
    """val/knn20_t0.07_loo and its interval."""
    found = embed_dataset(run.method.encoder, val, label=None)
    z = F.normalize(torch.from_numpy(found.features), dim=1)
    labels = torch.from_numpy(found.labels)
    votes = knn_votes(z, z, labels, len(val.classes), k=k, tau=tau, leave_one_out=True)
    name = f"val/knn{k}_t{tau}_loo"
    score = proportion(name, int((votes.argmax(1) == labels).sum()), len(labels), "k-NN, leave one out")
    return {name: score.value, f"{name}_low": score.low, f"{name}_high": score.high}


def classifier_accuracy(run: Run, val: Dataset) -> dict[str, float]:
    """val/accuracy of the run's own classifier and its interval, on images of the classes it knows."""
    known = {name: k for k, name in enumerate(run.loader.maker.ds.classes)}
    numbers = np.array([known.get(name, -1) for name in val.classes])
    encoder, head = run.method.encoder, run.method.own_classifier()
    if head is None or val.labels is None or (numbers < 0).all():
        return {}
    found = embed_dataset(encoder, val, forward=lambda x: head(encoder(x)), label=None)
    labels = numbers[found.labels]
    of_known = labels >= 0
    right = int((found.features.argmax(1) == labels)[of_known].sum())
    score = proportion("val/accuracy", right, int(of_known.sum()), "own classifier")
    return {score.name: score.value, f"{score.name}_low": score.low, f"{score.name}_high": score.high}
