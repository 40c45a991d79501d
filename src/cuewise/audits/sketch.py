"""How much does the model recognise from lines? On sketches given, or lines drawn in memory."""

from __future__ import annotations

from cuewise.audits.change import change
from cuewise.audits.one_cue import one_cue_audit

sketch = one_cue_audit(
    "sketch",
    "accuracy on sketches or edges: given, or drawn from the test images",
    change("sketch"),
    question="How much does it recognise from lines alone?",
    rank=24,
    citation="Geirhos et al. 2019 (edges)",
    title="Sketch accuracy",
    meaning="Share of correct answers on line drawings or edges: texture and colour are removed.",
    embedded="sketch",
    card=9,
)
