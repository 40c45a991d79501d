"""How much of the spectrum does the model need? (High-frequency removal)"""

from __future__ import annotations

from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, right, shares
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import Kind
from cuewise.audits.subject import Subject

KEPT = (1.0, 0.75, 0.5, 0.375, 0.25, 0.125)  # side of the square of frequencies that is kept, of the whole
CHANGES = (CLEAN, *(change("lowpass", keep=k) for k in KEPT[1:]))  # all frequencies: the image itself


@audit(
    "frequency",
    "accuracy as high spatial frequencies are removed",
    question="How much fine detail does it need?",
    topic="robustness",
    rank=52,
    kinds=(
        Kind(
            "frequency/*/accuracy",
            "Accuracy with {} of the frequencies",
            "Share of correct answers on copies that keep only the lowest spatial frequencies, given as the side of the "
            "square that is kept relative to the whole.",
            better="high",
        ),
    ),
    needs=lambda subject: Needs(changes=CHANGES),
)
def frequency(subject: Subject) -> Finding:
    """Only the centred r×r square of each channel's Fourier transform is kept; r falls from the side S of the view."""
    hits = right(subject, CHANGES)
    side = subject.encoder.card.size
    sides = [round(kept * side) for kept in KEPT]
    copies = [f"views that keep r = {r} of {side} frequencies (square)" for r in sides]
    found = shares(subject, hits, {f"frequency/{k:g}/accuracy": what for k, what in zip(KEPT, copies)})
    drawn = series(subject.name, sides, found)
    title = "Accuracy as high frequencies are removed"
    out = Finding(figures={"frequency": figure("lines", title, "side r of the frequencies kept", drawn)})
    out.add(*found, chance=chance(subject))
    return out
