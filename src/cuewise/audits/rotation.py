"""Does the model know things that are turned?"""

from __future__ import annotations

from cuewise.audits.audit import Finding, Needs, Subject, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import mean_share, protocol_of, right, share
from cuewise.audits.figures import figure, series

ANGLES = (90, 180, 270)
CHANGES = (CLEAN, *(change("rotation", quarters=a // 90) for a in ANGLES))


@audit(
    "rotation",
    "accuracy on images turned by 0, 90, 180 and 270 degrees",
    lambda subject: Needs(changes=CHANGES),
)
def rotation(subject: Subject) -> Finding:
    """Exact quarter turns of the square view, counter-clockwise."""
    hits = right(subject, CHANGES)
    angles = (0, *ANGLES)
    found = [
        share(f"rotation/{a}/accuracy", hits[:, k], protocol_of(subject, f"copies turned by {a} degrees"))
        for k, a in enumerate(angles)
    ]
    mean = mean_share(
        "rotation/turned/accuracy", hits[:, 1:], protocol_of(subject, "copies turned by 90, 180, 270 degrees")
    )
    drawn = series(subject.name, [f"{a}°" for a in angles], found)
    return Finding(
        [*found, mean], figures={"rotation": figure("bars", "Accuracy on turned images", "turned by", drawn)}
    )
