"""How much does the model rely on colour?"""

from __future__ import annotations

from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, mean_share, protocol_of, right, share, shares
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import accuracy_kind
from cuewise.audits.subject import Subject

TURNS = (0.25, 0.5, 0.75)  # of the colour circle
CHANGES = (CLEAN, change("grey"), *(change("hue", turn=t) for t in TURNS))


@audit(
    "color",
    "accuracy on greyscale and hue-shifted copies",
    question="How much does it rely on colour?",
    topic="robustness",
    rank=54,
    kinds=(
        accuracy_kind(
            "color/grey/accuracy",
            "Accuracy without colour",
            "Share of correct answers on greyscale copies.",
            card=12,
        ),
        accuracy_kind(
            "color/hue/accuracy",
            "Accuracy with false colours",
            "Mean share of correct answers on copies whose hue is turned by 90, 180 and 270 degrees.",
        ),
        accuracy_kind(
            "color/clean/accuracy",
            "Accuracy with true colours",
            "Share of correct answers on the same images, unchanged.",
        ),
    ),
    needs=lambda subject: Needs(changes=CHANGES),
)
def color(subject: Subject) -> Finding:
    """Without colours, and with colours turned by 90, 180 and 270 degrees."""
    hits = right(subject, CHANGES)
    named = {"color/clean/accuracy": "views", "color/grey/accuracy": "greyscale copies"}
    clean, grey = shares(subject, hits, named)
    protocol = protocol_of(subject, "copies with hue turned by 90, 180, 270 degrees")
    hue = mean_share("color/hue/accuracy", hits[:, 2:], protocol)
    turned = [share(f"hue {t:g}", hits[:, 2 + k], "") for k, t in enumerate(TURNS)]
    names = ["as it is", "grey", *(f"hue +{round(360 * t)}°" for t in TURNS)]
    drawn = series(subject.name, names, [clean, grey, *turned])
    out = Finding(figures={"color": figure("bars", "Accuracy without true colours", "colours", drawn)})
    out.add(clean, grey, hue, chance=chance(subject))
    return out
