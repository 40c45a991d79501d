"""How much does the model recognise from the outer shape alone?"""

from __future__ import annotations

from cuewise.audits import one_cue
from cuewise.audits.audit import Finding, audit
from cuewise.audits.change import change
from cuewise.audits.subject import Subject

COPY = change("silhouette")


@audit(
    "silhouette",
    "accuracy on silhouettes: given, or cut from the test images (best effort)",
    question="How much does it recognise from outlines alone?",
    topic="one_cue",
    rank=22,
    citation="Geirhos et al. 2019",
    kinds=one_cue.kinds(
        "silhouette",
        "Silhouette accuracy",
        "Share of correct answers on filled outlines: texture and colour are removed.",
        card=8,
    ),
    needs=lambda subject: one_cue.needs_of(subject, "silhouette", COPY),
)
def silhouette(subject: Subject) -> Finding:
    """A test set given as silhouette=PATH, or silhouettes cut out in memory."""
    return one_cue.ask(subject, "silhouette", COPY, "silhouette")
