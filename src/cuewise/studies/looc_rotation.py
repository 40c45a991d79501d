"""Rotation as an augmentation: discarded by MoCo, kept by LooC (claim 30)."""

from __future__ import annotations

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, above, below, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

ARMS = ("MoCo", "MoCo + rotation", "MoCo + rotation, same", "LooC")


def arms(lab: Lab) -> list[Arm]:
    """Views rotated independently, by the same angle, or with one embedding space that keeps the angle."""
    turned = {"views": {"rotation_p": 0.5}}
    same = merge(turned, {"views": {"same": ["rotation"]}})
    own = [("moco", {}), ("moco", turned), ("moco", same), ("looc", {"leave_out": ["rotation"]})]
    return [Arm(name, s, method=m) for name, (m, s) in zip(ARMS, own)]


def cell(weights: dict[str, float]) -> dict[tuple[str, str], float]:
    return {(arm, "rotation"): w for arm, w in weights.items()}


def thrown_away(lab: Lab) -> list[PairedDifference]:
    return [below("MoCo + rotation", "MoCo", "rotation")]


def kept(lab: Lab) -> list[PairedDifference]:
    """Far above: LooC is nearer to MoCo than to MoCo + rotation, which has lost something."""
    return [
        *thrown_away(lab),
        above("LooC", "MoCo + rotation", "rotation"),
        combined("rotation: LooC − middle of MoCo and MoCo + rotation",
                 cell({"LooC": 1, "MoCo": -0.5, "MoCo + rotation": -0.5}),
                 because="far: more than half of the loss is recovered"),
    ]  # fmt: skip


def same_is_no_cure(lab: Lab) -> list[PairedDifference]:
    """Nearer to MoCo + rotation than to MoCo, where these differ."""
    return [
        *thrown_away(lab),
        combined("rotation: middle of MoCo and MoCo + rotation − MoCo + rotation, same",
                 cell({"MoCo": 0.5, "MoCo + rotation": 0.5, "MoCo + rotation, same": -1})),
    ]  # fmt: skip


STUDY = Study(
    name="looc-rotation",
    summary="A rotation probe on MoCo, MoCo with rotated views, and LooC",
    reference="Table 1 of Xiao et al. 2021",
    arms=arms,
    times=3,  # invariance to rotation comes late: none after 300 steps, clear after 1,600
    measures=("clean", "rotation", "cues", "ood", "corrupted"),
    claims=(
        Claim("30a", "MoCo with rotated views loses rotation accuracy", "A", thrown_away),
        Claim("30b", "LooC keeps it: far above MoCo with rotated views", "A", kept),
        Claim("30c", "turning both views alike is no cure", "B", same_is_no_cure),
    ),
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("rotation", "clean")),),
)
