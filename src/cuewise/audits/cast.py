"""Does the colour of the light matter to the model?"""

from __future__ import annotations

from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, mean_share, protocol_of, right, share, shares
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import Kind, accuracy_kind
from cuewise.audits.subject import Subject
from cuewise.cues.cast import LIGHTS

CHANGES = (CLEAN, *(change("cast", light=light) for light in LIGHTS))


@audit(
    "cast",
    "accuracy under warm, cold, green and magenta light",
    question="Does the colour of the light matter?",
    topic="robustness",
    rank=55,
    kinds=(
        accuracy_kind(
            "cast/accuracy",
            "Accuracy under coloured light",
            "Mean share of correct answers on copies with a warm, cold, green and magenta cast.",
        ),
        Kind(
            "cast/*/accuracy",
            "Accuracy under {} light",
            "Share of correct answers on copies with this colour cast.",
            better="high",
        ),
    ),
    needs=lambda subject: Needs(changes=CHANGES),
)
def cast(subject: Subject) -> Finding:
    """The same scene in light of four colours."""
    hits = right(subject, CHANGES)
    clean = share("clean", hits[:, 0], "")
    named = {f"cast/{light}/accuracy": f"copies in {light} light" for light in LIGHTS}
    found = shares(subject, hits[:, 1:], named)
    mean = mean_share(
        "cast/accuracy", hits[:, 1:], protocol_of(subject, f"copies in {', '.join(LIGHTS)} light")
    )
    drawn = series(subject.name, ["as it is", *LIGHTS], [clean, *found])
    out = Finding(figures={"cast": figure("bars", "Accuracy under coloured light", "light", drawn)})
    out.add(mean, *found, chance=chance(subject))
    return out
