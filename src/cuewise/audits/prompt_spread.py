"""How much the scores of a zero-shot classifier depend on its prompts: every question is asked with each prompt alone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cuewise.audits.audit import Audit, Finding
from cuewise.audits.subject import Subject
from cuewise.audits.zero_shot import PROMPTS, widened
from cuewise.errors import UserError
from cuewise.scores import Score

FREE = (-np.inf, np.inf)


def by_prompt(subject: Subject) -> list[Subject]:
    """The same model with one prompt each; none where texts do not answer, or where there is one prompt."""
    prompts = subject.settings.prompts or PROMPTS
    if not subject.by_text or subject.answers_by != "head" or len(prompts) < 2:
        return []
    if not subject.prompted:
        subject.prompted = [
            replace(subject, settings=replace(subject.settings, prompts=(p,)), spoken={}, prompted=[])
            for p in prompts
        ]
    return subject.prompted


def asked_with_prompts(question: Audit, subject: Subject) -> Finding:
    """What an audit finds; the intervals of a zero-shot classifier cover the spread over its prompts."""
    found = question.ask(subject)
    members = by_prompt(subject) if question.needs_answers else []
    if not members:
        return found
    others = []
    with tempfile.TemporaryDirectory() as folder:  # of pictures that nobody looks at
        for member in members:
            member.folder = Path(folder)
            try:
                others.append(question.ask(member))
            except UserError:  # what can be asked of all prompts together may be too little with one
                continue
    values = [{s.name: s.value for s in other.scores} for other in others]
    found.scores = [_spread(question, s, [v[s.name] for v in values if s.name in v]) for s in found.scores]
    for name, figure in found.figures.items():
        _spread_figure(figure, [other.figures[name] for other in others if name in other.figures])
    return found


def _spread(question: Audit, score: Score, values: Sequence[float]) -> Score:
    kind = next((k for k in question.kinds if k.matches(score.name)), None)
    share = kind is not None and kind.unit == "share"
    bounds = (min(0.0, score.low), max(1.0, score.high)) if share else FREE
    return widened(score, [v for v in values if np.isfinite(v)], bounds)


def _spread_figure(figure: dict[str, Any], others: Sequence[dict[str, Any]]) -> None:
    """The bars and points of a figure have the intervals of the scores they show."""
    for k, line in enumerate(figure["series"]):
        same = [o["series"][k] for o in others if k < len(o["series"]) and o["series"][k]["x"] == line["x"]]
        if "low" not in line or len(same) < 2:
            continue
        for i, y in enumerate(line["y"]):
            values = [s["y"][i] for s in same if s["y"][i] is not None]
            if y is None or line["low"][i] is None:
                continue
            point = widened(Score("", y, line["low"][i], line["high"][i], 0, ""), values, FREE)
            line["low"][i], line["high"][i] = point.low, point.high
