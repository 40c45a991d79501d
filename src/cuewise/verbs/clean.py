"""`cuewise clean`."""

from __future__ import annotations

from typing import Annotated

from cuewise.verbs.arguments import Result

TOPIC = "share"


def clean(
    *cache: Annotated[str, "features, textures, kernels, indexes or permutations [all]"],
    yes: Annotated[bool, "delete without asking"] = False,
) -> Result:
    """Show what cuewise keeps in its cache, and delete it; everything in it is recreated on demand.

    cuewise clean
    cuewise clean features kernels --yes
    """
    from cuewise.caches import clean_caches

    return Result(clean_caches(cache, yes=yes))
