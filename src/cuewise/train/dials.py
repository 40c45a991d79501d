"""Label-free dials while training, and the warnings that follow from them."""

from __future__ import annotations

import math
from collections import deque

import torch
import torch.nn.functional as F

from cuewise.methods import Step
from cuewise.methods.method import SPREAD
from cuewise.objectives.dials import alignment, effective_rank, feature_std, uniformity

MEMORY = 512  # embeddings that spread and rank are read from
LOUD = 50.0  # times the loss of a network that knows nothing


class Dials:
    """Remembers recent embeddings and reads them when asked; the memory is part of a checkpoint."""

    def __init__(self) -> None:
        self.recent = torch.zeros(0, 1)

    @torch.no_grad()
    def note(self, step: Step) -> None:
        """Keep the embeddings of one forward."""
        z = F.normalize(step.z.detach().float(), dim=1).cpu()
        old = self.recent if self.recent.shape[1:] == z.shape[1:] else z[:0]
        self.recent = torch.cat([old, z])[-MEMORY:]

    @torch.no_grad()
    def read(self, step: Step) -> dict[str, float]:
        """dials/* for metrics.jsonl; none of embeddings that are not finite."""
        if not torch.isfinite(self.recent).all():
            return {}
        out = {
            "dials/feature_std": feature_std(self.recent),
            "dials/effective_rank": effective_rank(self.recent),
            "dials/uniformity": uniformity(self.recent[-256:]),
        }
        if step.positive is not None:
            out["dials/alignment"] = alignment(step.z.float(), step.positive.float())
        if step.negatives is not None:
            out["dials/negative_similarity"] = torch.einsum(
                "bc,bmc->bm", step.z.float(), step.negatives.float()
            ).mean()
        return {k: float(v) for k, v in out.items()}


class Watch:
    """Says once, in words, that a run is collapsing or has not begun to learn, and what to try."""

    PATIENCE = 5  # readings in a row

    def __init__(self, chance_loss: float | None, warm: int, least_spread: float = SPREAD) -> None:
        self.chance = chance_loss
        self.least_spread = least_spread  # feature_std below it is a collapse
        self.warm = warm  # steps before a loss at chance counts as stuck
        self.flat: deque[bool] = deque(maxlen=self.PATIENCE)
        self.stuck: deque[bool] = deque(maxlen=self.PATIENCE)
        self.warned: set[str] = set()

    def look(self, step: int, loss: float, dials: dict[str, float]) -> list[str]:
        """New warnings after a reading."""
        out: list[str] = []
        spread, rank = dials.get("dials/feature_std", 1.0), dials.get("dials/effective_rank", 9.0)
        self.flat.append(spread < self.least_spread or rank < 1.5)
        if self.chance is not None and step >= self.warm:
            self.stuck.append(abs(loss - self.chance) < 0.01 * self.chance)
        if not math.isfinite(loss):
            out += self._once(
                "nan", f"the loss is {loss}: try a lower optim.lr, more warm-up, or --precision 32"
            )
        if loss > LOUD * max(1.0, self.chance or 1.0):
            out += self._once(
                "range",
                f"the loss is {loss:.3g}, far out of the range of this method: a weight is too large; lower --alpha or optim.lr",
            )
        if len(self.flat) == self.PATIENCE and all(self.flat):
            out += self._once(
                "collapse",
                f"the embedding is collapsing (feature_std {dials['dials/feature_std']:.3f}, effective rank "
                f"{dials['dials/effective_rank']:.1f}): try a lower optim.lr or --alpha, a larger --batch-size, or "
                f"stronger crops (--set views.scale=[0.2,1])",
            )
        if len(self.stuck) == self.PATIENCE and all(self.stuck):
            out += self._once(
                "stuck",
                f"the loss is stuck at {loss:.3f}, the chance level (ln of the number of choices is {self.chance:.3f}): try "
                f"another optim.lr, more warm-up, or look at views.png — are the two views of an image alike?",
            )
        return out

    def _once(self, key: str, text: str) -> list[str]:
        if key in self.warned:
            return []
        self.warned.add(key)
        return [f"warning: {text}"]
