"""Does the arrangement of the parts matter to the model, or are the parts enough?"""

from __future__ import annotations

import numpy as np

from cuewise import scores
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.change import CLEAN, change
from cuewise.audits.changed import chance, protocol_of, right, shares
from cuewise.audits.figures import figure, series
from cuewise.audits.kinds import Kind
from cuewise.audits.measures import Right
from cuewise.audits.one_cue import gallery
from cuewise.audits.subject import Subject
from cuewise.scores import Score

TILES = (2, 3, 4, 6, 8)  # per side
COPIES = tuple(change("tiles", tiles=n) for n in TILES)
CHANGES = (CLEAN, *COPIES)


@audit(
    "configuration",
    "accuracy and similarity as 2×2 … 8×8 tiles are shuffled",
    question="Does the arrangement of the parts matter, or are the parts enough?",
    topic="robustness",
    rank=50,
    equation="reliance = (accuracy − accuracy with 4×4 tiles shuffled) / (accuracy − guessing)",
    kinds=(
        Kind(
            "configuration/reliance",
            "Reliance on configuration",
            "Share of the accuracy above guessing that is lost when 4×4 tiles are shuffled. 0 is a bag of parts, 100 % a "
            "model that recognises nothing without the arrangement.",
            card=11,
            reading="0 is a bag of parts",
        ),
        Kind(
            "configuration/*/accuracy",
            "Accuracy with {} tiles shuffled",
            "Share of correct answers when the image is cut into tiles and none stays where it was.",
            better="high",
        ),
        Kind(
            "configuration/*/similarity",
            "Similarity with {} tiles shuffled",
            "Mean cosine between the features of an image and of the same image with shuffled tiles. 1 for a model to "
            "which arrangement does not matter.",
            unit="cosine",
        ),
    ),
    needs=lambda subject: Needs(changes=CHANGES),
)
def configuration(subject: Subject) -> Finding:
    """The parts stay, their places change; the curve of a bag of parts is flat."""
    hits = right(subject, CHANGES)
    data = subject.base_set[1]
    near = subject.model.cosines(data, subject.answerer(data), COPIES)
    names = ["1×1", *(f"{n}×{n}" for n in TILES)]
    copies = {n: f"copies with {n} tiles shuffled" for n in names}
    found = shares(subject, hits, {f"configuration/{n}/accuracy": what for n, what in copies.items()})
    alike = [
        scores.mean(f"configuration/{n}/similarity", near[c][1], f"features of {copies[n]}")
        for n, c in zip(names[1:], COPIES)
    ]
    guess = chance(subject)
    out = Finding()
    title, drawn = "Accuracy as tiles are shuffled", series(subject.name, [1, *TILES], found)
    out.figures["configuration"] = figure("lines", title, "tiles per side", drawn)
    title, drawn = "Similarity to the whole image", series(subject.name, TILES, alike)
    out.figures["configuration/similarity"] = figure("lines", title, "tiles per side", drawn, ylabel="cosine")
    out.add(*found, chance=guess)
    out.add(*alike)
    lost = reliance(hits[:, 0], hits[:, 1 + TILES.index(4)], guess, protocol_of(subject, copies["4×4"]))
    if lost is not None:
        out.add(lost)
    out.galleries["configuration"] = gallery(subject, COPIES[TILES.index(4)], "configuration", "shuffled")
    return out


def reliance(whole: Right, shuffled: Right, guess: float, protocol: str, draws: int = 2000) -> Score | None:
    """1 − (shuffled − guess) / (whole − guess) with a bootstrap interval over images; None where the whole images are
    hardly recognised, since then nothing can be lost."""
    good = ~(np.isnan(whole) | np.isnan(shuffled))
    whole, shuffled = whole[good], shuffled[good]
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(whole), (draws, len(whole)))
    above = whole[rows].mean(1) - guess
    if np.quantile(above, 0.025) <= 0.02:
        return None
    lost = 1 - (shuffled[rows].mean(1) - guess) / above
    low, high = np.quantile(lost, [0.025, 0.975])
    value = 1 - (shuffled.mean() - guess) / (whole.mean() - guess)
    return Score("configuration/reliance", float(value), float(low), float(high), len(whole), protocol)
