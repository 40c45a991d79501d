"""How well does the model withstand corruption? By type, family and severity, on the corruptions of ImageNet-C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cuewise.audits.answerer import NO_ANSWER, Ids
from cuewise.audits.answers import asked_on
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.change import AS_IT_IS, CLEAN, Change, Copies, Input, change
from cuewise.audits.changed import chance, mean_share, protocol_of, right, share
from cuewise.audits.coverage import left_out
from cuewise.audits.engine import copies
from cuewise.audits.figures import figure, series, table
from cuewise.audits.head import IMAGENET
from cuewise.audits.kinds import AuditOption, Kind, accuracy_kind
from cuewise.audits.measures import Right
from cuewise.audits.subject import Subject
from cuewise.cues.corruptions import CORRUPTIONS, FAMILIES, SEVERITIES
from cuewise.data import Dataset
from cuewise.probes.corrupted_sets import COUNTED, HARD, NAMES, ask_cells
from cuewise.probes.mce import ALEXNET, mce, read_reference
from cuewise.progress import Progress
from cuewise.scores import Score
from cuewise.views import center

CHANGES: tuple[Change, ...] = (
    CLEAN,
    *(change("corrupted", corruption=c, severity=s) for c in NAMES for s in SEVERITIES),
)
GIVEN = "corrupted"  # the role of test sets that lie on disk as ImageNet-C does
STRIP = 96  # side of a picture in a strip


@audit(
    "corruption",
    "accuracy under 15 corruptions (and 4 extra) × 5 severities, by type, family and severity",
    question="What disturbs it: noise, blur, weather, missing detail, other colours, another orientation?",
    topic="robustness",
    rank=50,
    citation="Hendrycks and Dietterich 2019",
    equation="mCE = 100 · mean over corruptions of Σ_severities error / Σ_severities error of the reference",
    kinds=(
        accuracy_kind(
            "corruption/accuracy",
            "Accuracy under corruption",
            "Mean share of correct answers over 15 corruptions (noise, blur, weather, digital) at 5 severities.",
            card=11,
        ),
        Kind(
            "corruption/mce",
            "Mean corruption error",
            "Errors under corruption relative to those of a reference model; the reference itself has 100.",
            unit="number",
            better="low",
        ),
        Kind(
            "corruption/*/accuracy",
            "Accuracy under corruption: {}",
            "Mean share of correct answers over some of the corruptions or severities.",
            better="high",
        ),
    ),
    options=(
        AuditOption(
            "reference_errors",
            "a JSON file of a reference model's errors by corruption (mean, or five severities), for mCE",
            lambda typed: read_reference(Path(typed)),
        ),
    ),
    roles={GIVEN: ""},
    needs=lambda subject: Needs() if subject.given.get(GIVEN) else Needs(changes=CHANGES),
)
def corruption(subject: Subject) -> Finding:
    """Means over the 15 counted corruptions unless named otherwise; corruptions are made on the model's own view, or those
    of a test set that lies on disk as ImageNet-C does."""
    if subject.given.get(GIVEN):
        return on_disk(subject, *subject.given[GIVEN][0])
    hits = right(subject, CHANGES)
    cube = hits[:, 1:].reshape(len(hits), len(NAMES), len(SEVERITIES))
    protocol = protocol_of(subject, "corrupted copies (radii scaled to the image)")
    out = Finding()
    clean = share("corruption/clean/accuracy", hits[:, 0], protocol_of(subject, "views"))
    out.add(clean, *summary(cube, protocol), chance=chance(subject))
    types = {c: mean_share(f"corruption/{c}/accuracy", cube[:, k], protocol) for k, c in enumerate(NAMES)}
    score = mce_score(subject, subject.base_set[1], cube, protocol)
    out.scores += [] if score is None else [score]
    out.tables["corruption"] = type_table(cube, types)
    drawn = series(subject.name, [in_words(c) for c in NAMES], list(types.values()))
    title = "Accuracy by corruption (mean over severities)"
    out.figures["corruption/types"] = figure("bars", title, "corruption", drawn)
    levels = [clean, *(s for k in SEVERITIES if (s := severity_score(cube, k, protocol)) is not None)]
    drawn, title = (
        series(subject.name, [0, *SEVERITIES], levels),
        "Accuracy by severity (mean over 15 corruptions)",
    )
    out.figures["corruption/severities"] = figure("lines", title, "severity", drawn)
    out.galleries["corruption"] = strips(subject, cube)
    return out


def on_disk(subject: Subject, name: str, data: Dataset) -> Finding:
    """A tree of corrupted images; parts that it lacks are left out of means and table."""
    answerer, labels = asked_on(subject, name, data)
    numbers = {data.name(i): int(label) for i, label in enumerate(labels)}

    def ask(part: Dataset, cell: str) -> tuple[Ids, Right]:
        work = copies(f"{subject.name}: {name}, {cell}", part, [subject.model.viewer(answerer)], (AS_IT_IS,))
        seen = subject.engine.run(work)[0]
        own = np.array([numbers[part.name(int(i))] for i in seen.index])
        given = seen.answers[AS_IT_IS]
        known = (own >= 0) & (given != NO_ANSWER)
        return seen.index[known], (given == own)[known].astype(np.float64)

    with Progress(len(data), "views", name) as subject.engine.bar:
        cells = ask_cells(data, ask)
    subject.engine.bar = None
    cube = np.full((len(cells.hits), len(NAMES), len(SEVERITIES)), np.nan)
    for k, (c, s) in enumerate(cells.cells):
        cube[:, NAMES.index(c), SEVERITIES.index(s)] = cells.hits[:, k]
    lost = f"; {cells.left_out} images that a corruption lacks left out" if cells.left_out else ""
    protocol = (
        f"{answerer.probe.protocol}; {name}, {len(data.classes)} classes, {len(cells.cells)} parts{lost}"
    )
    protocol += left_out(data, labels)
    out, chance = Finding(), 1 / len(subject.classes_for(data))
    out.add(*summary(cube, protocol), chance=chance)
    if cells.complete:
        out.scores += [s for s in (mce_score(subject, data, cube, protocol),) if s is not None]
    types = {c: mean_there(f"corruption/{c}/accuracy", cube[:, k], protocol) for k, c in enumerate(NAMES)}
    found = {c: s for c, s in types.items() if s is not None}
    out.tables["corruption"] = type_table(cube, found)
    drawn = series(subject.name, [in_words(c) for c in found], list(found.values()))
    out.figures["corruption/types"] = figure("bars", f"Accuracy by corruption: {name}", "corruption", drawn)
    return out


def mean_there(name: str, part: Right, protocol: str) -> Score | None:
    """The mean over the columns that are there, None where none is."""
    flat = part.reshape(len(part), -1)
    there = flat[:, ~np.isnan(flat).all(0)]
    return mean_share(name, there, protocol) if there.shape[1] else None


def rows_of(names: tuple[str, ...]) -> list[int]:
    return [NAMES.index(name) for name in names]


def summary(cube: Right, protocol: str) -> list[Score]:
    """All, by family, by severity, d ≥ 3, and with the four extra. cube: N×19×5, NaN throughout where a part is missing."""

    def mean(name: str, part: Right, what: str) -> Score | None:
        return mean_there(f"corruption/{name}accuracy", part, f"{protocol}; {counted_parts(part, what)}")

    counted = cube[:, rows_of(COUNTED)]
    hard = counted[:, :, [SEVERITIES.index(s) for s in HARD]]
    found = [
        mean("", counted, "mean of 15 × 5 severities"),
        *(
            mean(f"{f}/", cube[:, rows_of(own)], f"mean of {len(own)} × 5 severities")
            for f, own in FAMILIES.items()
        ),
        *(severity_score(cube, s, protocol) for s in SEVERITIES),
        mean("hard/", hard, "mean of 15 × severities 3 to 5"),
        mean("all19/", cube, "mean of 19 × 5 severities"),
    ]
    return [score for score in found if score is not None]


def severity_score(cube: Right, severity: int, protocol: str) -> Score | None:
    part = cube[:, rows_of(COUNTED), SEVERITIES.index(severity)]
    what = counted_parts(part, f"mean of 15 at severity {severity}")
    return mean_there(f"corruption/severity_{severity}/accuracy", part, f"{protocol}; {what}")


def counted_parts(part: Right, what: str) -> str:
    """What a mean is of, and how much of that is there."""
    flat = part.reshape(len(part), -1)
    there = int((~np.isnan(flat).all(0)).sum())
    return what if there == flat.shape[1] else f"{what}, of which {there} of {flat.shape[1]} parts are there"


def mce_score(subject: Subject, data: Dataset, cube: Right, protocol: str) -> Score | None:
    """With the user's reference errors, or with AlexNet's where they hold: 1000 ImageNet classes at 224 pixels."""
    own = subject.option("reference_errors")
    counted = cube[:, rows_of(COUNTED)]
    if own is not None:
        return mce(counted, COUNTED, own, f"{protocol}; reference errors as given")
    imagenet = len(subject.classes_for(data)) == IMAGENET  # of a classifier or of a probe
    if not imagenet or subject.encoder.card.size != 224:
        return None
    return mce(counted, COUNTED, ALEXNET, f"{protocol}; reference AlexNet")


def type_table(cube: Right, types: dict[str, Score]) -> dict[str, Any]:
    """One row per corruption: accuracy by severity and their mean."""
    rows = []
    for name, score in types.items():
        cells = cube[:, NAMES.index(name)].T
        levels = [None if np.isnan(cell).all() else share("", cell, "").value for cell in cells]
        rows.append([in_words(name), CORRUPTIONS[name].family, *levels, score.value, score.low, score.high])
    columns = ["corruption", "family", *(f"severity {s}" for s in SEVERITIES), "mean", "low", "high"]
    return table("Accuracy under corruption (the last four do not count in means of 15)", columns, rows)


def strips(subject: Subject, cube: Right) -> dict[str, Any]:
    """One image under each corruption, severities 1 to 5 side by side."""
    data = subject.base_set[1]
    index, _ = subject.answers_to(CLEAN)
    i = int(index[np.random.default_rng(subject.seed).integers(len(index))])
    taken = Input.of(subject.encoder)
    views = Copies((taken,), CHANGES, subject.seed).views(data.image(i), data.name(i))[taken.key]
    small = [center(view, min(STRIP, taken.size)) for view in views]
    items = []
    for k, name in enumerate(NAMES):
        strip = np.concatenate([small[0], *small[1 + k * 5 : 6 + k * 5]], axis=1)
        first, last = (share("", cube[:, k, j], "").value for j in (0, -1))
        caption = f"{in_words(name)}: {first:.0%} right at severity 1, {last:.0%} at 5"
        alt = f"an image as it is and under {in_words(name)} of severity 1 to 5"
        items.append(subject.item(strip, f"corruption-{name}", caption, "", alt))
    return {"title": "One image under each corruption: as it is, then severity 1 to 5", "items": items}


def in_words(name: str) -> str:
    return name.replace("_", " ")
