"""Which embedding space does a prediction come from, and how many does it take?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuewise import scores
from cuewise.audits.answerer import Unasked, numbers
from cuewise.audits.audit import Finding, audit
from cuewise.audits.coverage import coverage, left_out
from cuewise.audits.figures import figure, table
from cuewise.audits.kinds import Kind
from cuewise.audits.subject import Subject
from cuewise.encoders import load_encoder
from cuewise.encoders.cached import cached_features
from cuewise.encoders.embed import Embeddings
from cuewise.encoders.encoder import Encoder
from cuewise.encoders.spaces import Spaces
from cuewise.probes import LinearProbe
from cuewise.probes.heads import Blocks, blocks_of, contributions_on, entropy_bits
from cuewise.probes.run import shared_classes
from cuewise.scores import Score

DRAWS = 500  # of the bootstrap


@audit(
    "heads",
    "how much each embedding space adds to right predictions, and over how many they spread (looc)",
    question="Which embedding space do its right answers come from?",
    rank=100,
    citation="Xiao et al. 2021",
    kinds=(
        Kind(
            "heads/entropy_bits/*",
            "Entropy of the heads' shares on {}",
            "How evenly right predictions draw on the embedding spaces, in bits: 0 is one space alone.",
            unit="bits",
        ),
        Kind(
            "heads/*",
            "Share of head {}",
            "Mean share of an embedding space in the logit of right predictions.",
        ),
    ),
)
def heads(subject: Subject) -> Finding:
    """Mean share of each head in the logit of right predictions, and the entropy of these shares in bits."""
    encoder = in_all_spaces(subject)
    blocks = blocks_of(encoder)
    train = features(subject, encoder, subject.train)
    if subject.train.labels is None:
        raise Unasked("no labelled images to fit a probe on: give --train with one folder per class")
    probe = LinearProbe(seed=subject.seed).fit(train.features, train.labels)
    out, found = Finding(), {}
    for name, data in subject.test:
        if data.labels is None:
            continue
        if not set(data.classes) & set(subject.train.classes):
            out.left[name] = coverage(subject, data).nothing or "shares no class with the training images"
            continue
        seen = features(subject, encoder, data)
        shares = contributions_on(probe, seen, *shared_classes(seen, data, subject.train), blocks)
        if len(shares):
            found[name] = shares
            labels = numbers(data.classes, subject.train.classes)[data.labels]
            protocol = probe.protocol + left_out(data, labels, seen.index)
            out.scores += head_scores(name, shares, blocks, protocol, subject.seed)
    if not found:
        why = "; ".join(f"{name} {reason}" for name, reason in out.left.items())
        raise Unasked(
            why
            or "no labelled test set on which the probe is ever right: give --test with one folder per class"
        )
    means = {name: shares.mean(0) for name, shares in found.items()}
    largest = {name: most_often(shares) for name, shares in found.items()}
    columns = ["test set", "right", "entropy (bits)", *(c for h in blocks for c in (h, f"{h} largest"))]
    both = {name: np.stack([means[name], largest[name]], 1).ravel().tolist() for name in found}
    rows = [[name, len(found[name]), entropy_bits(means[name]), *both[name]] for name in found]
    out.tables["heads"] = table("Heads of right predictions", columns, rows)
    title, label = "Share of each head in right predictions", "mean share"
    out.figures["heads"] = figure("bars", title, "head", *bars(blocks, means), ylabel=label)
    title, label = "The head that adds most", "share of right predictions"
    out.figures["heads/largest"] = figure("bars", title, "head", *bars(blocks, largest), ylabel=label)
    return out


def in_all_spaces(subject: Subject) -> Encoder:
    """The model in several spaces: as it was given, or all those of its run."""
    if isinstance(subject.encoder.backbone, Spaces):
        if len(subject.encoder.backbone.blocks) > 1:
            return subject.encoder
        raise Unasked("one space has one head: audit the run without --space, or with --space all")
    if subject.run is None or not (subject.run / "heads.json").is_file():
        raise Unasked("the model has no embedding spaces: train one with --method looc --leave-out …")
    device = next(subject.encoder.parameters()).device
    return load_encoder(f"{subject.run}#all", size=subject.encoder.card.size).to(device)


def features(subject: Subject, encoder: Encoder, data: Any) -> Embeddings:
    """In the spaces; shared with the other audits where the model was given in them."""
    if encoder is subject.encoder:
        return subject.features(data, "features in the spaces")
    return cached_features(encoder, data, label=f"{subject.name}: features in all spaces")


def head_scores(
    name: str, shares: NDArray[np.float64], blocks: Blocks, protocol: str, seed: int
) -> list[Score]:
    """heads/SPACE/… for each space, and heads/entropy_bits/… with a bootstrap interval over the images."""
    how = f"{protocol}, right predictions, w·x by head cut at 0, without bias"
    out = [scores.mean(f"heads/{h}/{name}", shares[:, i], how) for i, h in enumerate(blocks)]
    out = [replace(s, low=max(0.0, s.low), high=min(1.0, s.high)) if s.n > 1 else s for s in out]
    rng = np.random.default_rng(seed)
    draws = [entropy_bits(shares[rng.integers(len(shares), size=len(shares))].mean(0)) for _ in range(DRAWS)]
    value = entropy_bits(shares.mean(0))
    low, high = np.quantile(draws, [0.025, 0.975])
    most = np.log2(len(blocks))
    note = f"{how}; entropy of the mean share, at most {most:.3g} bits; bootstrap"
    low, high = min(float(low), value), max(float(high), value)
    return [*out, Score(f"heads/entropy_bits/{name}", value, low, high, len(shares), note)]


def most_often(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often each head has the largest share."""
    return np.bincount(shares.argmax(1), minlength=shares.shape[1]) / len(shares)


def bars(blocks: Blocks, values: dict[str, NDArray[np.float64]]) -> list[dict[str, Any]]:
    """A group of bars for each test set."""
    return [{"name": name, "x": list(blocks), "y": y.tolist()} for name, y in values.items()]
