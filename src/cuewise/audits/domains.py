"""Does what the model learned carry over to other kinds of images?"""

from __future__ import annotations

from cuewise.audits.answers import needs_labelled, on_labelled
from cuewise.audits.audit import Finding, audit
from cuewise.audits.figures import figure, series, table
from cuewise.audits.kinds import accuracy_kind
from cuewise.audits.one_cue import on_set
from cuewise.audits.subject import Subject


@audit(
    "domains",
    "accuracy on each test set by name, on the classes it shares",
    question="Does it carry over to other kinds of images?",
    topic="accuracy",
    rank=42,
    kinds=(
        accuracy_kind(
            "domains/*/accuracy",
            "Accuracy on {}",
            "Share of correct answers on the classes that the test set shares with the model's answers.",
            card=6,
            panel="Accuracy: accuracy",
        ),
    ),
    needs=needs_labelled,
)
def domains(subject: Subject) -> Finding:
    """All trained classes stay in the choice of answers; images of other classes are left out and counted."""
    out = Finding()
    found = on_labelled(
        subject, lambda name, data: on_set(subject, name, data, f"domains/{name}/accuracy"), out.left
    )
    for _, data, score in found:
        out.add(score, chance=1 / len(subject.classes_for(data)))
    rows = [[name, s.n, s.value, s.low, s.high, s.protocol] for name, _, s in found]
    columns = ["set", "images", "accuracy", "low", "high", "protocol"]
    out.tables["domains"] = table("Accuracy by test set", columns, rows)
    drawn = series(subject.name, [name for name, _, _ in found], out.scores)
    out.figures["domains"] = figure("bars", "Accuracy by test set", "test set", drawn)
    return out
