"""MoCo++, the control of LooC++: as many heads with a last stage of their own, all trained with MoCo's loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuewise.errors import UserError
from cuewise.methods import looc
from cuewise.methods.method import Shown


@dataclass(frozen=True)
class Settings(looc.Settings):
    """As LooC's; heads: how many, one more than LooC++ leaves out."""

    plus_plus: bool = True
    heads: int = 4


class MoCoPlusPlus(looc.LooC):
    """Every head meets the same query and key, in a queue of its own; the loss is their mean."""

    name = "moco++"
    summary = "MoCo with several last stages, the control of LooC++ (MoCo++)"
    citation = "Xiao et al. 2021, table 4"
    leaves_out = False
    Settings = Settings

    @classmethod
    def shown(cls, leave_out: Sequence[str] = ()) -> tuple[Shown, ...]:
        return tuple(Shown(role, recipe) for role, recipe in cls.views.items())

    def space_names(self) -> tuple[str, ...]:
        if self.settings.heads < 1 or self.settings.mask_equal:
            raise UserError(
                "moco++.heads must be 1 or more, and moco++.mask_equal has no meaning: every key is one"
            )
        return tuple(f"z{i}" for i in range(self.settings.heads))

    def key_columns(self, i: int) -> list[int]:
        return [0]
