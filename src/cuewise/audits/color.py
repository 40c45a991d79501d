"""How much does the model rely on colour?"""

from __future__ import annotations

from cuewise.audits.audit import Finding, Needs, Subject, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import mean_share, protocol_of, right, share
from cuewise.audits.figures import figure, series

TURNS = (0.25, 0.5, 0.75)  # of the colour circle
CHANGES = (CLEAN, change("grey"), *(change("hue", turn=t) for t in TURNS))


@audit("color", "accuracy on greyscale and hue-shifted copies", lambda subject: Needs(changes=CHANGES))
def color(subject: Subject) -> Finding:
    """Without colours, and with colours turned by 90, 180 and 270 degrees."""
    hits = right(subject, CHANGES)
    clean = share("color/clean/accuracy", hits[:, 0], protocol_of(subject, "views"))
    grey = share("color/grey/accuracy", hits[:, 1], protocol_of(subject, "greyscale copies"))
    hue = mean_share(
        "color/hue/accuracy",
        hits[:, 2:],
        protocol_of(subject, "copies with hue turned by 90, 180, 270 degrees"),
    )
    turned = [share(f"hue {t:g}", hits[:, 2 + k], "") for k, t in enumerate(TURNS)]
    names = ["as it is", "grey", *(f"hue +{round(360 * t)}°" for t in TURNS)]
    drawn = series(subject.name, names, [clean, grey, *turned])
    return Finding(
        [clean, grey, hue],
        figures={"color": figure("bars", "Accuracy without true colours", "colours", drawn)},
    )
