"""A model whose answers are written down: image sets, features and a probe for oracles of the audits' scores."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from cuewise.audits.answerer import Answerer
from cuewise.probes import Probe

SILENT = None  # features that are not finite: no answer


class Said(Probe):
    """Column 0 of a row of features is the number of the class that is said, column n + 1 that of draw n."""

    def __init__(self, classes: int, draws: int = 0) -> None:
        self.count, self.draws = classes, draws

    @property
    def protocol(self) -> str:
        return "said"

    def fit(self, X: Any, y: Any, groups: Any = None) -> Said:
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.eye(self.count, dtype=np.float32)[X[:, 0].astype(int)]

    def drawn(self, X: Any) -> list[Any]:
        return [np.eye(self.count, dtype=np.float32)[X[:, n + 1].astype(int)] for n in range(self.draws)]


def answerer(classes: Sequence[str], draws: int = 0) -> Answerer:
    return Answerer(Said(len(classes), draws), tuple(classes), "key")


class Images:
    """An image set as the audits see it."""

    def __init__(
        self,
        names: Sequence[str],
        classes: Sequence[str],
        labels: Sequence[int] | None = None,
        **columns: Sequence[int],
    ) -> None:
        self.names, self.classes = list(names), tuple(classes)
        self.labels = None if labels is None else np.array(labels, np.int64)
        self.columns = {k: np.array(v, np.int64) for k, v in columns.items()}
        self.sources = (self,)

    def __len__(self) -> int:
        return len(self.names)

    def name(self, i: int) -> str:
        return self.names[i]

    def image(self, i: int) -> Any:
        return np.full((4, 4, 3), i, np.uint8)


class Model:
    """Says `said[i]` of image i; images without an entry cannot be read. `drawn[n][i]`: the same of draw n."""

    name = "m"

    def __init__(
        self, said: dict[int, int | None], drawn: Sequence[dict[int, int]] = (), copies: Any = None
    ) -> None:
        self.said, self.redrawn, self.copies = said, drawn, copies

    def features(self, data: Any, what: str = "") -> Any:
        rows = [
            [np.nan if said is None else said, *(d[i] for d in self.redrawn)] for i, said in self.said.items()
        ]
        return SimpleNamespace(index=np.array(list(self.said), np.int64), features=np.array(rows, np.float32))

    def answers(self, data: Any, answerer: Any, changes: Any, what: str = "") -> Any:
        return self.copies
