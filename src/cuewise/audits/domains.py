"""Does what the model learned carry over to other kinds of images?"""

from __future__ import annotations

from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import Kind
from cuewise.audits.one_cue import on_set
from cuewise.audits.subject import Named, Subject


def labelled(subject: Subject) -> list[Named]:
    """Test sets with labels."""
    return [(n, d) for n, d in subject.test if d.labels is not None]


@audit(
    "domains",
    "accuracy on each test set by name, on the classes it shares",
    question="Does it carry over to other kinds of images?",
    topic="accuracy",
    rank=42,
    kinds=(
        Kind(
            "domains/*/accuracy",
            "Accuracy on {}",
            "Share of correct answers on the classes that the test set shares with the model's answers.",
            card=6,
            accuracy=True,
            better="high",
            panel="Accuracy: accuracy",
        ),
    ),
    needs=lambda s: Needs(sets=labelled(s)),
)
def domains(subject: Subject) -> Finding:
    """All trained classes stay in the choice of answers; images of other classes are left out and counted."""
    out, names = Finding(), []
    reasons = []
    for name, data in labelled(subject):
        try:
            score = on_set(subject, name, data, f"domains/{name}/accuracy")
            out.add(score, chance=1 / len(subject.classes_for(data)))
            names.append(name)
        except Unasked as error:
            reasons.append(str(error))
    if not out.scores:
        raise Unasked(
            reasons[0] if reasons else "no labelled test set: give --test with one folder per class"
        )
    rows = [[name, s.n, s.value, s.low, s.high, s.protocol] for name, s in zip(names, out.scores)]
    columns = ["set", "images", "accuracy", "low", "high", "protocol"]
    out.tables["domains"] = {"title": "Accuracy by test set", "columns": columns, "rows": rows}
    drawn = series(subject.name, names, out.scores)
    out.figures["domains"] = figure("bars", "Accuracy by test set", "test set", drawn)
    return out
