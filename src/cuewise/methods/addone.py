"""AddOne, the ablation of LooC: the query has none of the named augmentations, each key only its own."""

from __future__ import annotations

from cuewise.methods import looc
from cuewise.methods.method import Setup, ViewSpec


class AddOne(looc.LooC):
    """LooC's loss on other views: space i learns to ignore the one augmentation that key i has, and sees the rest as change."""

    name = "addone"
    summary = (
        "LooC's ablation: the query has no augmentation of --leave-out, key i has only the i-th (AddOne)"
    )
    citation = "Xiao et al. 2021, appendix E"

    @classmethod
    def shown(cls, setup: Setup) -> tuple[ViewSpec, ...]:
        """Augmentations that are not named stay on all views as in MoCo (the row "* + rotation" keeps colour)."""
        every = setup.leave_out
        plain = (ViewSpec("query", "moco-v2", drops=every), ViewSpec("key", "moco-v2", drops=every))
        others = {a: tuple(b for b in every if b != a) for a in every}
        return (*plain, *(ViewSpec(f"key:{a}", "moco-v2", adds=(a,), drops=others[a]) for a in every))
