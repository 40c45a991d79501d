"""Does it matter where in the image the object is?"""

from __future__ import annotations

from functools import partial

import numpy as np

from cuewise.audits import objects
from cuewise.audits.answerer import Unasked
from cuewise.audits.audit import Finding, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, difference, mean_share, share
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import AuditOption, Kind, accuracy_kind
from cuewise.audits.masks import masks_option, value_option
from cuewise.audits.one_cue import gallery
from cuewise.audits.subject import Subject

DOWN = {"top": 0.0, "middle": 0.5, "bottom": 1.0}
RIGHT = {"left": 0.0, "centre": 0.5, "right": 1.0}
PLACES = [f"{y} {x}" for y in DOWN for x in RIGHT]
COPIES = tuple(change("object", down=y, right=x) for y in DOWN.values() for x in RIGHT.values())
CHANGES = (CLEAN, *COPIES)
CENTRE = PLACES.index("middle centre")
LARGEST = 0.8  # of the side: a larger object has nowhere to go


@audit(
    "position",
    "accuracy with the object moved to nine places",
    question="Does it matter where the object is?",
    topic="robustness",
    rank=57,
    kinds=(
        Kind(
            "position/loss",
            "Loss at the edges",
            "Accuracy with the object in the centre minus mean accuracy with it at eight places along the edges. Both are "
            "copies with a filled hole, so that only the place differs.",
            reading="0 is no loss",
            better="low",
        ),
        accuracy_kind(
            "position/own/accuracy",
            "Accuracy with the object in its place",
            "Share of correct answers on the same images, unchanged.",
        ),
        accuracy_kind(
            "position/centre/accuracy",
            "Accuracy with the object in the centre",
            "Share of correct answers with the object moved to the centre of what the model sees.",
        ),
        accuracy_kind(
            "position/edge/accuracy",
            "Accuracy with the object at the edge",
            "Mean share of correct answers with the object moved to eight places along the edges.",
        ),
    ),
    options=(
        AuditOption(
            "masks",
            "images named as those of --test, white where the object is, or a set with annotated objects [what --test knows]",
            masks_option,
        ),
        AuditOption(
            "mask_value", "the value of an object's pixels in --masks, for index images", value_option
        ),
    ),
    needs=lambda subject: objects.needs(subject, CHANGES),
)
def position(subject: Subject) -> Finding:
    """The object within its own background, the hole filled smoothly; it is never cut off."""
    found = objects.hits(subject, CHANGES)
    small = found.scenes.extent <= LARGEST
    hits = found.where(small)
    if not len(hits):
        raise Unasked(
            f"every object is larger than {LARGEST:.0%} of the image's side, so no object can be moved"
        )
    protocol = partial(found.protocol, kept=small)
    own = share("position/own/accuracy", hits[:, 0], protocol("views"))
    moved = hits[:, 1:]
    edge = np.delete(moved, CENTRE, axis=1)
    centre = share(
        "position/centre/accuracy", moved[:, CENTRE], protocol("copies with the object in the centre")
    )
    edges = mean_share("position/edge/accuracy", edge, protocol("copies with the object at eight edges"))
    both = np.stack([moved[:, CENTRE], edge.mean(1)], 1)
    out = Finding()
    out.add(own, centre, edges, chance=chance(subject))
    out.add(difference("position/loss", both, protocol("copies with the object moved")))
    each = [share(place, moved[:, k], "") for k, place in enumerate(PLACES)]
    drawn = series(subject.name, ["as it is", *PLACES], [own, *each])
    out.figures["position"] = figure("bars", "Accuracy as the object moves", "place", drawn)
    out.galleries["position"] = gallery(subject, COPIES[0], "position", "moved")
    return out
