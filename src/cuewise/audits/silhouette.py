"""How much does the model recognise from the outer shape alone? On silhouettes given, or cut out in memory."""

from __future__ import annotations

from cuewise.audits.change import change
from cuewise.audits.one_cue import one_cue_audit

silhouette = one_cue_audit(
    "silhouette",
    "accuracy on silhouettes: given, or cut from the test images (best effort)",
    change("silhouette"),
    question="How much does it recognise from outlines alone?",
    rank=22,
    citation="Geirhos et al. 2019",
    title="Silhouette accuracy",
    meaning="Share of correct answers on filled outlines: texture and colour are removed.",
    embedded="silhouette",
    card=8,
)
