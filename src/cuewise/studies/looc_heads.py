"""Which head serves which task: probes on subsets of LooC's heads, and what each contributes (claims 32, 34)."""

from __future__ import annotations

from cuewise.config import merge
from cuewise.studies.claims import Claim, PairedDifference, combined
from cuewise.studies.labs import Lab
from cuewise.studies.study import Arm, Figure, Study

ARM = "LooC, colour and rotation"
SUBSETS = ("z0", "z0+color", "z0+rotation", "all")
TASKS = {"colour": "z0+color", "rotation": "z0+rotation"}  # task → the subset with its own head


def arms(lab: Lab) -> list[Arm]:
    return [Arm(ARM, merge(lab.colour, {"leave_out": ["color", "rotation"]}), method="looc")]


def quantity(task: str, subset: str) -> str:
    return f"heads/{task}/{subset}"


def matching_head(lab: Lab) -> list[PairedDifference]:
    """Claim 32: z0 alone is below every other subset, and a task's own head adds more than the other head."""
    out = []
    for task, own in TASKS.items():
        (other,) = (s for s in TASKS.values() if s != own)
        for better, worse in ((own, "z0"), (other, "z0"), ("all", "z0"), (own, other)):
            weights = {(ARM, quantity(task, better)): 1.0, (ARM, quantity(task, worse)): -1.0}
            out.append(combined(f"{task}: {better} − {worse}", weights))
    return out


def all_best(lab: Lab) -> list[PairedDifference]:
    """Claim 32: the mean over all tasks, object classes included, against every other subset."""
    tasks = ("class", *TASKS)
    return [
        combined(
            f"mean over {', '.join(tasks)}: all − {subset}",
            {(ARM, quantity(k, s)): w / len(tasks) for k in tasks for s, w in (("all", 1), (subset, -1))},
        )
        for subset in SUBSETS[:-1]
    ]


def spread_of_cues(lab: Lab) -> list[PairedDifference]:
    """Claim 34."""
    weights = {(ARM, "entropy/several"): 1.0, (ARM, "entropy/texture"): -1.0}
    return [combined("bits: several cues − texture", weights)]


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
               tuple(quantity(task, s) for s in SUBSETS))
        for task in ("class", *TASKS)
    ),
)  # fmt: skip
