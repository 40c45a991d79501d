"""The α sweep on views in colour: shapes with palettes of their own and the usual jitter (claims 10–16, 22)."""

from __future__ import annotations

from cuewise.config import merge
from cuewise.studies import ns_alpha
from cuewise.studies.labs import Lab
from cuewise.studies.ns_alpha import name_of
from cuewise.studies.study import Arm, Study

# claims about other forms of the negative, which are trained in grey only
FORMS = ("20", "own", "own2", "own3", "own4")


def arms(lab: Lab) -> list[Arm]:
    """α = 0 is the method without the negative."""
    return [Arm(name_of(a), merge(lab.colour, lab.negative(a) if a else {}), x=a) for a in lab.alphas]


STUDY = Study(
    name="ns-alpha-color",
    summary="The weight α of patch negatives, learned in colour",
    reference="Figure 6 of Ge et al. 2021",
    arms=arms,
    sweep=ns_alpha.ALPHAS,
    measures=ns_alpha.STUDY.measures,
    claims=tuple(c for c in ns_alpha.STUDY.claims if c.number not in FORMS),
    figures=tuple(f for f in ns_alpha.STUDY.figures if f.name != "forms"),
)
