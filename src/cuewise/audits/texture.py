"""How much does the model recognise from texture alone?"""

from __future__ import annotations

from cuewise.audits import one_cue
from cuewise.audits.audit import Finding, audit
from cuewise.audits.change import change
from cuewise.audits.subject import Subject

COPY = change("texture", fast=True)


@audit(
    "texture",
    "accuracy on texture-only images: given, or synthesised from the test images",
    question="How much does it recognise when one cue is left, or one is exchanged?",
    topic="one_cue",
    rank=20,
    citation="Ge et al. 2021 (the texture operator)",
    kinds=one_cue.kinds(
        "texture",
        "Texture accuracy",
        "Share of correct answers on images of texture alone: shape and layout are destroyed.",
        card=7,
    ),
    needs=lambda subject: one_cue.needs_of(subject, "texture", COPY),
)
def texture(subject: Subject) -> Finding:
    """A test set given as texture=PATH, or textures synthesised with the fast preset; layout is destroyed."""
    return one_cue.ask(subject, "texture", COPY, "texture")
