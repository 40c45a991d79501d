"""How much does the model recognise when texture and colours are those of another style? Given, or drawn in memory."""

from __future__ import annotations

from cuewise.audits.change import change
from cuewise.audits.one_cue import one_cue_audit

stylized = one_cue_audit(
    "stylized",
    "accuracy on stylised images: given, or made from the test images with drawn styles",
    change("stylized"),
    question="How much does it recognise when texture and colours are those of another style?",
    rank=26,
    citation="Geirhos et al. 2019",
    title="Accuracy on stylised images",
    meaning="Share of correct answers on images whose texture and colours are those of a drawn style.",
    card=10,
    what="stylised",
)
