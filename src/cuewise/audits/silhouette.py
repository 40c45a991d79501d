"""How much can the model tell from the outer shape alone?"""

from __future__ import annotations

from cuewise.audits import one_cue
from cuewise.audits.audit import Finding, Subject, audit
from cuewise.audits.change import change

COPY = change("silhouette")


@audit(
    "silhouette",
    "accuracy on silhouettes: given, or cut from the test images (best effort)",
    lambda subject: one_cue.needs_of(subject, "silhouette", COPY),
)
def silhouette(subject: Subject) -> Finding:
    """A test set with `silhouette` in its name, or silhouettes cut out in memory."""
    return one_cue.ask(subject, "silhouette", COPY, "silhouette")
