"""How similar are an image and its other view, another image, its patches, its texture?"""

from __future__ import annotations

from typing import Any

import numpy as np

from cuewise import scores
from cuewise.audits.audit import Finding, Needs, audit
from cuewise.audits.engine import inputs_of
from cuewise.audits.figures import figure, histogram, table
from cuewise.audits.kinds import Kind
from cuewise.audits.pairs import PAIRS, ROLES, PairSettings, PairViews, Values, pair_work, similarities
from cuewise.audits.subject import Subject

BINS = 100  # over [−1, 1]
SHOWN = 4  # images whose pairs are shown


def pair_settings(subject: Subject) -> PairSettings:
    """MoCo-v2's views at the model's size, drawn by the audit's seed."""
    return PairSettings(seed=subject.seed)


def needs(subject: Subject) -> Needs:
    """Pairs of training images, once the model's heads could be loaded."""
    assert subject.model.embedder is not None
    return Needs(pairs=True)


PANEL = "Similarity of pairs: cosine similarity"


@audit(
    "similarity",
    "cosine of a view to its positive, to another image, to its patch and texture negatives",
    question="How similar are an image and its other view, another image, its patches, its texture?",
    rank=110,
    citation="Ge et al. 2021",
    equation="similarity = cos(f(view), f(other))",
    kinds=(
        Kind(
            "similarity/patch",
            "Similarity to patches",
            "Mean cosine between an image and the same image cut into shuffled patches: high where the model "
            "represents texture and colour rather than layout.",
            unit="cosine",
            panel=PANEL,
            reading="1 is the same direction, 0 unrelated",
            card=17,
        ),
        Kind(
            "similarity/texture",
            "Similarity to texture",
            "Mean cosine between an image and a texture synthesised from it. 1 is the same direction, 0 unrelated.",
            unit="cosine",
            panel=PANEL,
        ),
        Kind(
            "similarity/positive",
            "Similarity to another view",
            "Mean cosine between two random views of one image. 1 is the same direction, 0 unrelated.",
            unit="cosine",
            panel=PANEL,
        ),
        Kind(
            "similarity/random",
            "Similarity to another image",
            "Mean cosine between views of two different images: what the other similarities compare with.",
            unit="cosine",
            panel=PANEL,
        ),
    ),
    needs=needs,
    needs_answers=False,
)
def similarity(subject: Subject) -> Finding:
    """Means, spreads and histograms over the same pairs for every model, in evaluation mode.

    Projector outputs where the model is a run with a projector; the query's partner goes through the same network, or
    through the key network where the run has one (BYOL: its target), which is a second row in the table.
    """
    names, found = similarities(subject.model, subject.train, pair_settings(subject), subject.settings.limit)
    own = {pair: found[pair] for pair in PAIRS}
    where = subject.model.embedder.where
    protocol = (
        f"{where}, query network on both sides, evaluation mode, {len(own['positive'])} images, fixed pairs"
    )
    out = Finding([scores.mean(f"similarity/{pair}", own[pair], protocol) for pair in PAIRS])
    drawn = [histogram(pair, np.clip(own[pair], -1, 1), BINS, low=-1) for pair in PAIRS]
    out.figures["similarity"] = figure(
        "histogram",
        f"Similarity of pairs ({where})",
        "cosine similarity",
        *drawn,
        ylabel="share of pairs",
        facet=True,
    )
    columns = ["pair", "partner", "mean", "spread", "pairs"]
    rows = [_row(name, values) for name, values in found.items()]
    out.tables["similarity"] = table("Similarity of pairs", columns, rows)
    cosines = np.stack(list(own.values()), 1).round(6).tolist()
    out.tables["similarity/decisions"] = table(
        "Similarity, image by image",
        ["image", *PAIRS],
        [[n, *row] for n, row in zip(names, cosines)],
        pairs={f"similarity/{pair}": pair for pair in PAIRS},
    )
    out.galleries["similarity"] = _gallery(subject)
    return out


def _row(name: str, values: Values) -> list[Any]:
    pair, _, partner = name.partition(" ")
    return [pair, partner or "query network", float(values.mean()), float(values.std(ddof=1)), len(values)]


def _gallery(subject: Subject) -> dict[str, Any]:
    """What the pairs look like: one row per image, a query with its partners."""
    data, numbers = pair_work(subject.train, pair_settings(subject), subject.settings.limit)
    taken = inputs_of([subject.model.embedder])
    rendering = PairViews(taken, pair_settings(subject), numbers)
    index = subject.model.pairs(subject.train, pair_settings(subject), subject.settings.limit).index[:SHOWN]
    made = []
    for i in index.tolist():
        shown = rendering.views(data.image(i), data.name(i), i)[taken[0].key]
        made.append(dict(zip(ROLES, shown)))
    items = []
    for row, views in enumerate(made):
        views["random"] = made[row - 1]["query"]
        for role in ("query", *PAIRS):
            alt = f"image {row + 1}: {role}"
            items.append(subject.item(views[role], f"pair-{row}-{role}", role, "", alt, row=str(row)))
    return {"title": "The pairs that are compared", "layout": "rows", "items": items}
