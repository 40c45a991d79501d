"""How much can the model tell from lines?"""

from __future__ import annotations

from cuewise.audits import one_cue
from cuewise.audits.audit import Finding, Subject, audit
from cuewise.audits.change import change

COPY = change("sketch")


@audit(
    "sketch",
    "accuracy on sketches or edges: given, or drawn from the test images",
    lambda subject: one_cue.needs_of(subject, "sketch", COPY),
)
def sketch(subject: Subject) -> Finding:
    """A test set with `sketch` or `edges` in its name, or lines drawn in memory."""
    return one_cue.ask(subject, "sketch", COPY, "sketch")
