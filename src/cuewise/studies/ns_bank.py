"""The length K of MoCo's queue, with and without patch negatives (claim 18)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cuewise.studies.labs import Lab
from cuewise.studies.statistics import agree, slope
from cuewise.studies.study import NOT_MEASURED, Arm, Claim, Figure, Study, Verdict
from cuewise.studies.table import Table, signed


def names(lab: Lab, with_patches: bool) -> list[str]:
    return [f"K = {k}" + (", patch" if with_patches else "") for k in lab.banks]


def arms(lab: Lab) -> list[Arm]:
    """Everything fixed but K; the queue does not change the order of the data."""
    out = []
    for with_patches in (False, True):
        for k, name in zip(lab.banks, names(lab, with_patches)):
            own = lab.negative(lab.useful["moco"]) if with_patches else {}
            out.append(Arm(name, {**own, "moco": {"queue": k}}, method="moco", x=k))
    return out


def gains(t: Table, lab: Lab, quantity: str) -> list[tuple[int, np.ndarray]]:
    pairs = zip(lab.banks, names(lab, True), names(lab, False))
    return [(k, t.difference(a, b, quantity)) for k, a, b in pairs]


def gain_persists(t: Table, lab: Lab) -> Verdict:
    """Claim 18, first half, on clean and on texture-free accuracy."""
    every = names(lab, False) + names(lab, True)
    found = [q for q in ("clean", "texture_free") if t.has(every, q)]
    if not found:
        return NOT_MEASURED
    held, said = [], []
    for q in found:
        held.append(all(agree(d) for _, d in gains(t, lab, q)))
        said.append(f"{q} gain " + ", ".join(f"K = {k}: {signed(d)}" for k, d in gains(t, lab, q)))
    return Verdict(any(held), "; ".join(said))


def less_to_lose(t: Table, lab: Lab) -> Verdict:
    """Claim 18, second half: the slope of accuracy over log₂ K."""
    every = names(lab, False) + names(lab, True)
    if not t.has(every, "clean") or len(lab.banks) < 2:
        return NOT_MEASURED
    x = [math.log2(k) for k in lab.banks]

    def slopes(with_patches: bool) -> np.ndarray:
        rows = np.stack([t.row(n, "clean") for n in names(lab, with_patches)])  # K×seeds
        return np.array([slope(x, column) for column in rows.T])

    plain, patch = slopes(False), slopes(True)
    said = f"clean for each doubling of K: {signed(plain)} without, {signed(patch)} with patch negatives"
    return Verdict(agree(plain - patch), said)


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"MoCo": names(lab, False), "patch negatives": names(lab, True)}


STUDY = Study(
    name="ns-bank",
    summary="Accuracy against the length of the queue, with and without patch negatives",
    reference="Figures 4 and 5 of Ge et al. 2021",
    arms=arms,
    measures=("clean", "conflict", "cues", "ood", "corrupted"),
    claims=(
        Claim("18a", "the gain from patch negatives persists at every K", "C", gain_persists),
        Claim("18b", "with patch negatives less accuracy is lost when K shrinks", "C", less_to_lose),
    ),
    figures=(
        Figure("clean", "Clean accuracy", "K", "accuracy", ("clean",), groups),
        Figure("texture-free", "Texture-free accuracy", "K", "accuracy", ("texture_free",), groups),
    ),
)
