"""What every study promises; nothing is trained."""

from __future__ import annotations

from cuewise.checks.check import need
from cuewise.config import resolve
from cuewise.studies.labs import SHAPES
from cuewise.studies.measures.measure import MEASURES
from cuewise.studies.study import Study, Sweep


def is_described(study: Study) -> None:
    """It says what it tests, and each claim is a sentence with a number of its own."""
    need(study.summary and "\n" not in study.summary, "the summary is not one line")
    need(study.claims, "it has no claim")
    need(study.sweep is None or isinstance(study.sweep, Sweep), "what it sweeps over is not a Sweep")
    numbers = [claim.number for claim in study.claims]
    need(len(set(numbers)) == len(numbers), "two claims have the same number")
    need(all(claim.sentence for claim in study.claims), "a claim has no sentence")


def arms_can_be_trained(study: Study) -> None:
    """Every arm has a name of its own and settings that `pretrain` accepts."""
    arms = study.arms(SHAPES)
    names = [arm.name for arm in arms]
    need(len(arms) >= 2, "fewer than two arms: nothing is compared")
    need(len(set(names)) == len(names), "two arms have the same name")
    for arm in arms:
        resolve(SHAPES.config(arm.settings, arm.method or SHAPES.main, seed=0, epochs=1))


def measures_are_known(study: Study) -> None:
    """Every measure exists."""
    for name in study.measures:
        MEASURES.get(name)


CHECKS = (is_described, arms_can_be_trained, measures_are_known)
