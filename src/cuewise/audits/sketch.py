"""How much does the model recognise from lines?"""

from __future__ import annotations

from cuewise.audits import one_cue
from cuewise.audits.audit import Finding, audit
from cuewise.audits.change import change
from cuewise.audits.subject import Subject

COPY = change("sketch")


@audit(
    "sketch",
    "accuracy on sketches or edges: given, or drawn from the test images",
    question="How much does it recognise from lines alone?",
    topic="one_cue",
    rank=24,
    citation="Geirhos et al. 2019 (edges)",
    kinds=one_cue.kinds(
        "sketch",
        "Sketch accuracy",
        "Share of correct answers on line drawings or edges: texture and colour are removed.",
        card=9,
    ),
    needs=lambda subject: one_cue.needs_of(subject, "sketch", COPY),
)
def sketch(subject: Subject) -> Finding:
    """A test set given as sketch=PATH, or lines drawn in memory."""
    return one_cue.ask(subject, "sketch", COPY, "sketch")
