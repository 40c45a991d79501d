"""Texture suppression in self-supervised training: MoCo and DenseCL, filtered view by view or image by image."""

from __future__ import annotations

from typing import Any

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

MOCO, VIEW, IMAGE, ONLY = "MoCo", "MoCo, anisotropic", "MoCo, anisotropic by image", "MoCo, anisotropic only"
DENSE, DENSE_VIEW = "DenseCL", "DenseCL, anisotropic"


def suppressed(lab: Lab, **policy: Any) -> dict[str, Any]:
    """The policy of 0.5 / 0.25 / 0.25, or what `policy` says instead."""
    return merge(lab.filtered, {"suppress": {"name": "anisotropic", **policy, **lab.diffusion}})


def arms(lab: Lab) -> list[Arm]:
    """The same images and steps in all arms."""
    plain = dict(lab.filtered)
    return [
        Arm(MOCO, plain, method="moco"),
        Arm(VIEW, suppressed(lab), method="moco"),
        Arm(IMAGE, suppressed(lab, pairing="image"), method="moco"),
        Arm(ONLY, suppressed(lab, share=1.0), method="moco"),
        Arm(DENSE, plain, method="densecl"),
        Arm(DENSE_VIEW, suppressed(lab), method="densecl"),
    ]


def quantities(lab: Lab) -> tuple[str, ...]:
    """What a linear probe reads: like the training images, then without texture."""
    return ("wide/clean", "wide/texture_free") if lab.name == "shapes" else ("ood_train", "texture_free")


def moco_gains(lab: Lab) -> list[PairedDifference]:
    return [above(VIEW, MOCO, q) for q in quantities(lab)]


def dense_gains(lab: Lab) -> list[PairedDifference]:
    return [above(DENSE_VIEW, DENSE, q) for q in quantities(lab)]


STUDY = Study(
    name="adf-ssl",
    summary="Diffused views in MoCo and DenseCL",
    reference="Tables 2.1 and 2.2 of Mishra's thesis",
    arms=arms,
    measures=("wide", "ood"),
    claims=(
        Claim("T21a", "MoCo with diffused views probes better than without, on images like those trained on and on images "
              "without texture", "C", moco_gains),
        Claim("T21b", "so does DenseCL", "C", dense_gains),
    ),
    figures=(
        Figure("accuracy", "Linear probes", "arm", "accuracy",
               ("wide/clean", "wide/texture_free", "wide/disjoint", "ood_train", "texture_free")),
    ),
)  # fmt: skip
