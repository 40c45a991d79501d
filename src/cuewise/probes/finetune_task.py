"""`cuewise probe finetune`: the whole network is trained further on labelled images, then scored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cuewise.probes.finetune import FinetuneProbe, tuning
from cuewise.probes.kinds import ProbeKind
from cuewise.probes.probe import top_hits
from cuewise.probes.task import HELD_OUT, Task, accuracies
from cuewise.scores import Score, proportion


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

    def run(self, task: Task) -> list[Score]:
        chosen = tuning(
            self.preset or "transfer",
            ("transfer", "clean", "vit"),
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
        )
        probe = FinetuneProbe(task.encoder, chosen, task.seed, self.steps)
        data, labels = task.fitted, task.fitted.labels
        assert labels is not None
        fitted, sets = data, task.test_sets
        if not sets:
            rest, held = task.halves(labels)
            fitted, sets = data.select(rest), [(HELD_OUT, data.select(held))]
        probe.fit(fitted, fitted.labels)  # type: ignore[arg-type]
        protocol = task.protocol(probe, len(fitted), len(np.unique(labels)), "crops")
        scores: list[Score] = []
        for name, each in sets:
            found = task.note(probe.answers(each, f"answers on {name}"), each)
            got = task.judged(name, found, each.classes, data.classes)
            p = found.features[got.rows]

            def score(what: str, k: int, p: Any = p, got: Any = got) -> Score:
                return proportion(what, int(top_hits(p, got.labels, k, got.right).sum()), len(p), "")

            scores += accuracies(score, name, len(data.classes), f"{protocol}{got}")
        return scores
