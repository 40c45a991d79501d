"""Jigsaw with texture suppressed in whole images and tile by tile (claim 29)."""

from __future__ import annotations

from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, below, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

PLAIN, WHOLE, PATCHWISE = "Jigsaw", "Jigsaw, whole images", "Jigsaw, patch-wise"
ARMS = (PLAIN, WHOLE, PATCHWISE)
FAR = 5  # times chance: "far above"


def arms(lab: Lab) -> list[Arm]:
    """Half of the images, or half of the tiles, are diffused; none is blurred; the same steps in all arms."""
    base = merge(lab.filtered, {"views": {"scale": [0.7, 1.0]}})
    own: dict[str, Any] = {"suppress": {"name": "anisotropic", **lab.diffusion}}
    return [
        Arm(PLAIN, base, method="jigsaw"),
        Arm(WHOLE, merge(base, own, {"views": {"blur_p": 0.0}}), method="jigsaw"),
        Arm(PATCHWISE, merge(base, own, {"jigsaw": {"patchwise": True}}), method="jigsaw"),
    ]


def solved(lab: Lab) -> list[PairedDifference]:
    chance = 1 / int(lab.methods["jigsaw"]["jigsaw"]["permutations"])
    return [
        combined(
            f"accuracy: {arm}",
            {(arm, "pretext/accuracy"): 1.0},
            margin=FAR * chance,
            because="five times chance",
        )
        for arm in ARMS
    ]


def harder_by_tile(lab: Lab) -> list[PairedDifference]:
    return [below(PATCHWISE, WHOLE, "pretext/accuracy")]


def transfers(lab: Lab) -> list[PairedDifference]:
    wanted = "wide/texture_free" if lab.name == "shapes" else "texture_free"
    return [above(PATCHWISE, PLAIN, wanted)]


STUDY = Study(
    name="adf-jigsaw",
    summary="Puzzles of images and of tiles that are diffused",
    reference="Tables 2.7 and 2.8, section 2.5 of Mishra's thesis",
    arms=arms,
    measures=("pretext", "wide", "ood"),
    claims=(
        Claim("29a", "the accuracy of the puzzle is far above chance", "B", solved),
        Claim("29b", "tiles that are diffused one by one make the puzzle harder than whole images", "B", harder_by_tile),
        Claim("29c", "features of patch-wise Jigsaw probe better without texture than those of Jigsaw", "C", transfers),
    ),
    figures=(
        Figure("puzzle", "Accuracy of the puzzle", "tenths of training", "accuracy", ("curve/accuracy",), over="training"),
        Figure("accuracy", "Linear probes", "arm", "accuracy", ("wide/clean", "wide/texture_free", "texture_free")),
    ),
)  # fmt: skip
