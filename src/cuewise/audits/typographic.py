"""Does the model read instead of look? A word is written on the image."""

from __future__ import annotations

from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, right, share, shares
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import accuracy_kind
from cuewise.audits.one_cue import gallery
from cuewise.audits.subject import Subject

COPY = change("word")
EMPTY = change("word", text=" ")  # the label without a word: what is lost to the covered pixels


@audit(
    "typographic",
    "accuracy with a word pasted on the image, and with an empty label of the same size",
    question="Does it read instead of look?",
    topic="robustness",
    rank=58,
    citation="Goh et al. 2021",
    kinds=(
        accuracy_kind(
            "typographic/word/accuracy",
            "Accuracy with a word on the image",
            "Share of correct answers when an unrelated word covers a part of the image.",
        ),
        accuracy_kind(
            "typographic/label/accuracy",
            "Accuracy with an empty label",
            "The same with an empty label: what is lost because pixels are covered, not because a word is read.",
        ),
    ),
    needs=lambda subject: Needs(changes=[CLEAN, EMPTY, COPY]),
)
def typographic(subject: Subject) -> Finding:
    """As it is, with an empty label, with a word on it."""
    hits = right(subject, [CLEAN, EMPTY, COPY])
    clean = share("clean", hits[:, 0], "")
    named = {
        "typographic/label/accuracy": "copies with an empty label",
        "typographic/word/accuracy": "copies with a word on a label",
    }
    label, word = shares(subject, hits[:, 1:], named)
    drawn = series(subject.name, ["as it is", "empty label", "word"], [clean, label, word])
    out = Finding(
        figures={"typographic": figure("bars", "Accuracy with a word on the image", "copies", drawn)}
    )
    out.add(label, word, chance=chance(subject))
    out.galleries["typographic"] = gallery(subject, COPY, "typographic", "labelled")
    return out
