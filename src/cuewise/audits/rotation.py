"""Does the model recognise things that are turned?"""

from __future__ import annotations

from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, mean_share, protocol_of, right, shares
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import Kind, accuracy_kind
from cuewise.audits.subject import Subject

ANGLES = (90, 180, 270)
CHANGES = (CLEAN, *(change("rotation", quarters=a // 90) for a in ANGLES))


@audit(
    "rotation",
    "accuracy on images turned by 0, 90, 180 and 270 degrees",
    question="Does it recognise things that are turned?",
    topic="robustness",
    rank=56,
    kinds=(
        accuracy_kind(
            "rotation/turned/accuracy",
            "Accuracy on turned images",
            "Mean share of correct answers on copies turned by 90, 180 and 270 degrees.",
        ),
        Kind(
            "rotation/*/accuracy",
            "Accuracy on images turned by {}°",
            "Share of correct answers on copies turned by an exact angle.",
            better="high",
        ),
    ),
    needs=lambda subject: Needs(changes=CHANGES),
)
def rotation(subject: Subject) -> Finding:
    """Exact quarter turns of the square view, counter-clockwise."""
    hits = right(subject, CHANGES)
    angles = (0, *ANGLES)
    named = {f"rotation/{a}/accuracy": f"copies turned by {a} degrees" for a in angles}
    found = shares(subject, hits, named)
    mean = mean_share(
        "rotation/turned/accuracy", hits[:, 1:], protocol_of(subject, "copies turned by 90, 180, 270 degrees")
    )
    drawn = series(subject.name, [f"{a}°" for a in angles], found)
    out = Finding(figures={"rotation": figure("bars", "Accuracy on turned images", "turned by", drawn)})
    out.add(*found, mean, chance=chance(subject))
    return out
