"""Does the model recognise the kind and miss the breed?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise.audits.answerer import Unasked
from cuewise.audits.answers import Answers, answers, answers_of, decisions_table, mistake
from cuewise.audits.audit import Finding, audit
from cuewise.audits.figures import figure, series, table
from cuewise.audits.kinds import AuditOption, accuracy_kind
from cuewise.audits.subject import Subject
from cuewise.audits.superclasses import read_superclasses
from cuewise.data import Dataset, open_data
from cuewise.scores import Score, proportion

Ids = NDArray[np.int64]
BREEDS = "shapes:fine?n={n}&part={part}&size={size}"


@audit(
    "coarse_fine",
    "accuracy on breeds and on the kinds they belong to",
    question="Does it recognise the kind and miss the breed?",
    rank=60,
    kinds=(
        accuracy_kind(
            "coarse/*",
            "Accuracy on kinds, {}",
            "Share of answers that lie in the superclass (kind) of the true class.",
            card=13,
            panel="Kind and breed: accuracy",
        ),
        accuracy_kind(
            "fine/*",
            "Accuracy on breeds, {}",
            "Share of answers that are the true class (breed), on images whose class has a superclass.",
            card=14,
            panel="Kind and breed: accuracy",
        ),
    ),
    options=(
        AuditOption(
            "superclasses",
            "a JSON file of class and superclass, or imagenet-dogs, for accuracy on kinds and on their breeds",
            lambda typed: read_superclasses(Path(typed)),
        ),
    ),
)
def coarse_fine(subject: Subject) -> Finding:
    """coarse: the answer lies in the true class's superclass; fine: it is the true class (S1, section 4.2)."""
    out = Finding()
    drawn: list[dict[str, Any]] = []
    for answered, kind_of in asked(subject, out.left):
        kinds, coarse, inside = judged(answered, kind_of)
        if not len(inside):
            continue
        found = coarse_fine_scores(answered, coarse, inside)
        out.add(found[0], chance=guessed_kind(kinds, answered.labels[inside]))
        out.add(found[1], chance=1 / len(answered.classes))
        title = f"Kind and breed on {answered.name}, image by image"
        listed = decisions_table(
            answered, title, kind=kinds[answered.labels].tolist(), coarse=coarse.tolist()
        )
        listed["rows"] = [listed["rows"][i] for i in inside]
        listed["pairs"] = {found[0].name: "coarse", found[1].name: "correct"}
        out.tables[f"coarse_fine/{answered.name}/decisions"] = listed
        out.tables[f"coarse_fine/{answered.name}"] = by_kind(answered, kinds, coarse)
        drawn.append(series(answered.name, ["kind (coarse)", "breed (fine)"], found))
        out.galleries.setdefault("coarse_fine", breed_mistakes(subject, answered, coarse, inside))
    if not out.scores:
        raise Unasked("no class of the test sets has a superclass in --superclasses")
    out.figures["coarse_fine"] = figure("bars", "Right kind, right breed", "", *drawn, facet=True)
    return out


def judged(answers: Answers, kind_of: Mapping[str, str]) -> tuple[NDArray[np.str_], NDArray[np.bool_], Ids]:
    """The kind of each class, which answers lie in the kind of the true class, and the images whose class has one."""
    kinds = np.array([kind_of.get(name, "") for name in answers.classes])
    true = kinds[answers.labels]
    return kinds, kinds[answers.response] == true, np.flatnonzero(true != "")


def guessed_kind(kinds: NDArray[np.str_], labels: Ids) -> float:
    """How often a class drawn at random lies in the true superclass."""
    share = {kind: float((kinds == kind).mean()) for kind in set(kinds.tolist())}
    return float(np.mean([share[k] for k in kinds[labels].tolist()]))


def asked(subject: Subject, left: dict[str, str]) -> list[tuple[Answers, Mapping[str, str]]]:
    """Answers with the superclass of each class: the user's sets with the user's map, or the embedded breeds."""
    kinds: Mapping[str, str] | None = subject.option("superclasses")
    if kinds is not None:
        return [(answered, kinds) for answered in answers(subject, left)]
    if subject.embedded:
        return [embedded_breeds(subject)]
    raise Unasked(
        "which classes belong together is not known: give --superclasses FILE (class → superclass), or imagenet-dogs"
    )


def embedded_breeds(subject: Subject) -> tuple[Answers, Mapping[str, str]]:
    """A probe fitted on the embedded breeds (kind × texture) and asked about new images of them."""
    size = subject.encoder.card.size
    train, test = (
        open_data(BREEDS.format(n=n, part=p, size=size)) for n, p in ((1600, "train"), (800, "test"))
    )
    answerer = subject.model.answerer(train)
    found = answers_of(subject.model, answerer, test, "shapes:fine")
    protocol = f"{answerer.probe.protocol} fitted on shapes:fine; shapes:fine"
    return replace(found, protocol=protocol), breed_kinds(test)


def breed_kinds(data: Dataset) -> dict[str, str]:
    """breed → kind of the embedded set, whose classes are called kind-texture."""
    return {name: name.partition("-")[0] for name in data.classes}


def coarse_fine_scores(answers: Answers, coarse: NDArray[np.bool_], inside: Ids) -> list[Score]:
    """Both accuracies over the images whose class has a superclass."""
    protocol = f"{answers.protocol}, {len(inside)} images whose class has a superclass"
    return [
        proportion(f"coarse/{answers.name}", int(coarse[inside].sum()), len(inside), protocol),
        proportion(f"fine/{answers.name}", int(answers.correct[inside].sum()), len(inside), protocol),
    ]


def by_kind(answers: Answers, kinds: NDArray[np.str_], coarse: NDArray[np.bool_]) -> dict[str, Any]:
    """Coarse and fine accuracy of each kind."""
    rows: list[list[Any]] = []
    for kind in sorted({k for k in kinds[answers.labels].tolist() if k}):
        own = kinds[answers.labels] == kind
        breeds = int((kinds == kind).sum())
        rows.append(
            [kind, breeds, int(own.sum()), float(coarse[own].mean()), float(answers.correct[own].mean())]
        )
    return table(f"Kind and breed on {answers.name}", ["kind", "breeds", "images", "coarse", "fine"], rows)


def breed_mistakes(
    subject: Subject, answers: Answers, coarse: NDArray[np.bool_], inside: Ids, shown: int = 10
) -> dict[str, Any]:
    """Images with the right kind and the wrong breed first, then wrong kinds."""
    wrong = [i for i in inside if not answers.correct[i]]
    near = [i for i in wrong if coarse[i]][: shown // 2]
    chosen = near + [i for i in wrong if not coarse[i]][: shown - len(near)]
    items = [
        mistake(subject, answers, i, f"breed-{n}", "right kind" if coarse[i] else "wrong kind")
        for n, i in enumerate(chosen)
    ]
    return {"title": f"Breeds taken for others on {answers.name}", "items": items}
