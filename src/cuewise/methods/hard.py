"""The --hard dial: ways to make negatives harder, for methods that contrast a query with many negatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from cuewise.errors import UserError
from cuewise.methods.method import Comm, Negatives
from cuewise.objectives.debiased import debiased_nce
from cuewise.objectives.ifm import ifm_nce
from cuewise.objectives.mochi import draw_mixes, mochi
from cuewise.objectives.nce import extended_nce


@dataclass(frozen=True)
class Contrast:
    """Queries and what they are contrasted with: all that a loss of this kind needs."""

    q: Tensor  # A×C unit-norm queries
    bank: Tensor  # K×C, where negatives come from
    s_p: Tensor  # A
    s_n: Tensor  # A×N
    s_ns: Tensor | None  # A×M, to the queries' own negatives
    columns: Tensor | None  # A×N rows of the bank; None: s_n has all of them, in order
    tau: float
    negatives: Negatives
    progress: float  # of training, 0…1
    rows: Callable[[], tuple[int, Tensor]]  # queries of all processes, and which of them are these
    generator: torch.Generator

    @property
    def dial(self) -> dict[str, Any]:
        return {"tau": self.tau, "alpha": self.negatives.weights, "mode": self.negatives.mode}


class Hard(ABC):
    """Base of the four: a name and a loss."""

    name: ClassVar[str]

    @abstractmethod
    def loss(self, c: Contrast) -> Tensor:
        """The loss of these queries, a mean over them."""


@dataclass(frozen=True)
class MoCHi(Hard):
    """The `candidates` hardest negatives, mixed in pairs (`pairs`) and with the query (`with_query`), from `start` on."""

    candidates: Annotated[int, "hardest negatives that are mixed (N)"] = 128
    pairs: Annotated[int, "mixes of two negatives (s)"] = 1024
    with_query: Annotated[int, "mixes with the query (s′)"] = 512
    start: Annotated[float, "share of training before it begins"] = 0.05
    name: ClassVar[str] = "mochi"

    def __post_init__(self) -> None:
        if self.candidates < 1 or min(self.pairs, self.with_query) < 0 or not 0 <= self.start <= 1:
            raise UserError(
                "hard.candidates must be 1 or more, hard.pairs and hard.with_query 0 or more, hard.start in 0…1"
            )

    def loss(self, c: Contrast) -> Tensor:
        if c.progress < self.start:
            return extended_nce(c.s_p, c.s_n, c.s_ns, **c.dial)
        n = min(self.candidates, c.s_n.shape[1])
        total, mine = c.rows()
        mixes = draw_mixes(total, n, self.pairs, self.with_query, c.generator).rows(mine)
        s_h = mochi(c.q, c.bank.detach(), c.s_n, mixes, n, c.columns)  # A×(s+s′)
        return extended_nce(c.s_p, torch.cat([c.s_n, s_h], dim=1), c.s_ns, **c.dial)


@dataclass(frozen=True)
class IFM(Hard):
    """Similarities moved by `epsilon` against the query in half of the loss."""

    epsilon: Annotated[float, "shift of the similarities against the query (ε)"] = 0.1
    name: ClassVar[str] = "ifm"

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            raise UserError(f"hard.epsilon {self.epsilon}: must be 0 or more")

    def loss(self, c: Contrast) -> Tensor:
        return ifm_nce(c.s_p, c.s_n, c.s_ns, epsilon=self.epsilon, **c.dial)


@dataclass(frozen=True)
class Debiased(Hard):
    """Negatives corrected for those that are of the query's class: a share of `prior`."""

    prior: Annotated[float, "share of negatives that are of the query's class (τ⁺)"] = 0.1
    name: ClassVar[str] = "debiased"

    def __post_init__(self) -> None:
        if not 0 <= self.prior < 1:
            raise UserError(f"hard.prior {self.prior}: a share from 0 to below 1")

    def loss(self, c: Contrast) -> Tensor:
        return debiased_nce(c.s_p, c.s_n, c.s_ns, prior=self.prior, **c.dial)


@dataclass(frozen=True)
class Reweighted(Debiased):
    """As debiased, and hard negatives weigh more, the more so the larger `beta`."""

    beta: Annotated[float, "weight of hard negatives (β)"] = 1.0
    name: ClassVar[str] = "hard"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta < 0:
            raise UserError(f"hard.beta {self.beta}: must be 0 or more")

    def loss(self, c: Contrast) -> Tensor:
        return debiased_nce(c.s_p, c.s_n, c.s_ns, prior=self.prior, beta=self.beta, **c.dial)


HARD: Mapping[str, type[MoCHi | IFM | Debiased | Reweighted]] = {
    kind.name: kind for kind in (MoCHi, IFM, Debiased, Reweighted)
}


class AllSettings(MoCHi, IFM, Reweighted):
    """The keys of hard.*, for the list of settings."""


def everyones_rows(comm: Comm, queries: int, copies: int, device: torch.device) -> tuple[int, Tensor]:
    """How many queries all processes have, and which are ours: a draw for all is the same however they are shared out.

    queries  of this process; `copies` blocks of equal length (the views), each block in the order of the images
    """
    b = queries // copies
    block = torch.arange(b, device=device) + comm.rank * b
    mine = torch.cat([block + i * comm.world * b for i in range(copies)])
    return copies * comm.world * b, mine
