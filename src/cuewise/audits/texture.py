"""How much can the model tell from texture alone?"""

from __future__ import annotations

from cuewise.audits import one_cue
from cuewise.audits.audit import Finding, Subject, audit
from cuewise.audits.change import change

COPY = change("texture", fast=True)


@audit(
    "texture",
    "accuracy on texture-only images: given, or synthesised from the test images",
    lambda subject: one_cue.needs_of(subject, "texture", COPY),
)
def texture(subject: Subject) -> Finding:
    """A test set with `texture` in its name, or textures synthesised with the fast preset; layout is destroyed."""
    return one_cue.ask(subject, "texture", COPY, "texture")
