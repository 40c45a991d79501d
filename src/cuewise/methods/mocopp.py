"""MoCo++, the control of LooC++: as many heads with a last stage of their own, all trained with MoCo's loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cuewise.methods import looc
from cuewise.methods.method import Setup, ViewSpec, at_least


@dataclass(frozen=True)
class Settings(looc.Settings):
    """--set moco++.*"""

    plus_plus: Annotated[bool, "each head has its own copy of the last stage"] = True
    heads: Annotated[int, "how many; one more than LooC++ leaves out"] = 4


class MoCoPlusPlus(looc.LooC):
    """Every head meets the same query and key, in a queue of its own; the loss is their mean."""

    name = "moco++"
    summary = "MoCo with several last stages, the control of LooC++ (MoCo++)"
    citation = "Xiao et al. 2021, table 4"
    example = ""
    equation = "L = mean over the heads of MoCo's −log e^{q·k⁺/τ} / (e^{q·k⁺/τ} + Σ_k e^{q·k/τ})"
    leaves_out = False
    Settings = Settings

    @classmethod
    def check(cls, setup: Setup) -> None:
        super().check(setup)
        at_least("moco++.heads", setup.settings.heads, 1)

    @classmethod
    def shown(cls, setup: Setup) -> tuple[ViewSpec, ...]:
        return tuple(ViewSpec(role, recipe) for role, recipe in cls.views.items())

    def space_names(self) -> tuple[str, ...]:
        return tuple(f"z{i}" for i in range(self.settings.heads))

    def key_columns(self, i: int) -> list[int]:
        return [0]
