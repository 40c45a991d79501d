"""Rotation as an augmentation: thrown away by MoCo, kept by LooC (claim 30)."""

from __future__ import annotations

from collections.abc import Sequence

from cuewise.config import merge
from cuewise.studies.labs import Lab
from cuewise.studies.statistics import agree
from cuewise.studies.study import NOT_MEASURED, Arm, Claim, Figure, Study, Verdict
from cuewise.studies.table import Table, signed

ARMS = ("MoCo", "MoCo + rotation", "MoCo + rotation, same", "LooC")


def arms(lab: Lab) -> list[Arm]:
    """Both views turned independently, both by the same angle, or one space that is told the angle."""
    turned = {"views": {"rotation_p": 0.5}}
    same = merge(turned, {"views": {"same": ["rotation"]}})
    own = [("moco", {}), ("moco", turned), ("moco", same), ("looc", {"leave_out": ["rotation"]})]
    return [Arm(name, s, method=m) for name, (m, s) in zip(ARMS, own)]


def thrown_away(t: Table, lab: Lab) -> Verdict:
    if not t.has(ARMS[:2], "rotation"):
        return NOT_MEASURED
    d = t.difference("MoCo + rotation", "MoCo", "rotation")
    return Verdict(agree(-d), f"rotation: MoCo + rotation − MoCo {signed(d)}")


def kept(t: Table, lab: Lab) -> Verdict:
    """At least far above MoCo + rotation: LooC makes good more than half of what that loses, if it loses anything."""
    if not t.has([ARMS[0], ARMS[1], "LooC"], "rotation"):
        return NOT_MEASURED
    d, loss = (t.difference("LooC", n, "rotation") for n in ("MoCo + rotation", "MoCo"))
    lost = t.difference("MoCo", "MoCo + rotation", "rotation")
    held = agree(lost) and agree(d) and bool(d.mean() > lost.mean() / 2)
    return Verdict(held, f"rotation: LooC − (MoCo + rotation) {signed(d)}, LooC − MoCo {signed(loss)}")


def same_is_no_cure(t: Table, lab: Lab) -> Verdict:
    """Nearer to MoCo + rotation than to MoCo, where these differ."""
    if not t.has(ARMS[:3], "rotation"):
        return NOT_MEASURED
    base, turned, same = (t.mean(n, "rotation") for n in ARMS[:3])
    d = t.difference(ARMS[2], ARMS[1], "rotation")
    lost = agree(t.difference(ARMS[0], ARMS[1], "rotation"))
    held = lost and abs(same - turned) < abs(same - base)
    return Verdict(held, f"rotation: same − independent {signed(d)}, MoCo {base:.3f}")


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": ARMS}


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
    figures=(Figure("accuracy", "Accuracy", "arm", "accuracy", ("rotation", "clean"), groups),),
)
