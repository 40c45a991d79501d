"""`cuewise probe finetune`: the whole network is trained further on labelled images, then scored."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from torch import nn

from cuewise.data import open_data
from cuewise.errors import UserError
from cuewise.methods import Method
from cuewise.probes.finetune import FinetuneProbe
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.task import Task
from cuewise.probes.tuned import tuned_scores
from cuewise.probes.tunings import tuning
from cuewise.scores import Score
from cuewise.train.reload import load_config, load_method, read_images


@dataclass(frozen=True)
class Finetune(ProbeKind):
    """Train the whole network, then score its answers."""

    name = "finetune"
    summary = "the whole network is trained further (--preset transfer, clean or vit)"
    estimator = FinetuneProbe

    preset: Annotated[
        str | None, "a paper's settings: transfer, clean, vit (layer decay, for transformers) [transfer]"
    ] = None
    class_map: Annotated[
        str | None,
        "JSON or CSV that says which training class a class of a test set is, where the names differ",
    ] = None
    epochs: Annotated[int | None, "passes over the images [the preset's]"] = None
    batch_size: Annotated[int | None, "images per step [the preset's]"] = None
    lr: Annotated[
        float | None, "learning rate [the preset's, chosen on held-out images where there are several]"
    ] = None
    steps: Annotated[int | None, "stop after this many steps, the schedule unchanged"] = None

    val: Annotated[str | None, "labelled images to choose the rate on [a held-out fifth of --train]"] = None
    seeds: Annotated[int, "number of runs, starting at --seed; their mean is reported"] = 1

    def run(self, task: Task) -> list[Score]:
        chosen = tuning(
            self.preset or "transfer",
            ("transfer", "clean", "vit"),
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
        )
        if self.seeds < 1:
            raise UserError(f"--seeds {self.seeds}: must be 1 or more")
        if self.val is not None and len(chosen.lr) == 1:
            raise UserError(
                f"--val chooses among several rates, and there is one, {chosen.lr[0]:g}: leave --val or --lr out, or "
                "take --preset transfer"
            )
        head = own_classifier(task) if self.preset == "clean" else None
        probes = [
            FinetuneProbe(task.encoder, chosen, task.seed + n, self.steps, head=head)
            for n in range(self.seeds)
        ]
        return tuned_scores(task, probes, self.val)


def own_classifier(task: Task) -> nn.Linear | None:
    """The linear classifier that a run learned, where its classes are those of --train: --preset clean trains it further.

    Any other model gets a new layer; a line says which it is.
    """
    head, why = learned_classifier(task.run, tuple(task.fitted.classes))
    started = f"a new linear layer ({why})" if head is None else "the classifier of the run"
    print(f"fine-tuning starts from {started}", file=sys.stderr, flush=True)
    return head


def learned_classifier(run: Path | None, classes: tuple[str, ...]) -> tuple[nn.Linear | None, str]:
    """The linear classifier of a run for these classes, or why there is none."""
    if run is None:
        return None, "the model is not a run"
    try:
        kind = load_config(run).method_class
    except UserError as error:  # its method is code from outside
        return None, str(error)
    if kind.own_classifier is Method.own_classifier:
        return None, f"{kind.name} learns none"
    head = load_method(run).own_classifier()  # a checkpoint that is damaged or gone is an error
    if not isinstance(head, nn.Linear):
        return None, "the run has no linear classifier"
    try:
        known = tuple(open_data(read_images(run)[1]).classes)
    except UserError:  # which output is which class is known by the images of the run alone
        return None, "the training images of the run are no longer there"
    return (head, "") if known == classes else (None, "the run was trained on other classes")
