"""Every registered audit, on a headless encoder and on a classifier, with labels and without."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from cuewise.audits import plan, sets
from cuewise.audits.audit import AUDITS, Finding
from cuewise.audits.engine import Engine
from cuewise.audits.run import ask
from cuewise.audits.saved import Saved
from cuewise.audits.subject import Subject
from cuewise.audits.subjects import Request, load_seeded, prepare, read_settings
from tests.audits.small_models import ENCODER, class_map, classifier, conflicts, flat, photos

pytestmark = pytest.mark.slow

KINDS = {"bars", "lines", "histogram", "scatter"}
LABEL_FREE = {"retrieval", "similarity"}
NEED_MORE = {"coarse_fine", "heads"}  # a hierarchy of classes, a model with several spaces
Answer = tuple[dict[str, Finding], dict[str, str]]


def answer(
    root: Path, model: str, train: list[str], test: list[str], mapping: str | None, out: str
) -> Answer:
    """All audits of one model."""
    sets.forget()
    settings = read_settings(15, mapping)
    encoder = load_seeded(model, 32, True if mapping else None, 0)
    request = Request(train, test, "auto", 0, settings)
    subject: Subject = prepare(model, "model", encoder, root / out, request, Engine(workers=0))
    questions = list(AUDITS.all().values())
    plan.run_passes([(subject, questions)], subject.engine)
    return ask(subject, questions, Saved(root / out))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    root = tmp_path_factory.mktemp("audits")
    train, test = str(photos(root / "train", 4)), str(photos(root / "test", 5, seed=1))
    both, bare = [test, str(conflicts(root / "conflicts"))], [str(flat(root / "flat"))]
    own, mapping = classifier(root), class_map(root)
    return {
        "encoder": answer(root, ENCODER, [train], both, None, "a"),
        "encoder again": answer(root, ENCODER, [train], both, None, "b"),
        "encoder, no labels": answer(root, ENCODER, [], bare, None, "c"),
        "classifier": answer(root, own, [], both, mapping, "d"),
        "classifier, no labels": answer(root, own, [], bare, mapping, "e"),
    }


@pytest.mark.parametrize("case", ["encoder", "classifier"])
@pytest.mark.parametrize("name", sorted(AUDITS.all()))
def test_scores_and_figures_are_whole(name: str, case: str, answers: dict[str, Answer]) -> None:
    found, left = answers[case]
    assert AUDITS.all()[name].summary
    if name in left or name in NEED_MORE:
        assert name in NEED_MORE, left
        return
    finding = found[name]
    for s in finding.scores:
        assert s.protocol
        assert s.n >= 0
        if math.isfinite(s.value) and math.isfinite(s.low):
            assert s.low - 1e-9 <= s.value <= s.high + 1e-9, s
    names = [s.name for s in finding.scores]
    assert len(names) == len(set(names))
    for figure in finding.figures.values():
        assert {"title", "kind", "xlabel", "ylabel", "series"} <= set(figure)
        assert figure["kind"] in KINDS
        for line in figure["series"]:
            edges = figure["kind"] == "histogram"
            assert len(line["x"]) - len(line["y"]) in ((0, 1) if edges else (0,))
            for bound in ("low", "high"):
                assert len(line.get(bound, line["y"])) == len(line["y"])
    for table in finding.tables.values():
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    json.dumps([finding.tables, finding.figures, finding.galleries])


@pytest.mark.parametrize("name", sorted(AUDITS.all()))
def test_the_same_twice(name: str, answers: dict[str, Answer]) -> None:
    first, second = (answers[case][0].get(name) for case in ("encoder", "encoder again"))
    assert plain(first) == plain(second)


@pytest.mark.parametrize("case", ["encoder, no labels", "classifier, no labels"])
def test_without_labels_what_needs_none_is_asked(case: str, answers: dict[str, Answer]) -> None:
    found, left = answers[case]
    assert {n for n in LABEL_FREE if found[n].scores or found[n].galleries} == LABEL_FREE
    for name in ("shape_bias", "accuracy", "corruption", "texture", "domains"):
        assert "label" in left[name] or "cue-conflict" in left[name]


def plain(finding: Finding | None) -> Any:
    return (
        None
        if finding is None
        else json.dumps([[s.as_dict() for s in finding.scores], finding.figures, finding.tables])
    )
