"""How much does the model recognise from texture alone? On textures given, or synthesised with the fast preset."""

from __future__ import annotations

from cuewise.audits.change import change
from cuewise.audits.one_cue import one_cue_audit

COPY = change("texture")  # layout is destroyed

texture = one_cue_audit(
    "texture",
    "accuracy on texture-only images: given, or synthesised from the test images",
    COPY,
    question="How much does it recognise when one cue is left, or one is exchanged?",
    rank=20,
    citation="Ge et al. 2021 (the texture operator)",
    title="Texture accuracy",
    meaning="Share of correct answers on images of texture alone: shape and layout are destroyed.",
    card=7,
    zoo="textures",
    embedded="texture_only",
)
