"""How much can the model tell when texture and colours are those of a style?"""

from __future__ import annotations

from cuewise.audits import one_cue
from cuewise.audits.audit import Finding, Subject, audit
from cuewise.audits.change import change

COPY = change("stylized")


@audit(
    "stylized",
    "accuracy on stylised images: given, or made from the test images with drawn styles",
    lambda subject: one_cue.needs_of(subject, "stylized", COPY),
)
def stylized(subject: Subject) -> Finding:
    """A test set with `stylized` in its name, or copies in drawn styles made in memory."""
    return one_cue.ask(subject, "stylized", COPY, "stylised")
