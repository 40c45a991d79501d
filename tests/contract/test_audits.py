"""Every registered audit, on a headless encoder and on a classifier, with labels and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuewise.audits import plan, sets
from cuewise.audits.audit import AUDITS, Finding
from cuewise.audits.engine import Engine
from cuewise.audits.run import ask
from cuewise.audits.saved import Saved
from cuewise.audits.subject import Subject
from cuewise.audits.subjects import AuditRequest, load_seeded, prepare, read_settings
from cuewise.checks.audit import as_json, check_finding, is_described
from tests.audits.small_models import ENCODER, class_map, classifier, conflicts, flat, masks, photos

pytestmark = pytest.mark.slow

LABEL_FREE = {"retrieval", "similarity"}
NEED_MORE = {
    "anagrams",
    "coarse_fine",
    "heads",
    "uncertainty",
    "context",
}  # pairs, a hierarchy, spaces, objects
Answer = tuple[dict[str, Finding], dict[str, str]]


def answer(
    root: Path, model: str, train: list[str], test: list[str], mapping: str | None, out: str
) -> Answer:
    """All audits of one model."""
    sets.forget()
    questions = list(AUDITS.all().values())
    settings = read_settings(15, mapping, {"masks": str(root / "masks")} if len(test) > 1 else {}, questions)
    encoder = load_seeded(model, 32, True if mapping else None, 0)
    request = AuditRequest(train, test, "auto", 0, settings)
    subject: Subject = prepare(model, "model", encoder, root / out, request, Engine(workers=0))
    plan.run_passes([(subject, questions)], subject.engine)
    return ask(subject, questions, Saved(root / out))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    root = tmp_path_factory.mktemp("audits")
    train, test = str(photos(root / "train", 4)), str(photos(root / "test", 5, seed=1))
    masks(root / "masks", Path(test))
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
    if name in left or name in NEED_MORE:
        assert name in NEED_MORE, left
        return
    is_described(AUDITS.get(name))
    check_finding(found[name])


@pytest.mark.parametrize("name", sorted(AUDITS.all()))
def test_the_same_twice(name: str, answers: dict[str, Answer]) -> None:
    first, second = (answers[case][0].get(name) for case in ("encoder", "encoder again"))
    assert as_json(first) == as_json(second)


@pytest.mark.parametrize("case", ["encoder, no labels", "classifier, no labels"])
def test_without_labels_what_needs_none_is_asked(case: str, answers: dict[str, Answer]) -> None:
    found, left = answers[case]
    assert {n for n in LABEL_FREE if found[n].scores or found[n].galleries} == LABEL_FREE
    for name in ("shape_bias", "accuracy", "corruption", "texture", "domains"):
        assert "label" in left[name] or "cue-conflict" in left[name]
