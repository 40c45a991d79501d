"""The drift guard: what a model that brought weights knew at the start, and how much of it is left."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from cuewise.data import Dataset
from cuewise.data.overlap import content as digest_of
from cuewise.encoders import Encoder
from cuewise.encoders.embed import embed_dataset
from cuewise.errors import UserError
from cuewise.files import aside, write_json
from cuewise.objectives.dials import effective_rank
from cuewise.objectives.neighbours import knn_votes
from cuewise.scores import Z95

MAX_DROP = 3.0  # points
MOST = 1000  # images that the guard looks at
K, TAU = 20, 0.07
RANK_LEFT, AGREEMENT_LEFT = 0.7, 0.7  # without labels: shares of the start below which a warning fires
Rows = NDArray[np.float64]
Outputs = Callable[[NDArray[np.float32]], NDArray[np.int64]]


@dataclass
class Reading:
    """One look: which images are answered rightly (None without labels), and what needs no labels."""

    step: int
    right: Rows | None
    answers: NDArray[np.int64] | None  # answers of the own classifier, or the nearest other image
    features: NDArray[np.float32]

    @property
    def rank(self) -> float:
        return float(effective_rank(F.normalize(torch.from_numpy(self.features), dim=1)))


@dataclass
class Guard:
    """Compares the encoder with how it was at step 0, on the same images.

    labelled  whether the labels of `data` are a test
    answers   features → class numbers by the own classifier; None: nearest neighbours answer
    """

    data: Dataset
    labelled: bool
    max_drop: float
    stop: bool = False
    answers: Outputs | None = None
    first: Reading | None = None
    fired: bool = False
    within: int | None = None  # step of the last reading within the bound
    stopped: bool = field(default=False)

    @property
    def images(self) -> str:
        """Which images it looks at, by name and content."""
        return f"{self.data.fingerprint()['hash']} {digest_of(self.data)}".strip()

    def read(self, encoder: Encoder, step: int) -> Reading:
        found = embed_dataset(encoder, self.data, label=None, workers=0)
        z = F.normalize(torch.from_numpy(found.features), dim=1)
        labels = found.labels if self.labelled else None
        if self.answers is not None:
            answers = self.answers(found.features)
        elif labels is not None:
            truth = torch.from_numpy(labels)
            votes = knn_votes(z, z, truth, len(self.data.classes), k=K, tau=TAU, leave_one_out=True)
            answers = votes.argmax(1).numpy()
        else:
            similar = z @ z.T
            similar.fill_diagonal_(-math.inf)
            answers = similar.argmax(1).numpy()
        right = (answers == labels).astype(np.float64) if labels is not None else None
        return Reading(step, right, answers, found.features)

    def look(self, encoder: Encoder, step: int) -> tuple[dict[str, float], list[str]]:
        """guard/* for metrics.jsonl, and what to say."""
        now = self.read(encoder, step)
        if not np.isfinite(now.features).all():
            return {}, []  # the loop ends a run that diverged
        if self.first is None:
            self.first, self.within = now, step
        row = self.row(now)
        bad = self.beyond(row)
        if not bad:
            self.within = step
        lines = []
        if bad and not self.fired:
            self.fired = True
            lines.append(f"warning: {self.words(row)}")
        self.stopped = bool(bad and self.stop)
        return row, lines

    def row(self, now: Reading) -> dict[str, float]:
        first = self.first
        assert first is not None
        assert now.answers is not None
        cos = (_unit(now.features) * _unit(first.features)).sum(1).mean()
        out = {
            "guard/agreement": float((now.answers == first.answers).mean()),
            "guard/effective_rank": now.rank,
            "guard/alignment": float(cos),
        }
        if now.right is not None and first.right is not None:
            lost = 100 * (first.right - now.right)
            margin = Z95 * float(lost.std(ddof=1)) / math.sqrt(len(lost)) if len(lost) > 1 else math.inf
            drop = float(lost.mean())
            out |= {
                "guard/accuracy": float(now.right.mean()),
                "guard/drop": drop,
                "guard/drop_low": drop - margin,
                "guard/drop_high": drop + margin,
            }
        return out

    def beyond(self, row: dict[str, float]) -> bool:
        """Whether more was lost than --max-drop allows, and not by chance: the drop's interval is above 0."""
        if "guard/drop" in row:
            return row["guard/drop"] > self.max_drop and row["guard/drop_low"] > 0
        assert self.first is not None
        return (
            row["guard/effective_rank"] < RANK_LEFT * self.first.rank
            or row["guard/agreement"] < AGREEMENT_LEFT
        )

    def words(self, row: dict[str, float]) -> str:
        what = "its own classifier" if self.answers is not None else "nearest neighbours"
        if "guard/drop" in row:
            warning = (
                f"accuracy by {what} fell by {row['guard/drop']:.1f} points "
                f"({row['guard/drop_low']:.1f} to {row['guard/drop_high']:.1f}), more than --max-drop {self.max_drop:g}"
            )
        else:
            warning = (
                f"the features drift: {100 * row['guard/agreement']:.0f} % of the images get the same answer from {what} "
                f"as at the start, effective rank {row['guard/effective_rank']:.0f}"
            )
        return (
            f"{warning}; the encoder of step {self.within} is kept as best.safetensors. Try a larger --keep, a lower --alpha "
            "or optim.lr, or --layers last:2"
        )

    def save(self, file: Path) -> None:
        """guard.json: what a resumed run compares with."""
        first = self.first
        if first is None:
            return
        content: dict[str, Any] = {
            "images": self.images,
            "fired": self.fired,
            "within": self.within,
            "stopped": self.stopped,
            "right": None if first.right is None else first.right.tolist(),
            "answers": None if first.answers is None else first.answers.tolist(),
        }
        with aside(file.with_suffix(".npy")) as part, part.open("wb") as features:
            np.save(features, first.features)
        write_json(file, content, indent=None)  # last: what it names is there and whole

    def restore(self, file: Path) -> None:
        """The start as an earlier call saw it."""
        if not file.is_file() or not file.with_suffix(".npy").is_file():
            return
        content = json.loads(file.read_text(encoding="utf-8"))
        if content.get("images") not in (None, self.images):
            raise UserError(
                "--resume compares with the start on the same images: give --val as in the first call"
            )
        right = None if content["right"] is None else np.array(content["right"])
        known = content["answers"]
        answers = None if known is None else np.array(known)
        self.first = Reading(0, right, answers, np.load(file.with_suffix(".npy")))
        self.fired, self.within = content["fired"], content["within"]
        self.stopped = content["stopped"]


def _unit(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))
