"""How much does the model recognise when texture and colours are those of another style?"""

from __future__ import annotations

from cuewise.audits import one_cue
from cuewise.audits.audit import Finding, audit
from cuewise.audits.change import change
from cuewise.audits.subject import Subject

COPY = change("stylized")


@audit(
    "stylized",
    "accuracy on stylised images: given, or made from the test images with drawn styles",
    question="How much does it recognise when texture and colours are those of another style?",
    topic="one_cue",
    rank=26,
    citation="Geirhos et al. 2019",
    kinds=one_cue.kinds(
        "stylized",
        "Accuracy on stylised images",
        "Share of correct answers on images whose texture and colours are those of a drawn style.",
        card=10,
    ),
    needs=lambda subject: one_cue.needs_of(subject, "stylized", COPY),
)
def stylized(subject: Subject) -> Finding:
    """A test set given as stylized=PATH, or copies in drawn styles made in memory."""
    return one_cue.ask(subject, "stylized", COPY, "stylised")
