"""Which head serves which task: probes on subsets of LooC's heads, and what each contributes (claims 32, 34)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cuewise.config import merge
from cuewise.studies.labs import Lab
from cuewise.studies.statistics import agree
from cuewise.studies.study import NOT_MEASURED, Arm, Claim, Figure, Study, Verdict
from cuewise.studies.table import Table, signed

ARM = "LooC, colour and rotation"
SUBSETS = ("z0", "z0+color", "z0+rotation", "all")
TASKS = {"colour": "z0+color", "rotation": "z0+rotation"}  # task → the subset with its own head


def arms(lab: Lab) -> list[Arm]:
    return [Arm(ARM, merge(lab.colour, {"leave_out": ["color", "rotation"]}), method="looc")]


def quantity(task: str, subset: str) -> str:
    return f"heads/{task}/{subset}"


def matching_head(t: Table, lab: Lab) -> Verdict:
    """Claim 32: for each task the gain of its own head over that of the other."""
    tasks = [k for k in TASKS if t.has([ARM], *(quantity(k, s) for s in SUBSETS))]
    if not tasks:
        return NOT_MEASURED
    held, said = [], []
    for task in tasks:
        row = {s: t.row(ARM, quantity(task, s)) for s in SUBSETS}
        (other,) = (s for s in TASKS.values() if s != TASKS[task])
        own, rest = row[TASKS[task]] - row["z0"], row[other] - row["z0"]
        held.append(agree(own) and agree(own - rest))
        said.append(
            f"{task}: z0 {row['z0'].mean():.3f}, its own head {signed(own)}, the other {signed(rest)}"
        )
    return Verdict(all(held), "; ".join(said))


def all_best(t: Table, lab: Lab) -> Verdict:
    """Claim 32: the mean over all tasks, object classes included."""
    tasks = [k for k in ("class", *TASKS) if t.has([ARM], *(quantity(k, s) for s in SUBSETS))]
    if not tasks:
        return NOT_MEASURED
    means = {s: np.mean([t.row(ARM, quantity(k, s)) for k in tasks], axis=0) for s in SUBSETS}
    best = max(SUBSETS[:-1], key=lambda s: float(means[s].mean()))
    said = ", ".join(f"{s} {m.mean():.3f}" for s, m in means.items())
    return Verdict(agree(means["all"] - means[best]), f"mean over {', '.join(tasks)}: {said}")


def spread_of_cues(t: Table, lab: Lab) -> Verdict:
    """Claim 34."""
    if not t.has([ARM], "entropy/several", "entropy/texture"):
        return NOT_MEASURED
    several, texture = t.row(ARM, "entropy/several"), t.row(ARM, "entropy/texture")
    said = f"bits: {several.mean():.3f} where several cues are needed, {texture.mean():.3f} for texture"
    return Verdict(agree(several - texture), f"{said}; difference {signed(several - texture)}")


def groups(lab: Lab) -> dict[str, Sequence[str]]:
    return {"": [ARM]}


STUDY = Study(
    name="looc-heads",
    summary="Probes on subsets of LooC's heads, and the share of each head in a decision",
    reference="Table 5 and figure 4 of Xiao et al. 2021",
    arms=arms,
    measures=("clean", "heads", "contributions"),
    claims=(
        Claim("32a", "the invariant head alone is worst where a left-out factor is needed; the matching head helps most",
              "B", matching_head),
        Claim("32b", "all heads are best overall", "B", all_best),
        Claim("34", "contributions are spread wider on a task that needs several cues than on textures", "C",
              spread_of_cues),
    ),
    figures=tuple(
        Figure(f"heads-{task}", f"Probes on subsets of heads: {task}", "arm", "accuracy",
               tuple(quantity(task, s) for s in SUBSETS), groups)
        for task in ("class", *TASKS)
    ),
)  # fmt: skip
