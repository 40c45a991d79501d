"""Does it matter how large the object is?"""

from __future__ import annotations

from cuewise.audits import objects
from cuewise.audits.audit import Finding, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, difference, share
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import AuditOption, Kind, accuracy_kind
from cuewise.audits.masks import masks_option, value_option
from cuewise.audits.one_cue import gallery
from cuewise.audits.subject import Subject

SHARES = (0.2, 0.4, 0.6, 0.8)  # longer side of the object, of the image's side
COPIES = tuple(change("object", down=0.5, right=0.5, share=s) for s in SHARES)
CHANGES = (CLEAN, *COPIES)


@audit(
    "size",
    "accuracy with the object scaled to 20 … 80 % of the image's side",
    question="Does it matter how large the object is?",
    topic="robustness",
    rank=57,
    kinds=(
        Kind(
            "size/loss",
            "Loss on small objects",
            "Accuracy with the object at 80 % of the image's side minus accuracy with it at 20 %, both in the centre.",
            reading="0 is no loss",
            better="low",
        ),
        accuracy_kind(
            "size/own/accuracy",
            "Accuracy with the object in its own size",
            "Share of correct answers on the same images, unchanged.",
        ),
        Kind(
            "size/*/accuracy",
            "Accuracy with the object at {} of the side",
            "Share of correct answers with the object in the centre, its longer side scaled to this share of the image's.",
            better="high",
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
def size(subject: Subject) -> Finding:
    """The object in the centre of its own background, the hole filled smoothly; a small object that is enlarged is blurred."""
    found = objects.hits(subject, CHANGES)
    own = share("size/own/accuracy", found.right[:, 0], found.protocol("views"))
    each = [
        share(f"size/{s:.0%}/accuracy", hits, found.protocol(f"copies with the object at {s:.0%}"))
        for s, hits in zip(SHARES, found.right[:, 1:].T)
    ]
    out = Finding()
    out.add(own, *each, chance=chance(subject))
    ends = found.right[:, [len(SHARES), 1]]
    out.add(difference("size/loss", ends, found.protocol("copies with the object at 80 % and at 20 %")))
    drawn = series(subject.name, [100 * s for s in SHARES], each)
    title, axis = "Accuracy as the object is scaled", "longer side of the object, % of the image's"
    out.figures["size"] = figure("lines", title, axis, drawn)
    out.galleries["size"] = gallery(subject, COPIES[0], "size", "scaled")
    return out
