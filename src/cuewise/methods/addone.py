"""AddOne, the ablation of LooC: the query has none of the named augmentations, each key only its own."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.methods import looc
from cuewise.methods.method import Shown


class AddOne(looc.LooC):
    """LooC's loss on other views: space i learns to ignore the one augmentation that key i has, and sees the rest as change."""

    name = "addone"
    summary = (
        "LooC's ablation: the query has no augmentation of --leave-out, key i has only the i-th (AddOne)"
    )
    citation = "Xiao et al. 2021, appendix E"

    @classmethod
    def shown(cls, leave_out: Sequence[str] = ()) -> tuple[Shown, ...]:
        """Augmentations that are not named stay on all views as in MoCo (the row "* + rotation" keeps colour)."""
        every = tuple(leave_out)
        plain = (Shown("query", "moco-v2", drops=every), Shown("key", "moco-v2", drops=every))
        others = {a: tuple(b for b in every if b != a) for a in every}
        return (*plain, *(Shown(f"key:{a}", "moco-v2", adds=(a,), drops=others[a]) for a in every))
